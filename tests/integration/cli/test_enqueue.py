"""`tidemill enqueue`."""

import shlex
from pathlib import Path
from uuid import uuid4

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tidemill.model.ids import parse_id, show_id
from tidemill.model.jobs.job import JobRecord
from tidemill.model.time import HOUR, MINUTE, SECOND
from tidemill.model.view import TaskEntry

SCHEMA = b'{"positional":["to","subject"],"properties":{"to":{},"subject":{}},"required":["to"]}'


@pytest.fixture
def mail(store: Store) -> Store:
    """A store where a worker has published `shop.mail`."""
    entry = TaskEntry(name="shop.mail", queue="mail", priority=2, schema=SCHEMA, key="to")
    store.do(lambda engine: engine.tasks.publish([entry]))
    return store


def job_of(store: Store, text: str) -> JobRecord:
    job = store.get(parse_id(text.strip()))
    assert job is not None
    return job


def test_defaults_come_from_the_catalogue(mail: Store, run: Run) -> None:
    ran = run("enqueue", "shop.mail", '["a@b.c"]', '{"subject": "hi"}')
    assert ran.code == 0
    job = job_of(mail, ran.out)
    assert (job.task, job.queue, job.priority, job.key) == ("shop.mail", "mail", 2, "a@b.c")
    assert job.body == b'[["a@b.c"],{"subject":"hi"}]'


SHOP = """
from tidemill import Tidemill

app = Tidemill({url!r})

@app.task
def send_email(to: str, subject: str) -> None: ...
"""


@pytest.mark.parametrize("engine_mode", ["sqlite-file"], indirect=True)
def test_the_example_of_its_help_works(store: Store, run: Run, tmp_path: Path, execute: Run) -> None:
    (tmp_path / "shop.py").write_text(SHOP.format(url=store.url))
    [example] = [line for line in run("enqueue", "--help").out.splitlines() if "tidemill enqueue -A" in line]
    ran = execute(*shlex.split(example)[1:])
    job = job_of(store, ran.out)
    assert (job.task, job.state) == ("shop.send_email", "scheduled")


@pytest.mark.parametrize("engine_mode", ["sqlite-file"], indirect=True)
def test_errors_name_the_options_of_the_command_line(mail: Store, run: Run) -> None:
    unknown = run("enqueue", "shop.male", "[]")
    assert unknown.err.endswith("(to enqueue it all the same, give --queue)\n")
    both = run("enqueue", "shop.mail", '["a"]', "--delay", "5m", "--at", "2100-01-01T00:00:00Z")
    assert both.err == "tidemill: give --at or --delay, not both\n"


def test_json_names_the_job(mail: Store, run: Run) -> None:
    done = run("enqueue", "shop.mail", '["a"]', "--json").object
    assert set(done) == {"id", "task", "created"}
    assert job_of(mail, done["id"]).state == "ready"


def test_options(mail: Store, run: Run) -> None:
    job = job_of(
        mail, run("enqueue", "shop.mail", '["a"]', "--delay", "5m", "--priority", "0", "-q", "vip").out
    )
    assert (job.state, job.priority, job.queue) == ("scheduled", 0, "vip")
    assert job.due_at is not None
    assert job.due_at - job.created_at == 5 * MINUTE


def test_a_moment(mail: Store, run: Run) -> None:
    job = job_of(mail, run("enqueue", "shop.mail", '["a"]', "--at", "2100-01-01T01:00:00+01:00").out)
    assert job.due_at == 4_102_444_800 * SECOND


@pytest.mark.every_engine
@pytest.mark.row("C1")
def test_an_id_of_ones_own_makes_a_repeat_harmless(mail: Store, run: Run) -> None:
    mine = str(uuid4())
    for _ in range(2):
        assert run("enqueue", "shop.mail", '["a"]', "--id", mine).out.strip() == mine
    assert mail.states() == {"ready": 1}


def test_arguments_from_a_file_and_from_a_pipe(mail: Store, execute: Run, tmp_path: Path) -> None:
    (tmp_path / "args.json").write_text('["file"]')
    assert job_of(mail, execute("enqueue", "shop.mail", "@args.json").out).key == "file"
    assert job_of(mail, execute("enqueue", "shop.mail", "-", given='["pipe"]').out).key == "pipe"


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("shop.mial", "[]"), 1, "shop.mail"),
        (("shop.mail", "[]"), 2, "missing to"),
        (("shop.mail", "[1"), 2, "is not JSON"),
        (("shop.mail", "17"), 2, "a JSON array"),
        (("shop.mail", '"text"'), 2, "a JSON array"),
        (("shop.mail", "[1]", "[2]"), 2, "a JSON array"),
        (("shop.mail", '["a", "b", "c"]'), 2, "shop.mail takes"),
        (("shop.mail", '["a"]', '{"to": "b"}'), 2, "shop.mail takes"),
        (("shop.mail", "@missing.json"), 2, "missing.json cannot be read: No such file"),
        (("shop.mail", "@."), 2, "cannot be read: Is a directory"),
        (("shop.mail", "@/dev/zero"), 2, "more than"),
        (("shop.mail", '["a"]', "--at", "tomorrow"), 2, "is not a moment"),
        (("shop.mail", '["a"]', "--at", "2100-01-01T00:00:00"), 2, "has no time zone"),
        (("shop.mail", '["a"]', "--delay", "-5"), 2, "a length of time"),
        (("shop.mail", '["a"]', "--delay", "5", "--at", "2100-01-01T00:00:00Z"), 2, "not both"),
        (("shop.mail", '["a"]', "--priority", "11"), 2, "0<=x<=10"),
        (("shop.mail", '["a"]', "--queue", "a b"), 2, "queue name"),
        (("shop.mail", '["a"]', "--id", "7"), 2, "a job id is a UUID"),
        (("bad name", "[]"), 2, "task name"),
    ],
)
def test_bad_input_enqueues_nothing(
    mail: Store, run: Run, args: tuple[str, ...], code: int, says: str
) -> None:
    ran = run("enqueue", *args)
    assert ran.code == code, ran
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1
    assert mail.states() == {}


def test_a_payload_that_is_too_large_is_refused(mail: Store, run: Run, tmp_path: Path) -> None:
    (tmp_path / "big.json").write_text('["' + "x" * (1 << 20) + '"]')
    ran = run("enqueue", "shop.mail", "@big.json")
    assert ran.code == 2
    assert "the limit is 1,048,576" in ran.err


def test_an_unknown_task_with_a_queue_is_enqueued(store: Store, run: Run) -> None:
    job = job_of(store, run("enqueue", "later.task", "-q", "later").out)
    assert (job.task, job.queue, job.body) == ("later.task", "later", b"[[],{}]")


def test_enqueue_makes_the_store(run: Run, tmp_path: Path) -> None:
    assert run("enqueue", "x", "-q", "default").code == 0
    assert (tmp_path / "tidemill.db").exists()


def test_the_application_checks_its_arguments(execute: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from tidemill import Tidemill\n"
        "app = Tidemill()\n"
        "@app.task(queue='mail')\n"
        "def mail(to: str, times: int = 1) -> None: ...\n"
    )
    good = execute("enqueue", "shop.mail", '["a"]', "-A", "shop:app")
    assert good.code == 0, good
    bad = execute("enqueue", "shop.mail", '["a", "often"]', "-A", "shop:app")
    assert (bad.code, len(bad.err.splitlines())) == (2, 1), bad


def test_waiting_no_longer_than_asked(mail: Store, run: Run) -> None:
    ran = run("enqueue", "shop.mail", '["a"]', "--wait-for", "50ms")
    assert ran.code == 1
    assert "has not ended within 0.05 s" in ran.err
    assert show_id(parse_id(ran.err.splitlines()[0])) == ran.err.splitlines()[0]
    assert HOUR > MINUTE


@pytest.mark.row("F12")
def test_a_unique_key(mail: Store, run: Run) -> None:
    first = run("enqueue", "shop.mail", '["a"]', "--unique", "nightly", "--json").object
    second = run("enqueue", "shop.mail", '["b"]', "--unique", "nightly", "--json").object
    assert (second["id"], first["created"], second["created"]) == (first["id"], True, False)
    assert run("jobs", "show", first["id"], "--json").object["unique"] == "nightly"
    assert "unique key" in run("jobs", "show", first["id"]).out
    refused = run("enqueue", "shop.mail", '["b"]', "--unique", "nightly", "--on-conflict", "refuse")
    assert refused.code != 0
    assert first["id"] in refused.err
    wrong = run("enqueue", "shop.mail", '["b"]', "--debounce", "5", "--debounce-max", "4")
    assert wrong.err == (
        "tidemill: debounce_max=4 is shorter than debounce=5: it is the longest that calls can put a job "
        "off\n"
    )
