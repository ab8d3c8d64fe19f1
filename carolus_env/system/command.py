"""Commands: options from the command line, and errors as messages and exit codes.

    @command("carolus count")
    def main(arguments: Sequence[str], program: str) -> int:
        options, given = parse(CountOptions, arguments, program, __doc__)
        ...
        return DONE

Whatever a command raises ends in one line that begins with the program's name as the user typed
it, and an exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol, TypeVar

from carolus_env.system.cancellation import ended_by_sigterm
from carolus_env.system.failures import MissingExtraError, UserError
from carolus_env.system.options import (
    REQUIRED,
    allowed,
    checked,
    declared,
    headings,
    make,
    parsed,
    value_text,
)
from carolus_env.system.untrusted import unknown

if TYPE_CHECKING:
    from rich.console import Console

DONE, FAILED, USER_ERROR, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141
"""Exit codes; the last is that of a program that SIGPIPE ends."""

Options = TypeVar("Options")
_INTERPRETER: Final = "python "
_CALLED: Final = re.compile(r"(?m)^( +)(?:python -m \S+|python \S+\.py|carolus [a-z]+)(?= |$)")


class Main(Protocol):
    """A command's ``main``: returns the exit code."""

    def __call__(self, arguments: Sequence[str] | None = None, program: str = "") -> int:
        """Run the command.

        Args:
            arguments: the command's arguments; None: those of the command line.
            program: the words before them on the command line; empty: the command's name.
        """


def command(
    name: str, *, failed: int = FAILED
) -> Callable[[Callable[[Sequence[str], str], int]], Main]:
    """Return a decorator for the ``main`` of a command, which gives its errors to the user.

    Args:
        name: how users call the command, if they call it by no other name.
        failed: exit code of a failure that is no mistake of the user's.
    """

    def decorate(body: Callable[[Sequence[str], str], int]) -> Main:
        @functools.wraps(body)
        def main(arguments: Sequence[str] | None = None, program: str = "") -> int:
            program = program or name
            words = sys.argv[1:] if arguments is None else arguments
            prepare_streams()
            with ended_by_sigterm():
                return guarded(lambda: body(words, program), program, failed)

        return main

    return decorate


def guarded(body: Callable[[], int], program: str, failed: int = FAILED) -> int:
    """Call a command's body; return the exit code, its own or that of the error it raises."""
    try:
        try:
            code = body()
        except HelpShown:
            code = DONE
        print(end="", flush=True)  # a full disk fails here, not at Python's exit
        return code
    except UserError as error:
        note(error.details.rstrip())
        return complain(program, error, error.code)
    except MissingExtraError as error:
        return complain(program, error, failed)
    except ValueError as error:
        return complain(program, error, USER_ERROR)
    except KeyboardInterrupt:
        return complain(program, "interrupted", INTERRUPTED)
    except MemoryError:
        return complain(program, "there is not enough memory", failed)
    except BrokenPipeError:  # the reader, say `head`, has closed the pipe
        _discard_output()
        return PIPE_CLOSED
    except OSError as error:
        reason = error.strerror or str(error)
        if error.filename is None:
            _discard_output()
            return complain(program, f"the output could not be written: {reason}", failed)
        return complain(program, f"{os.fsdecode(error.filename)}: {reason}", failed)


def complain(program: str, text: object, code: int) -> int:
    """Print a line that begins with the program's name; return the exit code given."""
    line = " ".join(str(text).split())
    note(f"{short_name(program)}: {line or type(text).__name__}")
    return code


def note(text: str) -> None:
    """Print a message on standard error, if there is one and it is not empty."""
    if text:
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr, flush=True)


def short_name(program: str) -> str:
    """Return the name that messages begin with: ``train.py`` for ``python train.py``."""
    script = program.removeprefix(_INTERPRETER)
    return script if script.endswith(".py") else program


def prepare_streams() -> None:
    """Make the standard streams usable, whatever the program was started with.

    A closed one becomes empty, and its number is taken, or the next file that is opened would be
    written to by whatever prints. Those of few characters show others by their numbers.
    """
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
    """The options of a command line, and the names of those that were given."""

    options: Any
    given: dict[str, Any]
    """The values that were given, by name."""


class HelpShown(Exception):  # noqa: N818 - no error: --help was asked for
    """The user asked for help, and has it."""


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are user errors."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see --help)")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
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
    """Return a parser without options, whose help shows a module's docstring.

    Args:
        program: how the user calls the command.
        about: the docstring; its indented lines are examples, which --help shows with ``program``.
        usage: the arguments, where a list of all would be too long.
        help: True: it has --help.
    """
    name = short_name(program)
    return _Parser(
        prog=name,
        usage=f"{name} {usage}" if usage else None,
        description=_CALLED.sub(rf"\1{program}", about or ""),
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=26
        ),
        allow_abbrev=False,
        add_help=help,
    )


def parse(
    kind: type[Any], arguments: Sequence[str], program: str, about: str | None, usage: str = ""
) -> Parsed:
    """Read the options of a command line.

    Args:
        kind: the dataclass of the options.
        arguments: the words.
        program: how the user calls the command.
        about: a module's docstring, see `parser_of`.
        usage: see `parser_of`.

    Raises:
        UserError: for an unknown option, or a value that is not allowed.
    """
    parser = parser_of(program, about, usage)
    add_options(parser, kind)
    values = vars(parser.parse_args(arguments))
    return Parsed(make(kind, values), values)


def script_options(kind: type[Options], about: str | None) -> Options:
    """Read the options of a script from the command line, and end the program if they are wrong.

    Args:
        kind: the dataclass of the options.
        about: the script's docstring, see `parser_of`.
    """
    program, read = f"python {Path(sys.argv[0]).name}", []
    prepare_streams()

    def body() -> int:
        read.append(parse(kind, sys.argv[1:], program, about).options)
        return DONE

    code = guarded(body, program)
    if not read:
        sys.exit(code)
    return read[0]


def add_options(
    parser: argparse.ArgumentParser,
    kind: Any,
    names: Iterable[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Add options to a parser, which then has the values of those that are given, and no others.

    Args:
        parser: the parser.
        kind: the dataclass of the options.
        names: the options, in the order of --help; None: all.
        defaults: what --help shows as defaults, where it is not those of the declarations.
    """
    entries, under = declared(kind), headings(kind)
    groups: dict[str, Any] = {"": parser}
    for name in entries if names is None else names:
        about, heading = entries[name].metadata, under[name]
        if heading not in groups:
            groups[heading] = parser.add_argument_group(heading)
        settings = _settings(entries[name], (defaults or {}).get(name, entries[name].default))
        word = name if about["positional"] else typed_option(name)
        groups[heading].add_argument(word, **settings)


def typed_option(name: str) -> str:
    """Return how an option is typed: ``--max-rounds`` for ``max_rounds``."""
    return "--" + name.replace("_", "-")


_METAVARS: Final = {
    int: "N",
    float: "X",
    str: "TEXT",
    Path: "PATH",
    tuple: "TEXT",
    object: "TEXT",
}


def _settings(entry: Field[Any], usual: Any) -> dict[str, Any]:
    """Return what argparse is told of an option."""
    about, required = entry.metadata, entry.default is REQUIRED
    settings: dict[str, Any] = {"default": argparse.SUPPRESS, "help": _help(entry, usual)}
    if about["kind"] is bool:
        return {**settings, "action": "store_true"}
    settings["metavar"] = about["metavar"] or (
        "WORD" if about["among"] and about["kind"] is str else _METAVARS[about["kind"]]
    )
    settings["type"] = functools.partial(_value, entry)
    if about["repeated"]:
        settings["action"] = "append"
    elif about["kind"] is tuple:
        settings["nargs"] = "+" if required else "*"
    if required and not about["positional"]:
        settings["required"] = True
    return settings


def _help(entry: Field[Any], usual: Any) -> str:
    """Return an option's line of --help: what it is, what is allowed, and the default."""
    about = entry.metadata
    text = about["about"]
    is_limited = about["among"] not in (None, (0, None), (1, None)) or about["above"] is not None
    if is_limited or about["what"]:
        text += f": {allowed(entry)}"
    if usual is not REQUIRED and usual is not None and usual is not False and usual not in ((), ""):
        shown = " ".join(usual) if isinstance(usual, tuple) else value_text(usual)
        text += f" (default: {shown})"
    return text.replace("%", "%%")


def _value(entry: Field[Any], text: str) -> Any:
    """Return what argparse makes of an option's text."""
    if entry.metadata["kind"] is tuple:
        return text
    name = entry.metadata["metavar"] if entry.metadata["positional"] else typed_option(entry.name)
    try:
        return checked(entry, parsed(entry, text), name)
    except ValueError as error:
        raise UserError(str(error)) from None


def refuse_unused(given: Mapping[str, Any], used: Iterable[str], mode: str) -> None:
    """Refuse options that a mode of a command does not use.

    Args:
        given: the options that were given, by name.
        used: the names of those that it uses.
        mode: what the mode is called, such as ``--suite``.

    Raises:
        UserError: naming them.
    """
    if unused := [typed_option(name) for name in given if name not in set(used)]:
        raise UserError(f"{mode} does not use {', '.join(unused)}")


def needs(given: Mapping[str, Any], name: str, is_met: object, what: str) -> None:
    """Refuse an option that was given, and has no effect without another one.

    Args:
        given: the options that were given, by name.
        name: the option.
        is_met: true if it has an effect.
        what: what it needs.

    Raises:
        UserError: naming both.
    """
    if name in given and not is_met:
        raise UserError(f"{typed_option(name)} needs {what}")


# ------------------------------------------------------------------------------------ output


@contextlib.contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a progress bar on standard error; none without a terminal or rich.

    Args:
        what: name of the things to count.
        total: number of things.

    Yields:
        what to call with the number that is done.
    """
    try:
        from rich import progress
    except ImportError:
        yield lambda done: None
        return
    console = plain_console(stderr=True)
    with progress.Progress(
        *progress.Progress.get_default_columns(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def plain_console(*, stderr: bool = False) -> Console:
    """Return a console that prints texts as they are: names of users' hold what they like.

    Lines are as long as they are, so that commands in them can be copied.
    """
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def aligned(rows: Sequence[Sequence[str]], *, right: Container[int] = ()) -> list[str]:
    """Format rows of cells as lines with aligned columns.

    Args:
        rows: rows of the same number of cells, one or more.
        right: the columns that are aligned on the right.
    """
    widths = [max(map(text_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        spaces = [" " * (width - text_width(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [
            space + cell if k in right else cell + space
            for k, (cell, space) in enumerate(zip(row, spaces, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def text_width(text: str) -> int:
    """Return the number of characters that a text takes on a terminal: a Chinese one takes two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
