"""Choice of a command: the first word of ``carolus train --players 3``.

The module of a command is imported only when it runs, since some need packages of an extra.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from carolus_env.system import failures
from carolus_env.system.version import __version__

PROGRAM: Final = "carolus"
USER_ERROR, NO_EXTRA = 2, 1


class Command(NamedTuple):
    """A command: the module of its ``main(arguments, program)``, and its purpose."""

    module: str
    about: str
    extra: str = ""
    """The extra that it needs; empty: none, or only for a part of it."""


COMMANDS: Final = {
    "train": Command("commands.train", "train an agent by self-play", "train"),
    "evaluate": Command("commands.evaluate", "let agents play each other: win rates, ratings"),
    "play": Command("play.__main__", "play in the browser or the terminal, view games", "play"),
    "replay": Command("replay", "replay game records and compare them with the engine"),
    "dataset": Command("commands.dataset", "make arrays for offline learning from agents' games"),
    "analyse": Command(
        "evaluation.rollouts.__main__", "roll a position out: what each choice is worth"
    ),
    "engine": Command("commands.engine", "answer positions by an agent, a JSON object a line"),
    "warmup": Command("commands.warmup", "compile kernels now, rather than when first used"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the first word names; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words[0] if words else "--help"
    if name in COMMANDS:
        return run(name, words[1:], f"{PROGRAM} {name}")
    if name == "--version":
        print(f"carolus-env {__version__}")
        return 0
    if name in ("-h", "--help"):
        print(_help())
        return 0
    print(f"{PROGRAM}: unknown command {name!r}; known are {', '.join(COMMANDS)}", file=sys.stderr)
    return USER_ERROR


def run(name: str, arguments: Sequence[str], program: str) -> int:
    """Run one of `COMMANDS`; returns the exit code.

    Args:
        name: the command's name.
        arguments: the words after it on the command line.
        program: the words before them, for messages.
    """
    # Threads that spin while they wait slow everything else down; set before torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    command = COMMANDS[name]
    try:
        module = importlib.import_module(f"carolus_env.{command.module}")
    except ModuleNotFoundError as error:
        if not command.extra or (error.name or "").startswith("carolus_env"):
            raise
        print(f"{name}: {missing(name, error)}", file=sys.stderr)
        return NO_EXTRA
    code: int = module.main(arguments, program)
    return code


def typed(name: str, program: str) -> str:
    """Return the command line for another command: of the package, or a script of the clone.

    It names the interpreter of this process where ``python`` would be another one.
    """
    if program.startswith(PROGRAM):
        return f"{PROGRAM} {name}"
    found, python = shutil.which("python"), "python"
    if found is None or not Path(found).absolute().parent.samefile(Path(sys.executable).parent):
        python = os.path.relpath(sys.executable)
        python = min(python, sys.executable, key=len)
    return f"{python} -m carolus_env.play" if name == "play" else f"{python} {name}.py"


def missing(name: str, error: ModuleNotFoundError) -> failures.MissingExtraError:
    """Return the error of a command that lacks a package of its extra."""
    if isinstance(error, failures.MissingExtraError):
        return error
    return failures.MissingExtraError(error.name, name, COMMANDS[name].extra)


def _help() -> str:
    rows = [f"  {name:10}{command.about}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            f"usage: {PROGRAM} COMMAND ...",
            "",
            "Carolus Magnus: a board game as an environment for reinforcement learning.",
            "",
            *rows,
            "",
            f"{PROGRAM} COMMAND --help tells more; {PROGRAM} --version gives the version.",
        ]
    )
