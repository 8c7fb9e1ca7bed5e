"""Measurements: what the engine costs beside a frozen minimal loop on the same store.

    python -m bench --engine-only [--quick] [--only NAME]... [--json FILE]

The machine swings by 2x within minutes, so nothing here is a figure of its own: everything is a
ratio of two subjects that took turns in one run (`rounds`). `raw/` holds the ceilings, `measures/`
one file per question.
"""
