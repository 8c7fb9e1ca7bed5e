"""The contract of the `jobs` facet."""
