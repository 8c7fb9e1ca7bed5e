"""Where an app's SQLite file is."""

from urllib.parse import urlsplit


def path_of(url: str) -> str:
    path = urlsplit(url).path
    return path[1:] if path.startswith("//") else path
