"""The commands, ``carolus train`` and so on, by the first word of the command line.

The module of a command is imported only when it runs, since some need packages of an extra.
"""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from carolus_env.system.command import DONE, command, guarded, prepare_streams
from carolus_env.system.failures import MissingExtraError, UserError
from carolus_env.system.untrusted import unknown
from carolus_env.system.version import __version__

PROGRAM: Final = "carolus"
MODULE: Final = "python -m carolus_env"


class Command(NamedTuple):
    """A command: the module of its ``main(arguments, program)``, and its purpose."""

    module: str
    about: str
    extra: str = ""
    """The extra that it needs; empty: none, or only for a part of it."""


COMMANDS: Final = {
    "train": Command("commands.train", "train an agent by self-play", "train"),
    "evaluate": Command(
        "commands.evaluate", "let agents play each other: win rates, ratings", "evaluation"
    ),
    "play": Command("play.__main__", "play in the browser or the terminal, view games", "play"),
    "replay": Command("replay", "replay game records and compare them with the engine"),
    "dataset": Command("commands.dataset", "make arrays for offline learning from agents' games"),
    "analyse": Command("commands.analyse", "roll a position out: what each choice is worth"),
    "engine": Command("commands.engine", "answer positions by an agent, a JSON object a line"),
    "warmup": Command("commands.warmup", "compile kernels now, rather than when first used"),
}


@command(PROGRAM)
def main(arguments: Sequence[str], program: str) -> int:
    """Run the command that the first word names; returns the exit code."""
    name, *words = arguments or ["--help"]
    if name in COMMANDS:
        return run(name, words, f"{program} {name}")
    if name == "--version":
        print(f"carolus-env {__version__}")
    elif name in ("-h", "--help"):
        print(_help(program))
    else:
        raise UserError(unknown("unknown command", name, COMMANDS))
    return DONE


def run(name: str, arguments: Sequence[str], program: str) -> int:
    """Run one of `COMMANDS`; returns the exit code.

    Args:
        name: the command's name.
        arguments: the words after it on the command line.
        program: the words before them, for messages.
    """
    # Threads that spin while they wait slow everything else down; set before torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    prepare_streams()
    return guarded(lambda: _main_of(name)(arguments, program), program)


def _main_of(name: str) -> Callable[[Sequence[str], str], int]:
    """Import a command, and return its ``main``.

    Raises:
        MissingExtraError: when a package that it needs is missing.
    """
    found = COMMANDS[name]
    try:
        main: Callable[[Sequence[str], str], int]
        main = importlib.import_module(f"carolus_env.{found.module}").main
        return main
    except ModuleNotFoundError as error:
        if not found.extra or (error.name or "").startswith("carolus_env"):
            raise
        raise MissingExtraError(error.name, name, found.extra) from error


def command_line(name: str, program: str, *arguments: object) -> str:
    """Return the command line of another command, to be typed in a shell.

    It names the interpreter of this process where ``python`` would be another one.

    Args:
        name: the command's name.
        program: how the user called this command: as a script of a clone, or of the package.
        arguments: the command's arguments.
    """
    words = [PROGRAM, name]
    if program.startswith(MODULE):
        words = [_python(), "-m", "carolus_env", name]
    elif not program.startswith(PROGRAM):
        script = f"{name}.py"
        own = [script] if name in ("train", "evaluate") else ["-m", "carolus_env", name]
        words = [_python(), *own]
    return shlex.join([*words, *map(str, arguments)])


def _python() -> str:
    """Return how a shell calls the interpreter of this process."""
    found = shutil.which("python")
    if found and Path(found).absolute().parent.samefile(Path(sys.executable).parent):
        return "python"
    return min(os.path.relpath(sys.executable), sys.executable, key=len)


def _help(program: str) -> str:
    rows = [f"  {name:10}{command.about}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            f"usage: {program} COMMAND ...",
            "",
            "Carolus Magnus: a board game as an environment for reinforcement learning.",
            "",
            *rows,
            "",
            f"{program} COMMAND --help tells more; {program} --version gives the version.",
        ]
    )
