"""The fingerprint of a failure: equal for failures that an operator would call the same.

Dead jobs of one task and one fingerprint are a dead-letter group. The fingerprint is computed where a failure
is recorded, from what the failure says:

- the exception's class;
- its message, with ids, numbers, paths and quoted texts replaced: they differ from job to job;
- the first five frames of the user's own code, as file and function without line numbers, so that a deploy
  that moves a line does not split a group.

What the engine causes has a fixed fingerprint: its kind. What a timeout stopped may be anywhere in the code,
so frames do not count there.
"""

import hashlib
import re
from typing import NamedTuple

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import Failure, clip_failure
from tidemill.model.names import check_task

OWN_FRAMES = 5
MESSAGE_READ = 2_000
"""Characters of a message that count."""

_FINGERPRINT = re.compile(r"[0-9a-z]{1,32}")
_FIXED = ("expired", "crash", "lost", "parent")

_FRAME = re.compile(r'^[ |+-]*File "(?P<file>[^"\n]+)", line \d+, in (?P<function>.+)$', re.MULTILINE)
_NOT_OWN = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\][Ll]ib[/\\]python\d|^<frozen |"
    r"[/\\]tidemill[/\\](?:app|engine|engines|model|task|worker)[/\\]"
)
_REPLACED = (
    (re.compile(r"(?<!\w)(['\"`])(?:(?!\1).){0,500}\1(?!\w)"), "<text>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://\S+"), "<url>"),
    (re.compile(r"\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"), "<address>"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<id>"),
    (re.compile(r"(?<![\w<])(?:[A-Za-z]:)?[/\\](?:[\w.@~+-]+[/\\]?)+"), "<path>"),
    (re.compile(r"\b(?=[a-zA-Z]*\d)(?:[0-9a-fA-F]{8,}|[0-9a-zA-Z]{16,})\b"), "<id>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
    (re.compile(r"\s+"), " "),
)
"""In this order: a path has numbers, a quoted text may have anything."""


class GroupName(NamedTuple):
    """The name of a dead-letter group: `task/fingerprint`."""

    task: str
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.task}/{self.fingerprint}"


def read_group(name: str) -> GroupName:
    """The group of this name, or `BadInput`."""
    task, slash, fingerprint = name.rpartition("/") if isinstance(name, str) else ("", "", "")
    if not slash or not _FINGERPRINT.fullmatch(fingerprint):
        raise BadInput(
            f"a dead-letter group is a task and a fingerprint, such as shop.send/3f9a1c2b44d0, not {name!r}"
        )
    return GroupName(check_task(task), fingerprint)


def as_recorded(failure: Failure) -> Failure:
    """The failure as it is kept: its texts cut to their bounds, with the fingerprint of the whole texts. A
    fingerprint that it has stays: the process that cut the texts has seen the whole."""
    known = _FINGERPRINT.fullmatch(failure.fingerprint)
    fingerprint = failure.fingerprint if known else fingerprint_of(failure)
    return msgspec.structs.replace(clip_failure(failure), fingerprint=fingerprint)


def fingerprint_of(failure: Failure) -> str:
    """12 hex digits; of what the engine caused, its kind."""
    if failure.kind in _FIXED:
        return failure.kind
    frames = [] if failure.kind == "timeout" else own_frames(failure.traceback)
    parts = (failure.kind, failure.error, plain_message(failure.message), *frames)
    return hashlib.blake2b("\n".join(parts).encode(errors="replace"), digest_size=6).hexdigest()


def plain_message(message: str) -> str:
    """A message without what differs from job to job."""
    text = message[:MESSAGE_READ]
    for pattern, name in _REPLACED:
        text = pattern.sub(name, text)
    return text.strip()


def own_frames(traceback: str) -> list[str]:
    """The first frames of the user's own code, as `file:function`. Without any, the first of other code."""
    found = [(match["file"], match["function"]) for match in _FRAME.finditer(traceback)]
    own = [frame for frame in found if not _NOT_OWN.search(frame[0])] or found
    return [f"{_file_name(file)}:{function}" for file, function in own[:OWN_FRAMES]]


def _file_name(path: str) -> str:
    """Without its folders: a deploy may bring the same code into another one."""
    return re.split(r"[/\\]", path)[-1]
