"""The pure heart of Tidemill: records, states and rules. No I/O, no clock, no engine.

Everything else points here; this package imports nothing of Tidemill and, outside the
standard library, only msgspec (records) and cronsim (calendar arithmetic).
"""
