"""Events: what happened to jobs, from the process that changed them to the listeners.

A call of an [emitting](emitting.py) engine leads to [changes](changes.py), which wait as
[outgoing](outgoing.py) until the [emitter](emitter.py) has completed them ([detail](detail.py)) and
published them. A [receiver](receiver.py) gets them, in this process or in another one, and finds out which
are missing.
"""
