"""What helps to test against Tidemill, and to test an engine of one's own.

`contract` is the suite that every engine passes. It needs pytest and pytest-asyncio.
"""
