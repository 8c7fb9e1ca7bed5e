"""What `app.queue` accepts works, and becomes a declaration of what the code names."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tidemill import BadInput, Keep, Limit, Rate, Tidemill
from tidemill.model.queues.layers import Declaration, Layers, effective
from tidemill.model.queues.queue import QueueOptions
from tidemill.task.settings import Settings

FORMS: dict[str, tuple[dict[str, Any], QueueOptions]] = {
    "a rate in words": ({"rate": "50/10s"}, QueueOptions(rate=Rate(50, per=10))),
    "a rate": ({"rate": Rate(50, per=10)}, QueueOptions(rate=Rate(50, per=10))),
    "a number for each key": ({"per_key": 5}, QueueOptions(per_key=Limit(concurrency=5))),
    "a rate in words for each key": ({"per_key": "5/m"}, QueueOptions(per_key=Limit(rate=Rate(5, per=60)))),
    "a rate for each key": ({"per_key": Rate(5)}, QueueOptions(per_key=Limit(rate=Rate(5)))),
    "a limit with a rate in words": (
        {"per_key": Limit(concurrency=2, rate="50/10s")},
        QueueOptions(per_key=Limit(concurrency=2, rate=Rate(50, per=10))),
    ),
    "limits of tasks in every form": (
        {"per_task": {"a": "10/s", "b": 3, "c": Rate(5), "d": Limit(concurrency=1)}},
        QueueOptions(
            per_task={
                "a": Limit(rate=Rate(10)),
                "b": Limit(concurrency=3),
                "c": Limit(rate=Rate(5)),
                "d": Limit(concurrency=1),
            }
        ),
    ),
    "a rate for each worker process": ({"per_worker": "5/s"}, QueueOptions(per_worker=Limit(rate=Rate(5)))),
    "lengths of time": (
        {"timeout": timedelta(minutes=1), "keep_dead": Keep(age=timedelta(days=1))},
        QueueOptions(timeout=60.0, keep_dead=Keep(age=86_400.0)),
    ),
    "keep is short for two": (
        {"keep": 5, "keep_cancelled": 7},
        QueueOptions(keep_completed=Keep(count=5), keep_cancelled=Keep(count=7)),
    ),
    "nothing": ({"concurrency": None, "rate": None, "per_key": None, "weights": None}, QueueOptions()),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_that_is_accepted_can_be_stored_and_read(form: str) -> None:
    said, options = FORMS[form]
    app = Tidemill("sqlite://")
    app.queue("q", **said)
    assert app.registry.options_of("q") == options
    declaration = app.registry.declaration_of("q", 7)
    assert declaration is not None
    stored = msgspec.json.decode(msgspec.json.encode(declaration), type=Declaration)
    assert effective(Layers(declared={"app": stored})) == (options, ())


def test_a_declaration_names_what_the_code_names_and_nothing_else() -> None:
    app = Tidemill("sqlite://")
    app.queue("q", concurrency=None, rate="5/s")
    declaration = app.registry.declaration_of("q", 7)
    assert declaration == Declaration(
        fields={"concurrency": None, "rate": {"count": 5, "per": 1.0, "smooth": False}}, declared_at=7
    )


def test_a_queue_that_is_only_used_is_not_declared() -> None:
    app = Tidemill("sqlite://")
    app.task(name="t", queue="other")(lambda: None)
    assert app.registry.declared_queues() == []
    keeping = Tidemill(settings=Settings.load(url="sqlite://", keep_completed=Keep(count=3)))
    declaration = keeping.registry.declaration_of("default", 7)
    assert declaration == Declaration(
        defaults={
            "keep_completed": {"age": None, "count": 3},
            "keep_cancelled": {"age": None, "count": 3},
        },
        declares=False,
        declared_at=7,
    )


def test_the_same_queue_with_other_options_is_refused_with_both() -> None:
    app = Tidemill("sqlite://")
    app.queue("q", concurrency=5)
    app.queue("q", concurrency=5)
    with pytest.raises(BadInput, match=r"declared before with other options: concurrency=5; now: nothing"):
        app.queue("q")
