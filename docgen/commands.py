"""docs/cli.md, made from the commands themselves."""

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from tidemill.cli.bench.figures import BenchShape, Figure
from tidemill.cli.output import shapes

PAGE_WIDTH = 110

HEAD = """\
# Command line

Generated from the commands themselves; `tidemill COMMAND --help` prints the same.

## For scripts

| exit code | meaning |
|--:|---|
| 0 | done |
| 1 | not found, refused, or only a part was done; a worker: some jobs were handed back |
| 2 | wrong usage or input; nothing was changed |
| 69 | the engine cannot be reached, is locked or full; trying again may help |
| 70 | a bug |
| 74 | a file, or the output itself, cannot be read or written |
| 75 | a worker gave up on its engine |
| 78 | the place cannot be used: not Tidemill's, damaged, or of another version |
| 130 | interrupted |
| 141 | the reader of the output went away, as in `tidemill jobs ls \\| head -1` |

An error is one line on standard error; `--debug` shows the traceback. Without a terminal there are no
colours, bars or questions: what would be asked needs `--yes`. Results go to standard output, everything else
to standard error.

A command finds its engine by `--url` and `--namespace`, else by the application (`-A`), else by the
[settings](settings.md).

## JSON

With `--json` a command prints one JSON object a line. Fields may be added, none are taken away. Times are
RFC 3339 in UTC, lengths of time are seconds in fields that end in `_s`, ids are dashed UUIDs.
"""

SHAPES: tuple[tuple[str, type[msgspec.Struct]], ...] = (
    ("`jobs ls`, `jobs show`, `dead ls`, `dead show`", shapes.JobShape),
    ("`error` and `failures` of a job", shapes.FailureShape),
    ("`jobs why`", shapes.WhyShape),
    ("`reasons` of `jobs why`, `why` of `jobs show`", shapes.ReasonShape),
    ("`holders` of a reason", shapes.HolderJobShape),
    ("`opens` of a reason", shapes.OpensShape),
    ("`dead groups`", shapes.DeadGroupShape),
    ("`payload` of a job", shapes.Payload),
    ("`jobs run|retry|cancel|clear`, `dead replay|drop` with ids", shapes.AnswerShape),
    ("the same with a filter", shapes.BulkShape),
    ("`enqueue`", shapes.EnqueuedShape),
    ("`stats`", shapes.StatsShape),
    ("`window` of `stats`", shapes.FinishedShape),
    ("`wait` and `run` of `stats`", shapes.TimesShape),
    ("`queues ls|show|set|reset`", shapes.QueueShape),
    ("`overrides` of a queue", shapes.OverrideShape),
    ("`tasks ls`", shapes.TaskShape),
    ("`scale`", shapes.ScaleShape),
    ("`queues` of `scale`", shapes.QueueScaleShape),
    ("`schedules ls`", shapes.ScheduleShape),
    ("`schedules run`", shapes.ScheduledShape),
    ("`members`", shapes.MemberShape),
    ("`processes` of a member", shapes.ProcessShape),
    ("`runs` of a process", shapes.RunShape),
    ("`events`", shapes.EventShape),
    ("`events`, where some are missing", shapes.GapShape),
    ("`doctor`", shapes.DoctorShape),
    ("`parts` of `doctor`", shapes.PartShape),
    ("`holders` of `doctor`", shapes.HolderShape),
    ("`warnings` of `doctor`", shapes.WarningShape),
    ("`config show`", shapes.SettingShape),
    ("`bench`", BenchShape),
    ("`figures` of `bench`", Figure),
)


def cli_page(program: click.Group) -> str:
    """The whole page."""
    return "\n".join((HEAD, *(_shape(*shape) for shape in SHAPES), "## Commands\n", *_commands(program)))


def _shape(title: str, shape: type[msgspec.Struct]) -> str:
    schema = msgspec.json.schema_components([shape])[1][shape.__name__]
    rows = (_field(name, about) for name, about in schema["properties"].items())
    return f"### {title}\n\n{schema['description']}\n\n| field | type | meaning |\n|---|---|---|\n" + "".join(
        rows
    )


def _field(name: str, about: dict[str, Any]) -> str:
    return f"| `{name}` | {_type(about)} | {about.get('description', '')} |\n"


def _type(about: dict[str, Any]) -> str:
    if "anyOf" in about:
        return " or ".join(_type(part) for part in about["anyOf"])
    if "$ref" in about:
        return "object"
    if about.get("type") == "array":
        return "array"
    return str(about.get("type", "any"))


def _commands(program: click.Group) -> Iterator[str]:
    for path, command in _walk(program, click.Context(program)):
        yield f"### {path}\n\n```text\n{_help(path, command)}\n```\n"


def _help(path: str, command: click.Command) -> str:
    context = click.Context(
        command, info_name=path, terminal_width=PAGE_WIDTH, help_option_names=["-h", "--help"]
    )
    return command.get_help(context).rstrip()


def _walk(
    group: click.Group, context: click.Context, path: str = "tidemill"
) -> Iterator[tuple[str, click.Command]]:
    yield path, group
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden or name.startswith("_"):
            continue
        if isinstance(command, click.Group):
            yield from _walk(command, context, f"{path} {name}")
        else:
            yield f"{path} {name}", command
