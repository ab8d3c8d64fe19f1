"""How long a tournament is, as options of a command: games, deals, or a stop rule."""

from __future__ import annotations

import argparse
from typing import Final, NamedTuple

from carolus_env.analysis.sequential import SequentialTest
from carolus_env.arena.seating import Until, deals_for

GAMES: Final = 1000
MAX_DEALS: Final = 10_000


class Length(NamedTuple):
    """The fields of a `Plan` that decide how long it is."""

    deals: int
    until: Until | None
    test: SequentialTest | None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, as a group of their own."""
    group = parser.add_argument_group("length")
    count = group.add_mutually_exclusive_group()
    count.add_argument(
        "--games",
        type=int,
        metavar="N",
        help=f"games of each pairing, rounded up to complete deals (default {GAMES})",
    )
    count.add_argument("--deals", type=int, metavar="N", help="deals, each in all seatings")
    group.add_argument(
        "--until",
        type=float,
        metavar="ELO",
        help="play until the 95 %% interval of every rating, widened so that it holds at any time, "
        "is narrower than ELO points",
    )
    group.add_argument(
        "--until-rate",
        type=float,
        metavar="WIDTH",
        help="play until the 95 %% interval of the first two agents' win rate, one that holds at "
        "any time, is narrower than WIDTH (0.02: two percentage points)",
    )
    group.add_argument(
        "--sprt",
        type=_bounds,
        metavar="ELO0,ELO1",
        help="play until it is decided whether the first agent is stronger than the second: by "
        "ELO1 in normalised Elo (H1), not by ELO0 (H0); 0,20 finds a small gain, and "
        "--sprt=-20,0 shows that nothing was lost",
    )
    group.add_argument(
        "--alpha",
        type=float,
        metavar="RATE",
        help="with --sprt, how often H1 may be accepted where H0 holds (default 0.05)",
    )
    group.add_argument(
        "--beta",
        type=float,
        metavar="RATE",
        help="with --sprt, how often H0 may be accepted where H1 holds (default 0.05)",
    )
    group.add_argument(
        "--max-deals",
        type=int,
        metavar="N",
        help=f"with --until, --until-rate or --sprt, the most deals (default {MAX_DEALS:,})",
    )


def length(options: argparse.Namespace, seatings: int) -> Length:
    """What the options ask for.

    Args:
        options: with those of `add_options`.
        seatings: games of a deal of each pairing.

    Raises:
        ValueError: for options that do not go together, or impossible values.
    """
    narrows = options.until is not None or options.until_rate is not None
    stops = narrows or options.sprt is not None
    rates = {k: getattr(options, k) for k in ("alpha", "beta") if getattr(options, k) is not None}
    if stops and (options.games or options.deals):
        raise ValueError(
            "--until, --until-rate and --sprt take --max-deals, not --games or --deals"
        )
    if options.max_deals is not None and not stops:
        raise ValueError("--max-deals is for --until, --until-rate and --sprt; use --deals")
    if narrows and options.sprt:
        raise ValueError("--sprt is a stop rule of its own, without --until and --until-rate")
    if rates and not options.sprt:
        raise ValueError(f"--{next(iter(rates))} is for --sprt")
    games = GAMES if options.games is None else options.games
    deals = deals_for(games, seatings) if options.deals is None else options.deals
    if stops:
        deals = MAX_DEALS if options.max_deals is None else options.max_deals
    return Length(
        deals,
        Until(options.until, options.until_rate) if narrows else None,
        SequentialTest(*options.sprt, **rates) if options.sprt else None,
    )


def _bounds(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be two numbers with a comma, such as 0,20, got {text!r}"
        ) from None
    return low, high
