"""Queues for people: a row of a listing, and one queue with what is declared beside what was set."""

from typing import Any

import click
import msgspec

from tidemill.cli.output.text import Column, Columns, local, one_line
from tidemill.model.queues.layers import Layers, Override, declared_fields, declaring_apps, read_value
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.queues.spoken import words_of_limit, words_of_option
from tidemill.model.view import QueueInfo, TaskEntry

COLUMNS = ("QUEUE", "LIMIT", "PER KEY", "PAUSED", "SET BY OPERATORS", "OTHER OPTIONS")
_OWN_COLUMNS = ("concurrency", "rate", "per_key")


def queue_row(queue: QueueInfo) -> tuple[object, ...]:
    """One queue in a listing."""
    options = queue.options
    return (
        queue.name,
        words_of_limit(options.own),
        words_of_limit(options.per_key),
        paused_words(queue),
        ", ".join(sorted(queue.overrides)),
        ", ".join(f"{name}={words_of_option(name, value)}" for name, value in _others(options)),
    )


def show_problems(queue: QueueInfo) -> None:
    """What had to be left out of its options, on standard error."""
    for problem in queue.problems:
        click.secho(f"warning: {queue.name}: {one_line(problem)} (left out)", fg="yellow", err=True)


def show_queue(queue: QueueInfo) -> None:
    """One queue: each option that anybody says something of."""
    layers = Layers(declared=queue.declared, overrides=queue.overrides)
    declared, apps = declared_fields(layers), declaring_apps(layers)
    click.echo(click.style(one_line(queue.name), bold=True))
    if queue.paused_at is not None:
        click.echo(f"paused {one_line(paused_words(queue))}")
    click.echo(f"declared by {', '.join(map(one_line, _declaring(layers))) or 'no app'}")
    names = sorted({*declared, *queue.overrides})
    if names:
        click.echo()
        columns = Columns(*map(Column, ("OPTION", "IN FORCE", "DECLARED", "SET BY AN OPERATOR")))
        columns.print(
            (
                name,
                words_of_option(name, getattr(queue.options, name, None)),
                _said(name, declared, f" by {apps[name]}" if name in apps else " by a setting"),
                _override(name, queue.overrides.get(name)),
            )
            for name in names
        )
    show_problems(queue)


def paused_words(of: QueueInfo | TaskEntry) -> str:
    """Since when, by whom and why; empty: not paused."""
    if of.paused_at is None:
        return ""
    by = f" by {of.paused_by}" if of.paused_by else ""
    why = f": {of.paused_why}" if of.paused_why else ""
    return f"since {local(of.paused_at)}{by}{why}"


def in_force_words(queue: QueueInfo, names: list[str]) -> str:
    """`concurrency: 5 at once; rate: 100 in 60 s`."""
    return "; ".join(f"{name}: {words_of_option(name, getattr(queue.options, name, None))}" for name in names)


def _declaring(layers: Layers) -> list[str]:
    return sorted(app for app, each in layers.declared.items() if each.declares)


def _said(name: str, declared: dict[str, Any], by: str) -> str:
    return words_of_option(name, read_value(name, declared[name])) + by if name in declared else ""


def _override(name: str, override: Override | None) -> str:
    if override is None:
        return ""
    value = words_of_option(name, read_value(name, override.value))
    return f"{value} since {local(override.at)}{_by(override)}"


def _by(override: Override) -> str:
    by = f" by {override.by}" if override.by else ""
    return f"{by} ({override.why})" if override.why else by


def _others(options: QueueOptions) -> list[tuple[str, Any]]:
    named = msgspec.to_builtins(options)
    return [(name, getattr(options, name)) for name in named if name not in _OWN_COLUMNS]
