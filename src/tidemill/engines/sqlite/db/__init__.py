"""The file: connections, the one thread that writes, the schema."""
