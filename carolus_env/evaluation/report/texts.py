"""Formats of a report's names and numbers, and its colours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from carolus_env.evaluation.columns import BAR, TIME, duration
from carolus_env.evaluation.seating import labels
from carolus_env.evaluation.summary import Summary, anchor

INK, GREY, LINE, PAPER = "#222222", "#767676", "#e4e4e4", "#ffffff"
BLUE, VERMILION = "#0072b2", "#d55e00"
"""More and less than half: two colours of Okabe and Ito, which the colour-blind can tell apart."""

Rating = tuple[float, float, float]
"""Elo, and the ends of its 95 % interval."""

_ELLIPSIS: Final = "\u2026"


def printable(text: object) -> str:
    """Return the text, with characters that cannot be printed or encoded replaced."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def shortened(names: Iterable[str], length: int = 32) -> list[str]:
    """Return the names, long ones without their middle, still all different."""
    head = length // 3
    return labels(
        [
            name if len(name) <= length else f"{name[:head]}{_ELLIPSIS}{name[head + 1 - length :]}"
            for name in names
        ]
    )


def title(summary: Summary) -> str:
    """Return the report's title in one line."""
    parts = [
        f"{summary['rules']['players']} players",
        summary["schedule"],
        f"{summary['deals']:,} deal{'s' * (summary['deals'] != 1)}",
        f"{summary['games']:,} games",
        f"seed {summary['seed']}",
    ]
    if any(agent["rating"] for agent in summary["agents"]):
        agents = [agent["spec"] for agent in summary["agents"]]
        zero = anchor(agents, summary["schedule"])
        parts.append(f"Elo 0: {'the mean' if zero is None else agents[zero]}")
    if not summary["complete"]:
        parts.append("cut short")
    return printable(spaced(", ".join(parts)))


def spaced(name: object) -> str:
    """Return a key as words."""
    return str(name).replace("_", " ")


def elo(rating: Rating | None, won: float) -> str:
    """Return a rating and its interval; one end, where all games were won or lost.

    Args:
        rating: the rating.
        won: the agent's win rate in all games.
    """
    if rating is None:
        return ""
    point, low, high = map(round, rating)
    if low < high and won in (0, 1):
        return f"above {low}" if won else f"below {high}"
    return f"{point} [{low}, {high}]"


def percent(rate: float | None, digits: int = 0) -> str:
    """Format a rate in percent; 0 and 100 only for exactly that."""
    if rate is None:
        return ""
    text, least = f"{100 * rate:.{digits}f}", 10.0**-digits
    if float(text) >= 100 and rate < 1:
        return f">{100 - least:.{digits}f}"
    if float(text) <= 0 < rate:
        return f"<{least:.{digits}f}"
    return text


def written(value: float, how: str) -> str:
    """Return a value of a `Figure`."""
    if how == BAR:
        return percent(value, 1)
    return duration(value) if how == TIME else how.format(value)


def strength_of_colour(rate: float) -> float:
    """Return the strength of a win rate's colour: 0 at one half, 0.75 at 0 and 1."""
    return 0.75 * abs(2 * min(max(rate, 0), 1) - 1)


def blend(rate: float) -> str:
    """Return a win rate's colour: blue for more than half, vermilion for less, white between."""
    strong, part = (BLUE if rate > 0.5 else VERMILION), strength_of_colour(rate)
    channels = (int(strong[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(255 + part * (channel - 255)):02x}" for channel in channels)
