"""The `penstock` command. Each command is a module of this package; this one only gathers them."""

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="penstock", message="%(prog)s %(version)s")
def main() -> None:
    """Penstock runs Python functions as jobs: now, later, every night, on any machine.

    State lives where PENSTOCK_URL points: a SQLite file by default (sqlite:///penstock.db).
    """
