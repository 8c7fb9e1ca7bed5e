"""The version, written here alone. To look it up among the installed packages takes a process 23 ms."""

__version__ = "0.1.0.dev0"
