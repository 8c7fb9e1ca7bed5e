"""The options of uniqueness as people write them, of tasks and of calls.

What they mean is said in `tidemill.model.jobs.unique`; here they are read, and what holds for a call becomes
the key of its job.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from msgspec.structs import replace

from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import NewJob
from tidemill.model.jobs.unique import OnConflict, UniqueOptions, UniqueUntil, key_of_call, merge_unique
from tidemill.model.names import check_unique
from tidemill.model.time import Span, span_of

if TYPE_CHECKING:
    from tidemill.app.enqueueing.options import Options

NAMES = (
    "unique", "unique_until", "unique_for", "on_conflict", "debounce", "debounce_max", "throttle",
)  # fmt: skip


def read_call(said: Mapping[str, Any], former: UniqueOptions | None) -> UniqueOptions:
    """What a call says, on top of what was said before."""
    changes = _read(said)
    if "unique" in said:
        value = said["unique"]
        if isinstance(value, str):
            changes |= {"unique": True, "text": check_unique(value)}
        elif value is None or isinstance(value, bool):
            changes |= {"unique": bool(value), "text": None}
        else:
            raise BadInput(
                f"unique= takes True (a key of the arguments) or a text that is the key, not {value!r}; "
                "which arguments make the key is said by @app.task(unique=...)"
            )
    return replace(former or UniqueOptions(), **changes)


def read_task(said: Mapping[str, Any]) -> UniqueOptions | None:
    """What a task says of its calls; None: nothing."""
    changes = _read({name: value for name, value in said.items() if value is not None})
    value = said.get("unique")
    if value is not None and value is not False:
        changes |= {"unique": True, "parameters": () if value is True else _parameters(value)}
    return merge_unique(UniqueOptions(**changes), None) if changes else None


def _parameters(value: object) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if (
        not isinstance(names, Iterable)
        or not (names := tuple(names))
        or not all(isinstance(name, str) for name in names)
    ):
        raise BadInput(
            "unique= of a task takes True (all arguments), the name of a parameter, or a tuple of names, not "
            f"{value!r}"
        )
    return names


def _read(said: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name, value in said.items():
        if name in _READ:
            field, read = _READ[name]
            changes[field] = read(name, value)
    return changes


def _length(name: str, value: Any) -> Span:
    try:
        span = span_of(value)
    except BadInput as error:
        raise BadInput(f"{name}=: {error}") from None
    if span == 0:
        raise BadInput(f"{name}= must be longer than 0 s")
    return span


def _one_of(*accepted: str) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        if value not in accepted:
            said = ", ".join(f'"{each}"' for each in accepted[:-1])
            raise BadInput(f'{name} is {said} or "{accepted[-1]}", not {value!r}')
        return str(value)

    return read


_READ: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "unique_until": ("until", _one_of(*get_args(UniqueUntil))),
    "unique_for": ("period", _length),
    "on_conflict": ("on_conflict", _one_of(*get_args(OnConflict))),
    "debounce": ("debounce", _length),
    "debounce_max": ("debounce_max", _length),
    "throttle": ("throttle", _length),
}


def unique_of(of_task: UniqueOptions | None, options: "Options") -> UniqueOptions | None:
    """What holds for a call of a task with these options; `BadInput` for what does not go together."""
    said = merge_unique(of_task, options.unique)
    if said is None:
        return None
    replaces = said.debounce is not None or said.on_conflict == "replace"
    if said.debounce is not None and (options.delay or options.at is not None):
        raise BadInput("debounce= says when the job runs: leave delay= and at= out")
    if replaces and options.after:
        raise BadInput(
            'after= cannot be used with on_conflict="replace" or debounce=: the job that is there has '
            "parents of its own, or none"
        )
    if replaces and options.transaction is not None:
        raise BadInput(
            'transaction= cannot be used with on_conflict="replace" or debounce=: the job that is there '
            "would be held for as long as the transaction is open"
        )
    return said


def with_key(job: NewJob, said: UniqueOptions, text: str) -> NewJob:
    """The job with its unique key; a debounced one waits for its quiet time."""
    unique = key_of_call(said, text if said.text is None else said.text)
    return replace(job, unique=unique, delay=job.delay if said.debounce is None else said.debounce)
