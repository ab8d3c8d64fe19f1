"""The commands, ``carolus train`` and so on, by the first word of the command line.

The module of a command is imported only when it runs, since some need packages of an extra.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from carolus_env.system.command import DONE, command
from carolus_env.system.machine import MissingExtraError, __version__
from carolus_env.system.options import UserError
from carolus_env.system.untrusted import unknown


class Command(NamedTuple):
    """A command of the table."""

    function: str  # in the module before the dot
    about: str
    extra: str = ""  # what it needs; empty: nothing, or only for a part


COMMANDS: Final = {
    "train": Command("train.main", "train an agent by self-play", "train"),
    "evaluate": Command(
        "evaluate.main", "let agents play each other: win rates, ratings", "evaluation"
    ),
    "play": Command("play.main", "play in the browser, view games", "play"),
    "replay": Command("play.check", "replay game records and compare them with the engine"),
    "dataset": Command("dataset.main", "make arrays for offline learning from agents' games"),
    "analyse": Command("positions.analyse", "roll a position out: what each choice is worth"),
    "engine": Command("positions.engine", "answer positions by an agent, a JSON object a line"),
    "warmup": Command("warmup.main", "compile kernels now, rather than when first used"),
}

_HELP: Final = """usage: carolus COMMAND ...

Carolus Magnus: a board game as an environment for reinforcement learning.

{}

carolus COMMAND --help tells more; carolus --version gives the version."""


@command("carolus")
def main(arguments: Sequence[str], program: str) -> int:
    """Run the command that the first word names; returns the exit code."""
    name, *words = arguments or ["--help"]
    if name == "--version":
        print(f"carolus-env {__version__}")
    elif name in ("-h", "--help"):
        print(_HELP.format("\n".join(f"  {name:10}{of.about}" for name, of in COMMANDS.items())))
    elif name not in COMMANDS:
        raise UserError(unknown("unknown command", name, COMMANDS))
    else:
        # Threads that spin while they wait slow everything down; set before torch is imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        module, _, function = COMMANDS[name].function.partition(".")
        try:
            commands = importlib.import_module(f"carolus_env.commands.{module}")
        except ModuleNotFoundError as error:
            if not COMMANDS[name].extra or (error.name or "").startswith("carolus_env"):
                raise
            raise MissingExtraError(error.name, name, COMMANDS[name].extra) from error
        return int(getattr(commands, function)(words))
    return DONE
