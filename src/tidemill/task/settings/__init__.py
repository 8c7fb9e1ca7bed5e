"""Settings: one table, `Settings`, is the source of every name, default, rule and line of documentation.

    argument > environment (TIDEMILL_SLOTS; TIDEMILL_URL_FILE for secrets) > .env > pyproject.toml > default

`Settings.load()` reads them once and keeps, for each, where its value came from. Imported by everything, so
it stays cheap: nothing here imports msgspec, and TOML is only read where a pyproject.toml speaks of Tidemill.
"""

from tidemill.task.settings.setting import Setting
from tidemill.task.settings.table import Settings

__all__ = ["Setting", "Settings"]
