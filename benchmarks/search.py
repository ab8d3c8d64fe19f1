"""Strength against time: what agents win for the time that they take, from 0.1 ms to 1 s.

    python -m benchmarks.search --longest 0.01       # searches of up to 10 ms
    python -m benchmarks.search --workers 2 --save   # all, and docs/images/search.png

`ppo`, `search` and `mcts` play paired deals against `value`, and searches that have more time
against those that have less. Time is wall-clock time a decision, so there must be a core for every
worker. Finished games are stored in --folder: the same command continues an interrupted run, in
which the cheap matches come first.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.results import Row, by_players, interval, load, measuring_parser, report, save
from benchmarks.strength import digest, play
from carolus_env.system.files import write_file

SEED: Final = 2_000_000_033
GAMES: Final = {0.001: 600, 0.003: 600, 0.01: 400, 0.1: 120, 1.0: 40}
"""Games against `value` by seconds a search; rounded up to whole deals."""
PICTURE: Final = Path("docs/images/search.png")


class Match(NamedTuple):
    """Games between two agents.

    Attributes:
        players: number of players.
        agent, other: specs.
        seconds: of the agent's search; 0: it takes what it takes.
        games: number of games.
    """

    players: int
    agent: str
    other: str
    seconds: float
    games: int


def spec(bot: str, players: int, seconds: float) -> str:
    """Return the spec of a search that has so many seconds."""
    model = f"{players}p," if bot == "search" else ""
    return f"{bot}:{model}seconds={seconds:g}"


def all_matches() -> list[Match]:
    """Return what is played, the cheap matches first."""
    result = [Match(n, f"ppo:{n}p", f"value:{n}p", 0, 600) for n in (2, 3, 4)]
    for seconds, games in GAMES.items():
        for players in (2, 3, 4) if seconds < 1 else (2,):
            for bot in ("search", "mcts"):
                agent = spec(bot, players, seconds)
                result.append(Match(players, agent, f"value:{players}p", seconds, games))
    for bot, seconds, less, games in (
        ("search", 0.1, 0.01, 200),
        ("search", 1.0, 0.1, 100),
        ("mcts", 1.0, 1.0, 50),
    ):
        result.append(Match(2, spec("search", 2, seconds), spec(bot, 2, less), seconds, games))
    return sorted(result, key=lambda match: match.seconds)


def row_of(match: Match, folder: Path, workers: int) -> Row:
    """Play what is missing of a match, and return its row."""
    pair = (match.agent, match.other)
    result, row = play(match.players, pair, match.games, SEED, folder, workers)
    times = [1e3 * s / max(n, 1) for s, n in zip(result.seconds, result.decisions, strict=True)]
    return {**match._asdict(), **row, "ms": times}


def table(rows: list[Row]) -> str:
    """Return the matches: win rates with their 95 % intervals, games, the agent's time."""
    cells = (
        (
            (f"`{row['agent']}`", f"`{row['other']}`"),
            row["players"],
            f"{interval(row)}, {row['games']}, {row['ms'][0]:.3g} ms",
        )
        for row in rows
    )
    return by_players(["agent", "against"], cells, rows)


def draw(rows: list[Row]) -> bytes:
    """Draw win rate against `value` over time a decision for 2, 3 and 4 players, as a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for players, axes in zip((2, 3, 4), panels, strict=True):
        shown = [r for r in rows if (r["players"], r["other"]) == (players, f"value:{players}p")]
        axes.axhline(50, color="0.7", lw=1)
        if shown:
            axes.plot([shown[0]["ms"][1]], [50], "s", color="tab:green", label="value")
        for bot, colour in (("ppo", "tab:grey"), ("mcts", "tab:orange"), ("search", "tab:blue")):
            own = [row for row in shown if row["agent"].startswith(bot)]
            own.sort(key=lambda row: row["ms"][0])
            rates = [100 * row["win_rate"] for row in own]
            errors = [[100 * abs(row["win_rate"] - row["ci95"][k]) for row in own] for k in (0, 1)]
            times = [row["ms"][0] for row in own]
            axes.errorbar(times, rates, errors, fmt="o-", ms=4, lw=1.2, color=colour, label=bot)
        axes.set(xscale="log", title=f"{players} players", xlabel="milliseconds a decision")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("% of games won against value")
    panels[0].legend(fontsize=8)
    image = BytesIO()
    figure.savefig(image, format="png", dpi=130)
    return image.getvalue()


def main() -> int:
    """Play what the results lack, print the table, and save it with the picture if asked."""
    parser = measuring_parser(__doc__, workers=1, longest=1.0)
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--folder", type=Path, default=Path("runs/search"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    known = {(row["players"], row["agent"], row["other"]): row for row in load("search")}
    rows = []
    for match in all_matches():
        row = known.get((match.players, match.agent, match.other))
        stale = row is None or row["model"] != digest(match.players, (match.agent, match.other))
        if stale and match.players in options.players and match.seconds <= options.longest:
            row = row_of(match, options.folder, options.workers)
        if row is not None:
            rows.append(row)
            if options.save:
                save("search", [*rows, *(r for r in known.values() if r not in rows)])
    report(table(rows), rows, "search", options.save)
    if options.save:
        write_file(PICTURE, draw(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
