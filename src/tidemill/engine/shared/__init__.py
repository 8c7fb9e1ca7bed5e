"""What every engine checks and translates alike: written once, so that the engines cannot drift apart.

Only engines import this package. It knows the protocol and the model, and no store.
"""
