"""Draw the boards in docs/images/, always the same bytes: ``python docs/boards.py``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import carolus_env as ce
from carolus_env.bots import opinion
from carolus_env.drawing import board_svg
from carolus_env.engine import rules
from carolus_env.system.files import write_file

IMAGES = Path(__file__).parent / "images"


def boards() -> Iterator[tuple[str, str]]:
    """Name and SVG of each picture: one position of a game of three planners, light and dark."""
    games, streams = ce.new_games(ce.Rules(players=3), seed=21), ce.new_streams(21, 1)
    planner = ce.make("planner")
    while not worth_a_look(games[0]):
        before = games[0].copy()
        action = planner.act(games, streams)
        ce.step(games, action)
    values = opinion(ce.make("ppo:3p"), games).values
    assert values is not None
    for theme in ("light", "dark"):
        yield (
            f"board_{theme}",
            board_svg(
                games[0],
                theme=theme,  # type: ignore[arg-type]
                layout="wide",
                names=["Pepin", "Lothair", "Louis"],
                legal=True,
                last=(before, int(action[0])),
                values=values[0].tolist(),
            ),
        )


def worth_a_look(game: np.void) -> bool:
    """Whether the Emperor can reach several regions and some territories have grown together."""
    moving = game["phase"] == rules.MOVE and game["discs_played"][game["player"]] >= 3
    return bool(moving and game["round"] >= 6 and game["regions"] <= 10)


def main() -> int:
    """Write the pictures, and return the exit code."""
    for name, svg in boards():
        write_file(IMAGES / f"{name}.svg", svg.encode())
        print(f"docs/images/{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
