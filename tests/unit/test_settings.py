"""Settings: where values come from, what they may be, and what is never shown."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import PAYLOAD_LIMIT
from tidemill.model.jobs.retry import Retry
from tidemill.model.member import HEARTBEAT, LEASE
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.time import span_of
from tidemill.task.settings import Settings
from tidemill.task.settings.documents import env_example, settings_page
from tidemill.task.settings.setting import without_password
from tidemill.task.settings.sources import parse_dotenv

ROOT = Path(__file__).parents[2]


def load(folder: Path, environ: Mapping[str, str] | None = None, **given: Any) -> Settings:
    return Settings.load(environ=environ or {}, folder=folder, **given)


def test_the_defaults_are_those_of_the_model(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.url == "sqlite:///tidemill.db"
    assert (span_of(settings.heartbeat), span_of(settings.lease)) == (HEARTBEAT, LEASE)
    assert settings.payload_limit == PAYLOAD_LIMIT
    assert settings.keep_completed is QueueOptions().keep_completed is QueueOptions().keep_cancelled is None
    assert settings.keep_dead == QueueOptions().keep_dead
    retry = Retry(attempts=settings.retry_attempts, base=settings.retry_base, cap=settings.retry_cap)
    assert retry == Retry()
    assert (settings.timeout, settings.cancel_grace, settings.queues, settings.app) == (None, 5.0, (), None)
    assert {settings.source_of(name) for name in settings} == {"default"}


@pytest.mark.row("A11")
def test_an_argument_goes_before_the_environment_before_dotenv_before_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.tidemill]\nslots = 1\n")
    assert load(tmp_path).slots == 1
    (tmp_path / ".env").write_text("TIDEMILL_SLOTS=2\n")
    assert load(tmp_path).slots == 2
    assert load(tmp_path, {"TIDEMILL_SLOTS": "3"}).slots == 3
    assert load(tmp_path, {"TIDEMILL_SLOTS": "3"}, slots=4).slots == 4


@pytest.mark.row("A11")
def test_every_value_knows_its_source(tmp_path: Path) -> None:
    pyproject, dotenv = tmp_path / "pyproject.toml", tmp_path / ".env"
    pyproject.write_text('[tool.tidemill]\napp = "shop:app"\n')
    dotenv.write_text("TIDEMILL_SLOTS=2\n")
    settings = load(tmp_path, {"TIDEMILL_HEARTBEAT": "1s"}, lease=20)
    assert settings.source_of("app") == f"{pyproject} [tool.tidemill] app"
    assert settings.source_of("slots") == f"{dotenv} TIDEMILL_SLOTS"
    assert settings.source_of("heartbeat") == "environment TIDEMILL_HEARTBEAT"
    assert settings.source_of("lease") == "the argument lease"
    assert settings.source_of("sweep") == "default"


@pytest.mark.row("A11")
@pytest.mark.parametrize("name", list(Settings.table()))
def test_every_setting_can_be_set_in_every_way(name: str, tmp_path: Path) -> None:
    entry = Settings.table()[name]
    text = {
        "url": "sqlite:////x.db",
        "namespace": "shop",
        "app": "a:b",
        "queues": "a,b",
        "log_format": "json",
        "lease": "60s",
    }
    value = text.get(name, "7d" if name.startswith("keep") else "3")
    expected = getattr(load(tmp_path, None, **{name: value}), name)
    assert expected != getattr(load(tmp_path), name)
    assert getattr(load(tmp_path, {entry.variable: value}), name) == expected
    (tmp_path / ".env").write_text(f"{entry.variable}={value}\n")
    assert getattr(load(tmp_path), name) == expected
    (tmp_path / ".env").unlink()
    (tmp_path / "pyproject.toml").write_text(f'[tool.tidemill]\n{name} = "{value}"\n')
    assert getattr(load(tmp_path), name) == expected
    assert entry.about.endswith(".")


def test_none_means_not_given_and_an_empty_variable_not_set(tmp_path: Path) -> None:
    assert load(tmp_path, {"TIDEMILL_SLOTS": ""}, slots=None).slots == 10


def test_nothing_can_be_said_in_words(tmp_path: Path) -> None:
    settings = load(tmp_path, {"TIDEMILL_CANCEL_GRACE": "never"}, timeout="none")
    assert (settings.cancel_grace, settings.timeout) == (None, None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30", 30.0),
        (" 0.5 ", 0.5),
        ("500ms", 0.5),
        ("2 m", 120.0),
        ("1h", 3_600.0),
        (".5s", 0.5),
        ("1d", 86_400.0),
    ],
)
def test_lengths_of_time(text: str, value: float, tmp_path: Path) -> None:
    assert load(tmp_path, shutdown_timeout=text).shutdown_timeout == value


def test_lengths_of_time_from_code(tmp_path: Path) -> None:
    assert load(tmp_path, timeout=timedelta(minutes=2)).timeout == 120.0
    assert load(tmp_path, timeout=2).timeout == 2.0


@pytest.mark.parametrize(
    ("text", "keep"),
    [
        ("forever", Keep()),
        ("7d", Keep(age=604_800.0)),
        ("0", Keep(count=0)),
        ("24h, 500", Keep(age=86_400.0, count=500)),
        ("500 24h", Keep(age=86_400.0, count=500)),
        ("", None),
    ],
)
def test_retention(text: str, keep: Keep | None, tmp_path: Path) -> None:
    assert load(tmp_path, keep_completed=text).keep_completed == keep


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("slots", "ten", "a whole number between 1 and 1,000, not 'ten'"),
        ("slots", 0, "between 1 and"),
        ("slots", True, "a whole number"),
        ("slots", 1.5, "a whole number"),
        ("heartbeat", "2 fortnights", "such as 30, 500ms or 5m"),
        ("heartbeat", "1d", "a length of time between 0.05 s and 1h, such as 30, 500ms or 5m"),
        ("heartbeat", "nan", "a length of time"),
        ("heartbeat", float("nan"), "a length of time"),
        ("timeout", "-1", "a length of time"),
        ("timeout", 0, "a length of time"),
        ("payload_limit", "2MiB", "1,048,576 bytes"),
        ("keep_dead", "7d 8d", 'or "forever"'),
        ("keep_dead", "", 'or "forever"'),
        ("keep_dead", 3, 'or "forever"'),
        ("log_format", "xml", "one of text, json"),
        ("namespace", "Shop", "a namespace: a lower-case letter, then"),
        ("namespace", 5, "a namespace: a lower-case letter, then"),
        ("queues", "a,b c", "names of queues"),
        ("queues", 7, "names of queues"),
        ("app", "shop.jobs", "module:attribute"),
        ("url", "tidemill.db", "sqlite:///tidemill.db"),
        ("url", "/var/lib/x.db", "a URL"),
    ],
)
def test_a_bad_value_names_the_setting_and_the_rule(
    name: str, value: object, says: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput) as caught:
        load(tmp_path, None, **{name: value})
    assert str(caught.value).startswith(f"the argument {name}: {name} is ")
    assert says in str(caught.value)


@given(st.text(max_size=20))
def test_no_text_breaks_a_rule(text: str) -> None:
    for entry in Settings.table().values():
        with suppress(BadInput):
            entry.read(text, "here")


def test_a_bad_value_names_where_it_came_from(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^environment TIDEMILL_SLOTS: slots is"):
        load(tmp_path, {"TIDEMILL_SLOTS": "x"})
    (tmp_path / ".env").write_text("TIDEMILL_SLOTS=x\n")
    with pytest.raises(BadInput, match=r"\.env TIDEMILL_SLOTS: slots is"):
        load(tmp_path)


def test_a_lease_shorter_than_two_heartbeats_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="longer than two heartbeats"):
        load(tmp_path, {"TIDEMILL_HEARTBEAT": "5s"})


def test_unknown_names_are_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no setting 'slot'; did you mean 'slots'"):
        load(tmp_path, slot=1)
    (tmp_path / "pyproject.toml").write_text("[tool.tidemill]\nslotz = 1\n")
    with pytest.raises(BadInput, match="no setting 'slotz'; did you mean 'slots'"):
        load(tmp_path)


def test_the_files_of_the_project_are_found_from_a_folder_inside(tmp_path: Path) -> None:
    inner = tmp_path / "src" / "shop"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.tidemill]\nslots = 3\n")
    (tmp_path / ".env").write_text("TIDEMILL_PROCESSES=4\n")
    settings = load(inner)
    assert (settings.slots, settings.processes.least) == (3, 4)
    (inner / ".env").write_text("TIDEMILL_PROCESSES=5\n")
    assert load(inner).processes.least == 5


def test_without_a_project_only_the_own_dotenv_counts(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / ".env").write_text("TIDEMILL_PROCESSES=4\n")
    assert load(inner).processes.least == 1


def test_a_dotenv_may_have_quotes_comments_and_exports(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(
        "# a comment\n\nexport A=1\nB='two # words'\nC=\"three\" # x\nD=four # x\nE=\nF=a#b\nG = spaced \n"
    )
    expected = {"A": "1", "B": "two # words", "C": "three", "D": "four", "E": "", "F": "a#b", "G": "spaced"}
    assert parse_dotenv(file) == expected


@pytest.mark.parametrize("line", ["TIDEMILL_SLOTS", "=3", "TIDEMILL_SLOTS='3", "TIDEMILL_SLOTS='3' 4"])
def test_a_line_of_dotenv_that_cannot_be_read_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"A=1\n{line}\n")
    with pytest.raises(BadInput, match="line 2"):
        load(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[tool.tidemill]\nslots = 3",
        "[ tool . 'tidemill' ]\nslots = 3",
        "tool.tidemill.slots = 3",
        "tool = {tidemill = {slots = 3}}",
        "[tool]\ntidemill.slots = 3",
        "['tool']\ntidemill = {slots = 3}",
    ],
)
def test_however_the_table_is_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert load(tmp_path).slots == 3


def test_a_project_without_the_table_is_not_even_read_as_toml(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["tidemill"]\nthis is no TOML')
    assert load(tmp_path).source_of("slots") == "default"


@pytest.mark.parametrize("content", [b"[tool.tidemill\n", b"\xff\xfe[tool.tidemill]\n"])
def test_a_pyproject_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content)
    with pytest.raises(BadInput, match=r"pyproject\.toml"):
        load(tmp_path)


def test_a_pyproject_that_does_not_speak_of_us_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[broken\n")
    assert load(tmp_path).slots == 10


# Secrets


def test_a_secret_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("redis://:s3cret@h/0\n")
    settings = load(tmp_path, {"TIDEMILL_URL_FILE": str(file)})
    assert settings.url == "redis://:s3cret@h/0"
    assert settings.source_of("url") == "environment TIDEMILL_URL_FILE"


def test_a_file_of_a_secret_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"TIDEMILL_URL_FILE: .*nowhere cannot be read: No such file"):
        load(tmp_path, {"TIDEMILL_URL_FILE": str(tmp_path / "nowhere")})


def test_a_file_that_is_far_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="larger than"):
        load(tmp_path, {"TIDEMILL_URL_FILE": "/dev/zero"})


def test_a_secret_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="are both set"):
        load(tmp_path, {"TIDEMILL_URL_FILE": "/x", "TIDEMILL_URL": "y"})


def test_secrets_are_never_shown(tmp_path: Path) -> None:
    url = "postgresql://me:s3cret@host/shop?password=s3cret"
    settings = load(tmp_path, url=url)
    assert settings.url == url
    shown = repr(settings) + str(settings) + "".join(map(settings.shown, settings))
    assert "s3cret" not in shown
    assert "postgresql://me:***@host/shop?password=***" in shown


def test_a_bad_secret_is_not_shown_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        load(tmp_path, {"TIDEMILL_URL": "s3cret@host"})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:pw@h/0", "redis://:***@h/0"),
        ("redis://u:p@w@h/0", "redis://u:***@h/0"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("sqlite:////a/b:c@d.db", "sqlite:////a/b:c@d.db"),
        ("x://h?a=1&Token=t&b=2", "x://h?a=1&Token=***&b=2"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_settings_do_not_change(tmp_path: Path) -> None:
    settings = load(tmp_path)
    with pytest.raises(AttributeError, match="do not change"):
        settings.slots = 3
    with pytest.raises(AttributeError):
        settings.other = 3  # type: ignore[attr-defined]


# Pages made from the table


@pytest.mark.row("A11")
@pytest.mark.parametrize(
    ("page", "made"), [(".env.example", env_example), ("docs/settings.md", settings_page)]
)
def test_the_pages_are_up_to_date(page: str, made: Callable[[], str]) -> None:
    assert (ROOT / page).read_text() == made(), f"{page} is stale: run `./dev _docs`"


def test_the_example_sets_nothing_and_its_values_are_the_defaults(tmp_path: Path) -> None:
    dotenv = tmp_path / ".env"
    dotenv.write_text(env_example())
    assert {load(tmp_path).source_of(name) for name in Settings.table()} == {"default"}
    lines = (line.removeprefix("# ") for line in env_example().splitlines() if line.startswith("# TIDEMILL_"))
    dotenv.write_text("\n".join(line for line in lines if "_FILE=" not in line))
    settings, defaults = load(tmp_path), load(ROOT / "tests")
    assert all(getattr(settings, name) == getattr(defaults, name) for name in settings if name != "url")
    assert settings.url == f"sqlite:///{tmp_path}/tidemill.db"


@pytest.mark.row("A11")
def test_a_relative_file_in_a_projects_settings_is_beside_them(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tidemill]\nurl = "sqlite:///shop.db?durability=normal"\n')
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    for folder in (tmp_path, deep):
        assert load(folder).url == f"sqlite:///{tmp_path}/shop.db?durability=normal"
    (tmp_path / ".env").write_text("TIDEMILL_URL=sqlite:///other.db\n")
    assert load(deep).url == f"sqlite:///{tmp_path}/other.db"
    assert load(deep, {"TIDEMILL_URL": "sqlite:///here.db"}).url == "sqlite:///here.db"


def test_the_settings_are_cheap_to_import() -> None:
    code = (
        "import sys, types; sys.modules['tidemill'] = fake = types.ModuleType('tidemill'); "
        f"fake.__path__ = [{str(ROOT / 'src' / 'tidemill')!r}]; import tidemill.task.settings; "
        "print([name for name in ('msgspec', 'tomllib', 'asyncio') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
