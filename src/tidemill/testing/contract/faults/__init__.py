"""The contract under faults: cut replies, bad input, many at once."""
