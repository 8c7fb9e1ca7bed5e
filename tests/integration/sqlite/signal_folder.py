"""Where the sockets of a database's listeners are."""

from pathlib import Path

from tidemill.engines.sqlite.cluster.signals import SocketPubSub, pubsub_for
from tidemill.engines.sqlite.url import SqliteUrl


def signal_folder(path: Path) -> Path:
    """The folder that the processes of this file share."""
    pubsub = pubsub_for(SqliteUrl(path=str(path)))
    assert isinstance(pubsub, SocketPubSub)
    folder = pubsub._folder
    pubsub.close()
    return folder
