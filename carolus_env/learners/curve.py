"""The learning curve of a run, as JSON and as PNG."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from carolus_env.evaluation import ladder
from carolus_env.system.files import write_file, write_json


@dataclass(frozen=True)
class CurveStyle:
    """Style of a learner's curve."""

    unit: str
    """Key of a point's x coordinate."""
    scale: float
    """Divisor of the x coordinate."""
    x: str
    """The label of the x axis."""
    plays: str
    """Mode of play of the agent in evaluations, in words."""
    below: str
    """The title of the panel below, on training games."""
    y: str
    """The label of its y axis."""
    line: str
    """Metric drawn for each point of training."""


@dataclass
class Curve:
    """Measurements of a run so far.

    Attributes:
        training: points of training: ``decisions`` or ``games``, ``seconds``, and what the learner
            knows of its games (docs/training.md).
        evaluation: one point for each evaluation: ``decisions`` or ``games``, ``seconds``, and what
            `placing.Evaluation` has.
    """

    training: list[dict[str, Any]] = field(default_factory=list)
    evaluation: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def load(cls, folder: Path) -> Curve:
        """Load the curve in ``curve.json``; an empty one where there is none."""
        path = folder / "curve.json"
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def cut(self, unit: str, done: int) -> None:
        """Drop the points after ``done`` decisions or games, which a resumed run makes again."""
        for points in (self.training, self.evaluation):
            points[:] = [point for point in points if point[unit] <= done]

    def elo(self) -> float | None:
        """Return the last rating; None without any."""
        return self.evaluation[-1]["elo"] if self.evaluation else None

    def seconds(self) -> float:
        """Return the time of the last evaluation."""
        return float(self.evaluation[-1]["seconds"]) if self.evaluation else 0.0

    def save(self, folder: Path, players: int, style: CurveStyle) -> None:
        """Write ``curve.json`` and ``curve.png`` of a run with that number of players."""
        write_json(folder / "curve.json", asdict(self))
        if self.training and self.evaluation:
            write_file(folder / "curve.png", self.draw(players, style))

    def _draw_regret(self, above: Any, style: CurveStyle) -> None:
        """Draw regret on the suite, if measured, on its own axis beside ``above``."""
        known = [point for point in self.evaluation if point.get("regret") is not None]
        if not known:
            return
        places = [point[style.unit] / style.scale for point in known]
        mean, low, high = 100 * np.array([point["regret"] for point in known]).T
        axis = above.twinx()
        (line,) = axis.plot(places, mean, marker=".", ls="--", color="tab:red")
        axis.fill_between(places, low, high, color=line.get_color(), alpha=0.12, lw=0)
        axis.set_ylim(0, 1.05 * high.max())
        axis.set_ylabel("regret a decision, % of a win (dashed)", color=line.get_color())

    def draw(self, players: int, style: CurveStyle) -> bytes:
        """Draw the curve as a PNG: ratings among the rungs met above, training games below.

        Args:
            players: the run's number of players.
            style: the drawing's style.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 6.5), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        places = [point[style.unit] / style.scale for point in self.evaluation]
        (line,) = above.plot(places, [point["elo"] for point in self.evaluation], marker="o")
        low, high = ([point[end] for point in self.evaluation] for end in ("low", "high"))
        above.fill_between(places, low, high, color=line.get_color(), alpha=0.2, lw=0)
        met = [spec for point in self.evaluation for spec in point["rungs"]]
        for rung in ladder.rungs(players):
            if rung.spec in met:
                above.axhline(rung.elo, color="grey", lw=0.5, ls=":")
                above.annotate(  # at the left, where the curve is low and far from them
                    rung.spec,
                    (0, rung.elo),
                    (2, 1),
                    xycoords=("axes fraction", "data"),
                    textcoords="offset points",
                    fontsize=6,
                    color="grey",
                )
        above.margins(y=0.1)  # room for the highest label
        above.set(
            title=f"strength on the ladder ({style.plays})",
            ylabel="Elo above planner (95 % interval)",
        )
        self._draw_regret(above, style)
        places = [point[style.unit] / style.scale for point in self.training]
        below.plot(places, [point[style.line] for point in self.training])
        below.set(title=style.below, xlabel=style.x, ylabel=style.y)
        below.grid(alpha=0.3)
        image = BytesIO()
        figure.savefig(image, format="png", dpi=150)
        return image.getvalue()
