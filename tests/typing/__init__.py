"""Samples for the type checker. `./dev check` runs mypy --strict over them: a line with `type: ignore[...]`
must be an error of exactly that kind (unused ones are errors themselves), every other line must pass."""
