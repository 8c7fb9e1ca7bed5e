"""What is measured of the product, by store."""

from bench.product import Measure
from bench.products import postgres, redis, sqlite

PRODUCTS: dict[str, dict[str, Measure]] = {
    "sqlite": sqlite.MEASURES,
    "postgres": postgres.MEASURES,
    "redis": redis.MEASURES,
}
