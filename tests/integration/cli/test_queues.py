"""`tidemill queues set|reset|pause|resume|show`."""

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tidemill.model.queues.layers import Declaration


@pytest.fixture
def declared(store: Store) -> Store:
    """A queue that an app declares."""
    said = {
        "email": Declaration(fields={"concurrency": 10, "rate": {"count": 100, "per": 60}}, declared_at=5)
    }
    store.do(lambda engine: engine.queues.declare("shop.tasks:app", said))
    return store


@pytest.mark.row("F17")
@pytest.mark.usefixtures("declared")
def test_declared_beside_set(run: Run) -> None:
    done = run("queues", "set", "email", "concurrency=5", "per-key=2,50/10s", "--why", "their server is slow")
    assert done.code == 0
    assert done.err == "email: concurrency: 5 at once; per_key: 2 at once, 50 in 10 s\n"
    shown = run("queues", "show", "email").out
    assert "declared by shop.tasks:app" in shown
    [concurrency] = [line for line in shown.splitlines() if line.startswith("concurrency")]
    assert "5 at once" in concurrency
    assert "10 at once by shop.tasks:app" in concurrency
    assert "(their server is slow)" in concurrency
    assert "by cli:" in concurrency
    [rate] = [line for line in shown.splitlines() if line.startswith("rate")]
    assert "100 in 60 s by shop.tasks:app" in rate
    assert rate.endswith(" -")  # no operator has set it
    assert "concurrency, per_key" in run("queues", "ls").out
    shape = run("queues", "show", "email", "--json").object
    assert (shape["options"]["concurrency"], shape["declared"]["concurrency"]) == (5, 10)
    assert shape["overrides"]["concurrency"]["why"] == "their server is slow"
    assert shape["apps"] == ["shop.tasks:app"]
    stale = run("queues", "reset", "email", "--if-version", str(shape["version"] - 1))
    assert (stale.code, "read them again" in stale.err) == (1, True)
    gone = run("queues", "reset", "email", "concurrency", "--if-version", str(shape["version"]))
    assert gone.err == "email as declared: concurrency: 10 at once\n"
    assert set(run("queues", "reset", "email", "--json").object["overrides"]) == set()
    assert run("queues", "reset", "email").err == "email: nothing of that was set\n"
    assert "queues reset has no option 'concurency'" in run("queues", "reset", "email", "concurency").err


@pytest.mark.row("F17")
@pytest.mark.usefixtures("declared")
def test_what_an_app_declared_that_is_gone_is_retired(run: Run) -> None:
    wrong = run("queues", "retire", "email", "shop.task:app")
    assert (wrong.code, "did you mean 'shop.tasks:app'?" in wrong.err) == (1, True)
    done = run("queues", "retire", "email", "shop.tasks:app")
    assert (done.code, done.err) == (0, "email: declared by no app now\n")
    assert run("queues", "show", "email", "--json").object["options"] == {}
    again = run("queues", "retire", "email", "shop.tasks:app")
    assert (again.code, "apps that do: none" in again.err) == (1, True)


@pytest.mark.row("F17")
@pytest.mark.usefixtures("declared")
def test_pause_and_resume_with_a_reason(run: Run) -> None:
    assert run("queues", "pause", "email", "--why", "moving").code == 0
    assert ": moving" in run("queues", "show", "email").out
    assert run("queues", "resume", "email").code == 0
    assert run("queues", "show", "email", "--json").object["paused_at"] is None


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("concurrency=none", None),
        ("rate=none", None),
        ("rate=50/10s", {"count": 50, "per": 10.0, "smooth": False}),
        ("per_key=5", {"concurrency": 5, "rate": None}),
        ("per_key=10/s", {"concurrency": None, "rate": {"count": 10, "per": 1.0, "smooth": False}}),
        (
            'per_worker={"concurrency": 5, "rate": "10/s"}',
            {"concurrency": 5, "rate": {"count": 10, "per": 1.0, "smooth": False}},
        ),
        ("limits=acme:50", {"acme": {"concurrency": 50, "rate": None}}),
        (
            'limits={"acme": "50/s"}',
            {"acme": {"concurrency": None, "rate": {"count": 50, "per": 1.0, "smooth": False}}},
        ),
        ("limits=acme:none", {"acme": {"concurrency": None, "rate": None}}),
        ("per_task=shop.mail:5", {"shop.mail": {"concurrency": 5, "rate": None}}),
        ('per_task={"shop.mail": 5}', {"shop.mail": {"concurrency": 5, "rate": None}}),
        ("fair_by=key", "key"),
        ("keep_dead=7d,1000", {"age": 604800.0, "count": 1000}),
        ("keep_dead=forever", {"age": None, "count": None}),
        ("keep_body=no", False),
    ],
)
@pytest.mark.usefixtures("declared")
def test_every_form_is_read(run: Run, said: str, stored: object) -> None:
    done = run("queues", "set", "email", said, "--json")
    assert done.code == 0, done.err
    assert done.object["overrides"][said.partition("=")[0]]["value"] == stored
    assert said.partition("=")[0] in run("queues", "show", "email").out


@pytest.mark.usefixtures("declared")
def test_weights_go_with_fairness(run: Run) -> None:
    lone = run("queues", "set", "email", "weights=gold:10,free:1")
    assert (lone.code, 'fair_by="key"' in lone.err) == (2, True)
    assert run("queues", "set", "email", "weights=gold:10,free:1", "fair_by=key").code == 0
    assert "free: 1; gold: 10" in run("queues", "ls").out


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("concurrency", "write NAME=VALUE"),
        ("concurrency=many", "concurrency takes a whole number such as 5, or none"),
        ("concurrency=0", "to stop a queue, pause it"),
        ("rate=100/fortnight", "rate takes 100/m or '100/m smooth', or none"),
        ("per_key=100/m,5/s", "per_key takes 2, 100/m or 2,100/m, or none"),
        ("per_task=5", "per_task takes shop.mail:5,shop.sms:100/m, or none"),
        ('per_task={"shop.mail": [5]}', "per_task takes"),
        ("keep_body=perhaps", "keep_body takes yes or no, or none"),
        ("concurency=5", "did you mean 'concurrency'?"),
        ("timeout=5", "timeout is written into each job"),
        ("fair_by=tenant", 'fair_by is "key"'),
    ],
)
@pytest.mark.usefixtures("declared")
def test_what_cannot_be_read_is_refused_with_what_can(run: Run, said: str, answer: str) -> None:
    done = run("queues", "set", "email", said)
    assert (done.code, answer in done.err) == (2, True), done.err
    assert run("queues", "show", "email", "--json").object["overrides"] == {}


@pytest.mark.parametrize("verb", [["set", "emial", "rate=5/s"], ["reset", "emial"], ["retire", "emial", "a"]])
@pytest.mark.usefixtures("declared")
def test_a_queue_that_does_not_exist(run: Run, verb: list[str]) -> None:
    done = run("queues", *verb)
    assert (done.code, "did you mean 'email'?" in done.err) == (1, True)
