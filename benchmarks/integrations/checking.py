"""What the check scripts share; each may do without. Only the installed package is imported.

>>> checks = Checks("TorchRL", torchrl.__version__)
>>> checks.passed("seeds", first == second, "the same seed gave another game")
>>> checks.report(limits="...", lines=7)
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple


class Checks:
    """The results of one library, printed as they come and as JSON at the end."""

    def __init__(self, library: str, version: str) -> None:
        self.library, self.version = library, version
        self.results: dict[str, str] = {}
        print(f"{library} {version}", flush=True)

    def holds(self, condition: object, otherwise: str) -> None:
        """Require a condition.

        Raises:
            SystemExit: when it does not hold, saying ``otherwise``.
        """
        if not condition:
            raise SystemExit(f"{self.library}: failed: {otherwise}")

    def passed(
        self, name: str, holds: object = True, otherwise: str = "", result: str = "ok"
    ) -> None:
        """Note a check, which must hold; see `holds`."""
        self.holds(holds, f"{name}: {otherwise}")
        self.results[name] = result
        print(f"{name}: {result}", flush=True)

    def report(self, *, limits: str, lines: int) -> None:
        """Print the last line: the result."""
        row = {"library": self.library, "version": self.version, "checks": self.results}
        print(json.dumps({**row, "limits": limits, "lines": lines}), flush=True)


def check_seats(
    checks: Checks, game: Callable[[int, int], tuple[Sequence[Any], list[int], Sequence[float]]]
) -> None:
    """Check random games of 2, 3 and 4 players with all seats.

    Args:
        checks: notes them.
        game: for a number of players and a seed: movers, actions and last rewards of one.

    Raises:
        SystemExit: when something does not hold.
    """
    for players in (2, 3, 4):
        movers, actions, rewards = game(players, 7)
        checks.holds(actions == game(players, 7)[1], "seeds: the same seed gave another game")
        checks.holds(actions != game(players, 8)[1], "seeds: another seed gave the same game")
        checks.holds(all(rewards) and sum(rewards) == 0, f"rewards {rewards}")
        checks.holds(max(len(list(run)) for _, run in groupby(movers)) > 1, "decisions in a row")
    pass_seats(checks)


def pass_seats(checks: Checks) -> None:
    """Note what games of all seats have shown."""
    checks.passed("rewards sum to zero")
    checks.passed("several decisions in a row")
    checks.passed("seeds")
    checks.passed("players", result="2, 3, 4")


def examples() -> list[Path]:
    """The files named by ``--example``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--example", type=Path, action="append", default=[])
    found: list[Path] = parser.parse_args().example
    return found


class Ran(NamedTuple):
    """How a program ran: what it wrote, and its CPU time, which other programs do not change."""

    text: str
    cpu_seconds: float


def run(*words: object) -> Ran:
    """Run ``python WORDS`` here, and pass on what it writes.

    Raises:
        SystemExit: when it fails.
    """
    begun, lines = cpu_seconds(), []
    command = [sys.executable, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            print(line, end="", flush=True)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: exit code {process.returncode}")
    return Ran("".join(lines), cpu_seconds() - begun)


def cpu_seconds() -> float:
    """Of all programs that were run so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def play(agent: str, opponent: str, games: int = 400, players: int = 2, seed: int = 1) -> str:
    """Let an agent play by the command ``evaluate``; returns "63.2 % (58.4 - 67.8)": the win rate.

    Args:
        agent: a spec, as ``my_bot.py:MyBot``.
        opponent: another.
        games: at least so many.
        players: 2, 3 or 4.
        seed: of the deals.
    """
    return told(evaluated(agent, opponent, games, players, seed))


def told(result: dict[str, Any]) -> str:
    """A result of `evaluated` as text."""
    low, high = result["ci95"]
    return f"{100 * result['win_rate']:.1f} % ({100 * low:.1f} - {100 * high:.1f})"


def evaluated(
    agent: str, opponent: str, games: int = 400, players: int = 2, seed: int = 1
) -> dict[str, Any]:
    """As `play`; returns the agent's result: a dict with ``win_rate`` and ``ci95``."""
    file = Path(f"evaluated_{os.getpid()}.json")
    words = ["--players", players, "--games", games, "--seed", seed, "--json", file]
    run("-m", "carolus_env", "evaluate", agent, opponent, *words)
    pairing = json.loads(file.read_text())["pairings"][0]
    file.unlink()
    return {"win_rate": pairing["win_rate"][0], "ci95": pairing["ci95"][0]}


def lines_of(file: Path, names: Sequence[str]) -> int:
    """Lines of code of functions and classes of a file, without comments and docstrings."""
    text = file.read_text()
    lines, count = text.splitlines(), 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names:
            assert node.end_lineno is not None
            kept = set(range(node.lineno, node.end_lineno + 1))
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(inner):
                    told = inner.body[0]
                    kept -= set(range(told.lineno, (told.end_lineno or told.lineno) + 1))
            count += sum(bool(lines[k - 1].partition("#")[0].strip()) for k in kept)
    return count


def beats_planner(checks: Checks, example: Path, least: float = 0.05) -> None:
    """Run an example, then let its agent ``Trained`` play; note both.

    A choice at random among the candidates wins 1 game of 200 against ``planner``.

    Raises:
        SystemExit: when it fails, or the interval of the win rate reaches below ``least``.
    """
    done = run(example)
    checks.passed("trains", result=f"{done.cpu_seconds:.0f} s of CPU")
    agent = f"{example}:Trained"
    result = evaluated(agent, "planner", 1000)
    checks.holds(result["ci95"][0] > least, f"wins only {result} against planner")
    checks.passed("plays in evaluate", result=f"{told(result)} against planner")
