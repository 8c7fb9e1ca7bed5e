"""The table of all settings. Add one here and nowhere else; `./dev _docs` writes the pages that show it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tidemill.model.errors import BadInput
from tidemill.model.names import nearest
from tidemill.task.settings import rules
from tidemill.task.settings.setting import Found, Setting
from tidemill.task.settings.sources import Project, from_environment

_YEAR_S = 366 * 86_400.0
PAYLOAD_MOST = 1 << 20
"""As `tidemill.model.jobs.job.PAYLOAD_LIMIT`, which would bring msgspec with it; a test compares them."""


class Settings:
    """All settings, read once. Attributes cannot be set; `source_of` says where a value came from."""

    __slots__ = ("_found",)

    url = Setting(
        "sqlite:///tidemill.db",
        rules.url,
        "Where state lives. `sqlite:///relative.db`, `sqlite:////absolute/path.db`, "
        "`postgresql://user:password@host:5432/database`, `redis://host:6379/0`.",
        secret=True,
    )
    namespace = Setting(
        "tidemill",
        rules.namespace,
        "Keeps applications apart that share one server. With SQLite the file does that.",
    )
    app = Setting(
        "",
        rules.optional(rules.app),
        "The application, `module:attribute`, where a command line does not name one.",
    )
    processes = Setting(
        "1",
        rules.processes,
        "Worker processes of one `tidemill worker`: a number, or `1..4` for as many as the load wants, from "
        "a least to a most.",
    )
    slots = Setting("10", rules.whole(1, 1_000), "Jobs that one worker process runs at once.")
    queues = Setting(
        "",
        rules.queues,
        "The queues that a worker takes from, separated by commas. Empty: all of its application.",
    )
    scale_wait = Setting(
        "2s",
        rules.seconds(0.01, 86_400),
        "With `1..4` processes: more are started when waiting jobs would not begin within this time.",
    )
    scale_calm = Setting(
        "30s",
        rules.seconds(0.01, 86_400),
        "With `1..4` processes: some are stopped when fewer have been enough for this long.",
    )
    recycle_after_jobs = Setting(
        "",
        rules.optional(rules.whole(1, 1_000_000_000)),
        "A worker process that has finished so many jobs is replaced by a new one. Empty: never.",
    )
    recycle_above_mb = Setting(
        "",
        rules.optional(rules.whole(1, 1_000_000_000)),
        "A worker process that has more memory than this, in MiB, is replaced by a new one. Empty: never.",
    )
    heartbeat = Setting("2s", rules.seconds(0.05, 3_600), "How often a member says that it lives.")
    lease = Setting(
        "10s", rules.seconds(0.1, 86_400), "A member silent for this long is gone, and others get its jobs."
    )
    sweep = Setting("2s", rules.seconds(0.05, 3_600), "How often a member checks for members that are gone.")
    give_up_after = Setting(
        "30",
        rules.whole(1, 1_000_000),
        "Failed heartbeats in a row after which a worker ends (exit code 75) once nothing runs.",
    )
    shutdown_timeout = Setting(
        "30s",
        rules.seconds(0, 86_400),
        "How long running jobs may go on after SIGTERM or SIGINT before they are handed back.",
    )
    cancel_grace = Setting(
        "5s",
        rules.optional(rules.seconds(0, 86_400)),
        "How long a running async job that was asked to stop has until it is cancelled. `never`: only asked.",
    )
    retry_attempts = Setting("5", rules.whole(1, 10_000), "Tries of a job, the first included.")
    retry_base = Setting(
        "1s", rules.seconds(0, _YEAR_S), "The ceiling of the first wait before a retry; it doubles with each."
    )
    retry_cap = Setting("5m", rules.seconds(0, _YEAR_S), "The highest ceiling of a wait before a retry.")
    timeout = Setting(
        "",
        rules.optional(rules.seconds(0.001, _YEAR_S)),
        "How long one attempt may run. Empty: as long as it likes.",
    )
    payload_limit = Setting(
        "1MiB", rules.size(1, PAYLOAD_MOST), "The most bytes of a job's encoded arguments, and of its result."
    )
    keep_completed = Setting(
        "",
        rules.unless_empty(rules.keep),
        "How long completed and cancelled jobs stay, and the most of them in a queue. Empty: as the engine "
        "keeps them, `24h 1000000`; on Redis `24h 10000`.",
    )
    keep_dead = Setting("forever", rules.keep, "How long dead letters stay, and the most of them in a queue.")
    log_format = Setting(
        "text",
        rules.one_of("text", "json"),
        "How a worker writes its log: for people, or a JSON object a line.",
    )

    _found: dict[str, Found]

    def __init__(self, found: dict[str, Found]) -> None:
        object.__setattr__(self, "_found", found)

    @classmethod
    def table(cls) -> dict[str, Setting[Any]]:
        """Every setting by name, in the order of this page."""
        return {name: entry for name, entry in vars(cls).items() if isinstance(entry, Setting)}

    @classmethod
    def load(
        cls,
        *,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
        given_as: str = "the argument {name}",
        **given: object,
    ) -> "Settings":
        """Read every source. In `given`, None means "not given"; to say "nothing", write "none".

        `environ` and `folder` stand in for the process's own environment and working folder. `BadInput` names
        the setting and the source of a value that cannot be used."""
        table = cls.table()
        for name in given:
            if name not in table:
                raise BadInput(f"there is no setting {name!r}{nearest(name, table)}")
        environ = os.environ if environ is None else environ
        project = Project(folder, table)
        found = {}
        for name, entry in table.items():
            if (value := given.get(name)) is not None:
                found[name] = entry.read(value, given_as.format(name=name))
            else:
                text, source = (
                    from_environment(entry, environ) or project.look_up(entry) or (entry.default, "default")
                )
                found[name] = entry.read(text, source)
        return cls(found)._checked()

    def but(self, *, given_as: str = "the argument {name}", **given: object) -> "Settings":
        """The same settings with some of them said anew; None means "not given"."""
        table = self.table()
        said = {name: value for name, value in given.items() if value is not None}
        changed = {name: table[name].read(value, given_as.format(name=name)) for name, value in said.items()}
        return Settings({**self._found, **changed})._checked()

    def source_of(self, name: str) -> str:
        """Where a value came from, for people."""
        return self._found[name].source

    def shown(self, name: str) -> str:
        """A value for people: passwords are hidden."""
        return self.table()[name].shown(self._found[name].value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __repr__(self) -> str:
        chosen = (name for name in self if self.source_of(name) != "default")
        return f"Settings({', '.join(f'{name}={self.shown(name)!r}' for name in chosen)})"

    def _checked(self) -> "Settings":
        """Refuse values that make no sense together."""
        if self.lease <= 2 * self.heartbeat:
            raise BadInput(
                f"lease ({self.shown('lease')}, {self.source_of('lease')}) must be longer than two "
                f"heartbeats ({self.shown('heartbeat')} each, {self.source_of('heartbeat')}): else one late "
                "heartbeat loses it"
            )
        return self
