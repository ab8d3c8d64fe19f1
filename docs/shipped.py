"""The tables of docs/models.md and docs/value.md: how the shipped models were made, and matches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from results import Row, load, markdown, short

BOTS: Final = Path(__file__).parent.parent / "carolus_env" / "bots"
FOLDERS: Final = {"ppo": BOTS / "turns" / "models", "value": BOTS / "value" / "models"}
"""Where the models lie that one command made, by the bot that plays them."""
_FIRST: Final = ("ppo:v1", "search:v1")


def matches_table(*bots: str) -> str:
    """benchmarks/models.py: the matches whose first agent's spec begins so; others than `_FIRST`,
    unless these are asked for."""
    rows = []
    for row in load("models"):
        agent = row["pair"][0]
        if agent.startswith(bots) and (bots == _FIRST or not agent.startswith(_FIRST)):
            rows.append(row)
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


def first_matches_table() -> str:
    """The matches of the first policies, alone and in a search."""
    return matches_table(*_FIRST)


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
    for path in sorted((BOTS / "neural" / "models").glob("*.json")):
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
