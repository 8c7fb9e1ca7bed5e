"""Every page that is made from code, by its path in the repository."""

from pathlib import Path

from docgen.architecture import architecture_page
from docgen.commands import cli_page
from tidemill.cli import main
from tidemill.task.settings.documents import env_example, settings_page

ROOT = Path(__file__).parents[1]
ARCHITECTURE = "ARCHITECTURE.md"


def pages() -> dict[str, str]:
    by_hand = (ROOT / ARCHITECTURE).read_text(encoding="utf-8")
    return {
        ".env.example": env_example(),
        "docs/settings.md": settings_page(),
        "docs/cli.md": cli_page(main),
        ARCHITECTURE: architecture_page(by_hand, ROOT),
    }
