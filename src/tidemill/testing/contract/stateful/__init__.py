"""Random calls, side by side on an engine and on the reference."""
