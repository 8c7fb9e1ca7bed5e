"""The pages of this repository that are made from code.

`./dev _docs` writes them. `tests/unit/test_docs.py` fails when one is stale. This package is for those who
work on Tidemill; it is not installed with it.
"""
