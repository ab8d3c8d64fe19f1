"""The tables of docs/models.md and docs/value.md: how the shipped models were made, and matches."""

from __future__ import annotations

import json
from typing import Final

from results import Row, load, markdown, short

from carolus_env.bots.neural import model as single
from carolus_env.bots.turns import model as turns
from carolus_env.bots.value import model as value

FOLDERS: Final = {"ppo": turns.SHIPPED, "value": value.SHIPPED}
"""Where the models lie that one command made, by the bot that plays them."""
_FIRST: Final = ("ppo:v1", "search:v1")


def matches_table(*bots: str, first: bool = False) -> str:
    """benchmarks/models.py: the matches of these bots, by the first policies or by other models."""
    rows = [
        row
        for row in load("models")
        if row["pair"][0].startswith(bots) and row["pair"][0].startswith(_FIRST) is first
    ]
    lines = [
        [
            *(f"`{row['pair'][0]}`", f"`{row['pair'][1]}`", str(row["players"])),
            *(f"{row['games']:,}", f"{100 * row['win_rate']:.1f} %"),
            f"{100 * row['ci95'][0]:.1f} - {100 * row['ci95'][1]:.1f}",
        ]
        for row in rows
    ]
    head = ["agent", "against", "players", "games", "win rate", "95 % interval"]
    return markdown(head, lines, rows)


def learnt_table(bot: str) -> str:
    """How the models of one command were made, from their JSON."""
    head = ["model", "games", "CPU-minutes of learning", "games a CPU-second", "wall time"]
    lines = []
    for path in sorted(FOLDERS[bot].glob("*.json")):
        about = json.loads(path.read_text())["about"]
        pace = about["games"] / about["cpu_seconds"]
        cells = [f"{about['games']:,}", f"{about['cpu_seconds'] / 60:.0f}", f"{pace:.0f}"]
        time = f"{about['seconds'] / 60:.0f} min, {about['workers']} workers"
        how = f"`{about['command']}`", f"`{(about['commit'] or '')[:7]}`"
        lines.append([f"`{bot}:{path.stem}`", *cells, time, *how])
    return markdown([*head, "command", "its commit"], lines)


def first_learnt_table() -> str:
    """How the first policies were made, from their JSON."""
    head = ["players", "decisions", "time", "trained on", "last command", "its commit"]
    lines = []
    for path in sorted(single.SHIPPED.glob("*.json")):
        about = json.loads(path.read_text())["about"]
        decisions = time = 0.0
        part: Row | None = about
        while part is not None:  # what it started from, and so on
            decisions, time = decisions + part["decisions"], time + part["seconds"]
            part = part.get("start")
        lines.append(
            [
                *(path.stem[0], short(decisions), f"{time / 60:.0f} min"),
                f"{about['machine']['cpu']}, {about['machine']['cores']} cores, {about['device']}",
                *(f"`{about['command']}`", f"`{(about['commit'] or '')[:7]}`"),
            ]
        )
    return markdown(head, lines)
