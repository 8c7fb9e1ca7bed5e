"""What is measured of the product, by store."""

from bench.product import Measure
from bench.products import postgres, sqlite

PRODUCTS: dict[str, dict[str, Measure]] = {"sqlite": sqlite.MEASURES, "postgres": postgres.MEASURES}
