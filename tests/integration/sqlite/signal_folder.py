"""Where the sockets of a database's listeners are."""

from pathlib import Path

from tidemill.engines.sqlite.place import Place
from tidemill.engines.sqlite.signals import SocketPost, post_for


def signal_folder(path: Path) -> Path:
    """The folder that the processes of this file share."""
    post = post_for(Place(path=str(path)))
    assert isinstance(post, SocketPost)
    folder = post._folder
    post.close()
    return folder
