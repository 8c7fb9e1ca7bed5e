"""Measurements: what Tidemill costs beside a frozen minimal loop on the same store, and beside another queue.

    python -m bench [--engine-only] [--quick] [--only NAME]... [--json FILE]
    python -m bench --peers [NAME]... [--quick] [--json FILE] [--docs]

Without `--engine-only` the whole product is measured, as applications use it (`product`), by the code of
`tidemill bench`; with it, the engine's facets alone (`engine`). `--peers` sets the product beside other
queues (`side_by_side`).

The machine swings by 2x within minutes, so nothing here is a figure of its own: everything is a
ratio of two subjects that took turns in one run (`rounds`). `raw/` holds the ceilings, `peers/` other
queues, `measures/` one file per question.
"""
