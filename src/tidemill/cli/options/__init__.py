"""What the options of commands mean: the engine, filters, payloads, lengths of time."""
