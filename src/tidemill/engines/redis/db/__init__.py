"""The way to the server: connections that come back by themselves, scripts, errors, the schema."""
