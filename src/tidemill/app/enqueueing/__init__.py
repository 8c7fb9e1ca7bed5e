"""From a call to stored jobs: options, batches, bulk, calls by name."""
