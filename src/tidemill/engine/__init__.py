"""The seam between Tidemill and where its state lives.

`protocol` is the contract; `registry` finds the engine for a URL; `migrations` and `statements` are
shared tools for engines that speak SQL; `instrumentation` watches the calls;
`events` says what the calls changed.
"""
