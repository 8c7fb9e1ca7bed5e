"""The way to the server: connections that come back by themselves, errors, the schema."""
