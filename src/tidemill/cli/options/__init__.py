"""What commands are told: the engine, filters, payloads, lengths of time."""
