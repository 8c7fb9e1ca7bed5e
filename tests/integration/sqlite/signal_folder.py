"""Where the sockets of a database's listeners are."""

from pathlib import Path

from tidemill.engines.sqlite.cluster.signals import SocketPubSub, pubsub_for
from tidemill.engines.sqlite.url import SqliteUrl


def signal_folder(path: Path) -> Path:
    """The folder that the processes of this file share."""
    post = pubsub_for(SqliteUrl(path=str(path)))
    assert isinstance(post, SocketPubSub)
    folder = post._folder
    post.close()
    return folder
