"""The command line, as scripts and people meet it."""
