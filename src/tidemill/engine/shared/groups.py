"""Pages of dead-letter groups: by queue, task and fingerprint, in the order of bytes."""

from typing import NamedTuple

import msgspec

from tidemill.engine.shared.checks import check_limit
from tidemill.engine.shared.paging import read_opaque, write_opaque
from tidemill.model.errors import BadInput
from tidemill.model.names import check_queue, check_task
from tidemill.model.view import DeadGroup, GroupPage


class GroupKey(msgspec.Struct, array_like=True):
    """Where a page ended."""

    queue: str
    task: str
    fingerprint: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(GroupKey).decode


class GroupWalk(NamedTuple):
    """What one call lists: the groups behind `after`."""

    queue: str | None
    task: str | None
    after: GroupKey | None
    limit: int

    @property
    def filter(self) -> bytes:
        """The filter that a cursor belongs to."""
        return _encode((self.queue, self.task))

    def wants_queue(self, name: str) -> bool:
        """Whether groups of this queue are left to list."""
        return self.queue in (None, name) and (self.after is None or name >= self.after.queue)

    def begin_in(self, queue: str) -> tuple[str, str]:
        """The task and the fingerprint behind which the walk through a queue begins."""
        if self.after is not None and self.after.queue == queue:
            return self.after.task, self.after.fingerprint
        return self.task or "", ""

    def page(self, groups: list[DeadGroup], *, more: bool) -> GroupPage:
        """The answer; `more`: the walk has not ended."""
        if not more or not groups:
            return GroupPage(groups=groups, cursor=None)
        last = groups[-1]
        key = _encode(GroupKey(last.queue, last.task, last.fingerprint))
        return GroupPage(groups=groups, cursor=write_opaque(self.filter, key))


def group_walk(queue: str | None, task: str | None, cursor: str | None, limit: int) -> GroupWalk:
    """What a call asks for, or `BadInput`."""
    check_limit(limit)
    if queue is not None:
        check_queue(queue)
    if task is not None:
        check_task(task)
    walk = GroupWalk(queue, task, None, limit)
    if cursor is None:
        return walk
    try:
        key = _decode(read_opaque(walk.filter, cursor))
        check_queue(key.queue)
        check_task(key.task)
    except msgspec.DecodeError:
        raise BadInput("this is not a cursor that a listing gave; begin again without one") from None
    if "\0" in key.fingerprint or not walk.wants_queue(key.queue) or task not in (None, key.task):
        raise BadInput("this cursor belongs to another listing; begin again without one")
    return walk._replace(after=key)
