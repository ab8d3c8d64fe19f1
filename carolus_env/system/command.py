"""Commands: options from the command line, and errors as messages and exit codes.

    @command("carolus count")
    def main(arguments: Sequence[str], program: str) -> int:
        options, given = parse(CountOptions, arguments, program, __doc__)
        ...
        return DONE

Whatever a command raises ends in one line that begins with its name, and an exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import io
import os
import signal
import sys
import threading
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar

from carolus_env.system import options
from carolus_env.system.machine import MissingExtraError
from carolus_env.system.options import REQUIRED, Option, UserError
from carolus_env.system.untrusted import unknown

if TYPE_CHECKING:
    from rich.console import Console

DONE, FAILED, USER_ERROR, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141
"""Exit codes; the last is that of a program that SIGPIPE ends."""

Options = TypeVar("Options")


def command(
    name: str, *, failed: int = FAILED
) -> Callable[[Callable[[Sequence[str], str], int]], Callable[..., int]]:
    """Return a decorator of a ``main``, whose arguments are the command line's unless given."""

    def decorate(body: Callable[[Sequence[str], str], int]) -> Callable[..., int]:
        @functools.wraps(body)
        def main(arguments: Sequence[str] | None = None) -> int:
            _prepare_streams()
            with handling(signal.default_int_handler, signal.SIGTERM):  # it is as Ctrl-C
                try:
                    code = body(sys.argv[1:] if arguments is None else arguments, name)
                    print(end="", flush=True)  # a full disk fails here, not at Python's exit
                    return code
                except BaseException as error:
                    return _tell(error, name, failed)

        return main

    return decorate


@contextlib.contextmanager
def handling(handler: Callable[..., Any], *signals: signal.Signals) -> Iterator[None]:
    """Let a function handle signals in the ``with`` block; only in the main thread, which can."""
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number in signals if is_main}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


_TOO_FEW: Final = {
    errno.EAGAIN: "no further process or thread may be started; use fewer --workers or --threads,"
    " or allow more by ulimit -u",
    errno.EMFILE: "too many files are open; use fewer --workers, or allow more by ulimit -n",
    errno.ENFILE: "too many files are open on this machine; use fewer --workers",
    errno.ENOMEM: "there is not enough memory; use fewer --workers",
}
"""What the system has too few of, and what helps."""


def _tell(error: BaseException, program: str, failed: int) -> int:
    """Tell the user of a command's error, and return the exit code."""
    text: object = error
    code = failed
    match error:
        case HelpShown():
            return DONE
        case UserError():
            note(error.details.rstrip())
            code = error.code
        case MissingExtraError():
            pass
        case ValueError():
            code = USER_ERROR
        case KeyboardInterrupt():
            text, code = "interrupted", INTERRUPTED
        case MemoryError():
            text = "there is not enough memory"
        case BrokenPipeError():  # the reader, say `head`, has closed the pipe
            _discard_output()
            return PIPE_CLOSED
        case RuntimeError() if str(error) == "can't start new thread":
            text = f"{_TOO_FEW[errno.EAGAIN]} (a thread)"
        case OSError(errno=lack) if lack in _TOO_FEW and not hasattr(error, "characters_written"):
            text = f"{_TOO_FEW[lack]} ({error.strerror})"
        case OSError(filename=None):
            _discard_output()
            text = f"the output could not be written: {error.strerror or error}"
        case OSError():
            text = f"{os.fsdecode(error.filename)}: {error.strerror or error}"
        case _:
            raise error
    note(f"{program}: {' '.join(str(text).split()) or type(error).__name__}")
    return code


def note(text: str) -> None:
    """Print a message on standard error, if it is not empty, and there is one."""
    with contextlib.suppress(OSError):
        print(text, end="\n" if text else "", file=sys.stderr, flush=True)


def _prepare_streams() -> None:
    """Make the standard streams usable, whatever the program was started with."""
    # A closed one's number is taken, or the next file would be written to by whatever prints.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode)  # noqa: SIM115 - until the program ends
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Discard what standard output still holds, or Python would try again on exit."""
    with contextlib.suppress(OSError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


# ------------------------------------------------------------------------------------ options


class Parsed(NamedTuple):
    """The options of a command line."""

    options: Any  # of the dataclass
    given: dict[str, Any]  # the values of those that were given, by name


class HelpShown(Exception):  # noqa: N818 - no error
    """The user asked for --help, and has it."""


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are user errors."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see --help)")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        print(end="", flush=True)
        raise HelpShown

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        values, rest = self.parse_known_intermixed_args(args, namespace)
        if rest:
            known = [word for action in self._actions for word in action.option_strings]
            name = rest[0].partition("=")[0]
            self.error(unknown("unknown argument", name, known, listed=""))
        return values


def parser_of(
    program: str, about: str | None, usage: str = "", *, help: bool = True
) -> argparse.ArgumentParser:
    """Return a parser without options, whose help shows a module's docstring."""
    return _Parser(
        prog=program,
        usage=f"{program} {usage}" if usage else None,
        description=about or "",
        formatter_class=functools.partial(
            argparse.RawDescriptionHelpFormatter, max_help_position=26
        ),
        allow_abbrev=False,
        add_help=help,
    )


def parse(
    kind: type[Any], arguments: Sequence[str], program: str, about: str | None, usage: str = ""
) -> Parsed:
    """Read the options of a command line, those of the dataclass ``kind``; see `parser_of`."""
    parser = parser_of(program, about, usage)
    add_options(parser, kind)
    values = vars(parser.parse_args(arguments))
    return Parsed(options.make(kind, values), values)


def script_options(kind: type[Options], about: str | None) -> Options:
    """Read the options of a script, those of the dataclass ``kind``, or end the program."""
    read: list[Options] = []

    @command(Path(sys.argv[0]).name)
    def body(arguments: Sequence[str], program: str) -> int:
        read.append(parse(kind, arguments, program, about).options)
        return DONE

    code = body()
    return read[0] if read else sys.exit(code)


def add_options(
    parser: argparse.ArgumentParser,
    kind: Any,
    names: Iterable[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Add options to a parser, which then has the values of those that are given, and no others."""
    entries = options.declared(kind)
    groups: dict[str, Any] = {"": parser}
    for name in entries if names is None else names:
        entry = entries[name]
        if entry.heading not in groups:
            groups[entry.heading] = parser.add_argument_group(entry.heading)
        typed = name if entry.positional else typed_option(name)
        settings = _settings(entry, typed, (defaults or {}).get(name, entry.default))
        groups[entry.heading].add_argument(typed, **settings)


def typed_option(name: str) -> str:
    """Return how an option is typed: ``--max-rounds`` for ``max_rounds``."""
    return "--" + name.replace("_", "-")


def _settings(entry: Option, typed: str, usual: Any) -> dict[str, Any]:
    """Return what argparse is told of an option."""
    required = entry.default is REQUIRED
    settings: dict[str, Any] = {"default": argparse.SUPPRESS, "help": _help(entry, usual)}
    if entry.kind is bool:
        return {**settings, "action": "store_true"}
    metavars = {int: "N", float: "X", Path: "PATH", str: "WORD" if entry.among else "TEXT"}
    settings["metavar"] = entry.metavar or metavars.get(entry.kind, "TEXT")
    if entry.kind is not tuple:
        name = entry.metavar if entry.positional else typed
        settings["type"] = functools.partial(_value, entry, name)
    if entry.repeated:
        settings["action"] = "append"
    elif entry.kind is tuple:
        settings["nargs"] = "+" if required else "*"
    if required and not entry.positional:
        settings["required"] = True
    return settings


def _help(entry: Option, usual: Any) -> str:
    """Return an option's line of --help: what it is, what is allowed, and the default."""
    text = entry.about
    if entry.among not in (None, (0, None), (1, None)) or entry.above is not None:
        text += f": {entry.describe()}"
    if usual not in (REQUIRED, None, "", ()) and usual is not False:
        shown = " ".join(usual) if isinstance(usual, tuple) else options.value_text(usual)
        text += f" (default: {shown})"
    return text.replace("%", "%%")


def _value(entry: Option, name: str, text: str) -> Any:
    """Return what argparse makes of an option's text."""
    try:
        return entry.check(entry.parse(text), name)
    except ValueError as error:
        raise UserError(str(error)) from None


def refuse_unused(given: Iterable[str], used: Container[str], mode: str) -> None:
    """Refuse the options that were given, by name, and that a mode of a command does not use."""
    if unused := [typed_option(name) for name in given if name not in used]:
        raise UserError(f"{mode} does not use {', '.join(unused)}")


def needs(given: Container[str], name: str, is_met: object, what: str) -> None:
    """Refuse an option that was given, and has no effect without ``what``."""
    if name in given and not is_met:
        raise UserError(f"{typed_option(name)} needs {what}")


# ------------------------------------------------------------------------------------ output


@contextlib.contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error; none without a terminal or rich."""
    try:
        from rich import progress
    except ImportError:
        yield lambda done: None
        return
    console = plain_console(stderr=True)
    usual = progress.Progress.get_default_columns()
    columns = (*usual, progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
    with progress.Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def plain_console(*, stderr: bool = False) -> Console:
    """Return a console that prints texts as they are, users' names and long commands among them."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def aligned(rows: Sequence[Sequence[str]], *, right: Container[int] = ()) -> list[str]:
    """Format one or more rows of cells as lines, with some columns aligned on the right."""
    columns = []
    for k, column in enumerate(zip(*rows, strict=True)):
        width = max(map(_width, column))
        spaces = [" " * (width - _width(cell)) for cell in column]
        pairs = zip(spaces, column, strict=True)
        columns.append([space + cell if k in right else cell + space for space, cell in pairs])
    return ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]


def _width(text: str) -> int:
    """Return the number of characters that a text takes on a terminal: a Chinese one takes two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
