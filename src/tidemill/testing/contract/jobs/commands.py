"""What random commands are made of: small pools, so that jobs meet in queues, lanes and gates."""

from typing import Any, TypeVar

from hypothesis import strategies as st

from tidemill.model.jobs.job import Edit
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import LostRunVerdict, ReleaseReason
from tidemill.model.jobs.unique import UniqueKey
from tidemill.model.queues.queue import Keep, Limit, QueueOptions, Rate
from tidemill.model.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Span
from tidemill.model.view import TaskEntry

QUEUES = ("a", "b")
UNKNOWN_QUEUE = "nowhere"
TASKS = ("t", "u")
KEYS = (None, "k", "l", "m")
THEN_PRIORITY = 9
"""Of jobs enqueued with an outcome: their order among unblocked children is not fixed."""
HANDLER = TaskEntry(name="bury", queue=QUEUES[1], priority=10, timeout=MINUTE, retry=Retry(attempts=2))
"""Its jobs, too, have a priority of their own."""
PUBLISHED = TaskEntry(name=TASKS[0], queue=QUEUES[0])
"""Other tasks have no entry: nobody can pause them."""

pick = st.integers(0, 40)
"""Points into a list from its end, so that small numbers mean what is recent."""
flag = st.booleans()
T = TypeVar("T")


def one_in(times: int, strategy: st.SearchStrategy[T], otherwise: T) -> st.SearchStrategy[T]:
    """Mostly the plain case, so that most jobs get through and the others meet them."""
    return st.integers(1, times).flatmap(lambda number: strategy if number == times else st.just(otherwise))


seldom = one_in(8, st.just(True), otherwise=False)

short: st.SearchStrategy[Span] = st.sampled_from(
    [
        1,
        MILLISECOND,
        10 * MILLISECOND,
        11 * MILLISECOND,
        SECOND // 2,
        SECOND,
        SECOND + MILLISECOND,
        3 * SECOND,
    ]
)
long: st.SearchStrategy[Span] = st.sampled_from([11 * SECOND, MINUTE, HOUR, DAY])
spans: st.SearchStrategy[Span] = st.integers(1, 5).flatmap(lambda number: long if number == 5 else short)

_NOTHING: dict[str, Any] = {}
due = one_in(
    3,
    short.map(lambda span: {"delay": span})
    | st.sampled_from([-SECOND, 0, SECOND, MINUTE]).map(lambda ahead: {"ahead": ahead}),
    _NOTHING,
)
"""`ahead` becomes `at`, counted from the clock of the moment."""
parents = one_in(
    4,
    st.fixed_dictionaries(
        {
            "parents": st.lists(pick, min_size=1, max_size=3),
            "parent_died": st.sampled_from(["cancel", "run", "wait"]),
        }
    ),
    _NOTHING,
)
uniques = one_in(
    3,
    st.builds(
        lambda key, more: {"unique": UniqueKey(key=key, **more)},
        st.sampled_from(["x", "x", "y"]),
        st.sampled_from(
            [
                {},
                {"until": "start"},
                {"until": "start", "on_conflict": "replace"},
                {"until": "start", "on_conflict": "replace", "latest": 2 * SECOND},
                {"on_conflict": "replace"},
                {"on_conflict": "refuse"},
                {"period": SECOND},
                {"period": MINUTE, "on_conflict": "replace"},
            ]
        ),
    ),
    _NOTHING,
)
expiry = one_in(6, spans.map(lambda span: {"expires": span}), _NOTHING)


def _merge(*parts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


new_jobs: st.SearchStrategy[dict[str, Any]] = st.builds(
    _merge,
    st.fixed_dictionaries(
        {
            "queue": st.sampled_from(QUEUES),
            "task": st.sampled_from(TASKS),
            "key": st.sampled_from(KEYS),
            "priority": st.sampled_from([5, 5, 5, 2, 8]),
        },
        optional={
            "timeout": st.just(MINUTE),
            "retry": st.just(Retry(attempts=3)),
            "headers": st.just(b'{"tags":["x"]}'),
            "on_dead": st.just(HANDLER.name),
            "attempts": st.integers(1, 3),
        },
    ),
    due,
    parents,
    expiry,
    uniques,
)
batches = st.lists(new_jobs, min_size=1, max_size=4)
edits = st.builds(Edit, body=st.just(b"[[7],{}]"), key=st.sampled_from(KEYS))

limits = st.sampled_from(
    [
        Limit(concurrency=1),
        Limit(concurrency=2),
        Limit(rate=Rate(1, per=0.01)),
        Limit(rate=Rate(2, per=1)),
        Limit(rate=Rate(4, per=2, smooth=True)),
        Limit(concurrency=2, rate=Rate(3, per=10)),
    ]
)
keeps = st.sampled_from(
    [Keep(), Keep(count=0), Keep(count=1), Keep(count=3), Keep(age=1.0), Keep(age=60.0, count=2)]
)


@st.composite
def options(draw: st.DrawFn) -> QueueOptions:
    """Options of a queue, with few things said at a time."""
    said: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "own": limits,
                "per_key": limits,
                "limits": st.dictionaries(st.sampled_from(["k", "l"]), limits | st.just(Limit()), max_size=2),
                "per_task": st.dictionaries(st.sampled_from(TASKS), limits, max_size=2),
                "fair_by": st.just("key"),
                "keep_completed": keeps,
                "keep_dead": keeps,
                "keep_cancelled": keeps,
                "keep_body": flag,
            },
        )
    )
    own = said.pop("own", None)
    if own is not None:
        said |= {"concurrency": own.concurrency, "rate": own.rate}
    if QueueOptions(**said).keyed:
        said["weights"] = draw(st.dictionaries(st.sampled_from(["k", "l"]), st.integers(1, 3), max_size=2))
    return QueueOptions(**said)


wants: st.SearchStrategy[list[tuple[str, int | None]]] = st.lists(
    st.tuples(st.sampled_from((*QUEUES, UNKNOWN_QUEUE)), st.none() | st.integers(1, 3)),
    min_size=1,
    max_size=3,
    unique_by=lambda want: want[0],
)
claims: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "wants": one_in(3, wants, [("a", None), ("b", None)]),
        "most": st.integers(1, 6),
        "suspects": st.integers(0, 2),
        "ids": one_in(8, st.lists(pick, max_size=4, unique=True), None),
        "late": seldom,
        "unknown": one_in(5, st.sets(st.sampled_from((*TASKS, "nobody")), min_size=1), frozenset()),
    }
)
"""`late`: under a number lower than the last."""

outcomes: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "run": pick,
        "stale": seldom,
        "kind": st.sampled_from(["completed", "completed", "retried", "failed", "stopped", "crashed"]),
        "retry_in": st.just(0) | short,
        "ran": st.sampled_from([0, 1, SECOND]),
        "then": one_in(6, st.lists(st.sampled_from(QUEUES), min_size=1, max_size=2), None),
    }
)
reasons: st.SearchStrategy[ReleaseReason | None] = st.sampled_from([None, "drain", "snooze", "unknown task"])
verdicts: st.SearchStrategy[list[LostRunVerdict | None]] = st.lists(
    st.sampled_from([None, "suspect", "crash", "crash"]), min_size=6, max_size=6
)
