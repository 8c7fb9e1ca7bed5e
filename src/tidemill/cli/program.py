"""How a command is found, run and ended: lazily imported, one line for an error, an exit code for scripts."""

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

import click
from click.exceptions import NoArgsIsHelpError

from tidemill.cli import exits
from tidemill.model.errors import TidemillError
from tidemill.model.names import nearest

F = TypeVar("F", bound=Callable[..., Any])

_DEBUG = "tidemill.debug"
_COMMAND = "tidemill.command"
"""The command that runs, in the context's `obj`."""
_BARE_OPTION = re.compile(r"(?<![\w?&])([a-z_]+)=(?=[\s,;.)]|$)")
"""An option as Python's messages name it: `queue=`, without a value."""


class Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def __init__(self, *args: Any, lazy: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self._lazy, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._lazy[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with a hint from the names of commands that are not imported yet."""
        name = args[0]
        if not name.startswith("-") and name not in (known := self.list_commands(ctx)):
            ctx.fail(f"No such command {name!r}{nearest(name, known)}")
        return super().resolve_command(ctx, args)


class ReaderGone(Exception):
    """The reader of our output has closed it."""


class CommandLine(Commands):
    """The whole program: whatever goes wrong ends in one line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and exit. (With `standalone_mode=False` errors come out as they are.)"""
        extra.setdefault("obj", {})
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        sys.exit(self._exit_code(args, prog_name, complete_var, extra))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. click would answer a broken pipe itself, as a failure; so it must not see one."""
        try:
            code = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()  # what cannot be written is noticed here and not at exit
            return code
        except BrokenPipeError:
            raise ReaderGone from None

    def _exit_code(
        self,
        args: Sequence[str] | None,
        prog_name: str | None,
        complete_var: str | None,
        extra: dict[str, Any],
    ) -> int:
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            return code if isinstance(code, int) else exits.DONE
        except NoArgsIsHelpError as asked:
            asked.show()
            return exits.USAGE
        except click.UsageError as error:
            return _say(_usage(error), exits.USAGE)
        except click.ClickException as error:
            return _say(error.format_message(), error.exit_code)
        except click.Abort:
            # Calls that the interrupt kept from starting would complain on the way out.
            warnings.simplefilter("ignore", RuntimeWarning)
            return _say("interrupted", exits.INTERRUPTED)
        except ReaderGone:
            return _let_go_of_output()
        except TidemillError as error:
            _show_traceback(error, extra["obj"])
            # what follows a blank line is a remote traceback: `jobs show` has it too
            message = str(error).partition("\n\n")[0]
            return _say(_in_options(message, extra["obj"].get(_COMMAND)), exits.code_of(error))
        except OSError as error:
            _show_traceback(error, extra["obj"])
            _let_go_of_output()  # if it was the output that failed, the flush at exit would fail again
            return _say(
                f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", exits.IO
            )
        except Exception as error:
            _show_traceback(error, extra["obj"])
            return _say(
                f"this is a bug: {type(error).__name__}: {error} (--debug shows the traceback)", exits.BUG
            )


def debug_option(command: F) -> F:
    """`--debug`, on the program and on every command."""

    def note(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        obj = ctx.find_root().obj
        obj[_COMMAND] = ctx.command
        if value:
            obj[_DEBUG] = True

    option = click.option(
        "--debug", is_flag=True, expose_value=False, callback=note, help="Show tracebacks of errors."
    )
    return option(command)


def debugging() -> bool:
    """Whether `--debug` was given to the command that runs."""
    return bool(click.get_current_context().find_root().obj.get(_DEBUG))


def refuse(message: str) -> click.ClickException:
    """The error of a command that cannot do what was asked (exit code 1)."""
    return click.ClickException(message)


def _usage(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx else "tidemill"
    return f"{error.format_message().rstrip('.')} (see `{path} --help`)"


def _in_options(message: str, command: click.Command | None) -> str:
    """The message with the command's own options in place of Python's: `--queue` for `queue=`."""
    spelled = {
        param.name: max(param.opts, key=len)
        for param in (command.params if command is not None else ())
        if isinstance(param, click.Option)
    }
    return _BARE_OPTION.sub(lambda found: spelled.get(found[1], found[0]), message)


def _show_traceback(error: Exception, obj: dict[str, Any]) -> None:
    if obj.get(_DEBUG):
        traceback.print_exception(error)


def _say(message: str, code: int) -> int:
    # A line is a line: no text of an error may end it or draw on the terminal.
    click.echo("tidemill: " + " ".join(message.split()), err=True)
    return code


def _let_go_of_output() -> int:
    """The reader has gone (`| head`): nothing more can be written, and the flush at exit must not try."""
    with suppress(AttributeError, OSError, ValueError):  # no output at all, or one that is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.BROKEN_PIPE
