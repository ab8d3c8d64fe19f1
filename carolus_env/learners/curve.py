"""The learning curve of a run, as JSON and as PNG."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from carolus_env.arena import ladder
from carolus_env.system.files import write_file, write_json


@dataclass(frozen=True)
class Look:
    """How the curve of a learner is drawn."""

    unit: str
    """The key of a point's place on the x axis ..."""
    scale: float
    """... by which it is divided."""
    x: str
    """The label of the x axis."""
    plays: str
    """What the agent plays in evaluations, in words."""
    below: str
    """The title of the panel below: what is known of training games."""
    y: str
    """The label of its y axis."""
    lines: Callable[[Mapping[str, Any]], Mapping[str, float]]
    """Its lines: their numbers at a point of training, by name."""
    limits: tuple[float, float] | None = None
    """Of its y axis; None: as the numbers are."""
    legend: str | None = None
    """The heading of its lines' names; None: they are not named."""


@dataclass
class Curve:
    """What a run has measured so far.

    Attributes:
        training: points of training: ``decisions`` or ``games``, ``seconds``, and what the learner
            knows of its games (docs/training.md).
        evaluation: one point for each evaluation: ``decisions`` or ``games``, ``seconds``, and what
            `measures.Evaluation` has. Those of runs begun by version 0.1 may have ``results`` only.
    """

    training: list[dict[str, Any]] = field(default_factory=list)
    evaluation: list[dict[str, Any]] = field(default_factory=list)

    def elo(self) -> float | None:
        """The last rating; None without any."""
        return next((point["elo"] for point in reversed(self.evaluation) if "elo" in point), None)

    def save(self, folder: Path, players: int, look: Look) -> None:
        """Write ``curve.json`` and ``curve.png`` of a run with that number of players."""
        write_json(folder / "curve.json", asdict(self))
        if self.training and self.evaluation:
            write_file(folder / "curve.png", self.draw(players, look))

    def _draw_losses(self, above: Any, look: Look) -> None:
        """Losses on the suite, where they were measured, on their own axis beside ``above``."""
        known = [point for point in self.evaluation if point.get("loss") is not None]
        if not known:
            return
        places = [point[look.unit] / look.scale for point in known]
        mean, low, high = (100 * np.array([point["loss"][k] for point in known]) for k in range(3))
        axis = above.twinx()
        (line,) = axis.plot(places, mean, marker=".", ls="--", color="tab:red")
        axis.fill_between(places, low, high, color=line.get_color(), alpha=0.12, lw=0)
        axis.set_ylim(0, 1.05 * high.max())
        axis.set_ylabel("loss a decision, % of a win (dashed)", color=line.get_color())

    def draw(self, players: int, look: Look) -> bytes:
        """The curve as a PNG: ratings among the rungs met above, training games below.

        Args:
            players: of the run.
            look: how it is drawn.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 6.5), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        rated = [point for point in self.evaluation if "elo" in point]
        places = [point[look.unit] / look.scale for point in rated]
        (line,) = above.plot(places, [point["elo"] for point in rated], marker="o")
        low, high = ([point[end] for point in rated] for end in ("low", "high"))
        above.fill_between(places, low, high, color=line.get_color(), alpha=0.2, lw=0)
        met = [spec for point in rated for spec in point["rungs"]]
        for rung in ladder.rungs(players):
            if rung.spec in met:
                above.axhline(rung.elo, color="grey", lw=0.5, ls=":")
                above.annotate(
                    rung.spec,
                    (1, rung.elo),
                    (-2, 1),
                    xycoords=("axes fraction", "data"),
                    textcoords="offset points",
                    ha="right",
                    fontsize=6,
                    color="grey",
                )
        above.set(title=f"evaluation: {look.plays}", ylabel="Elo above planner (95 % interval)")
        self._draw_losses(above, look)
        drawn = [(point[look.unit] / look.scale, look.lines(point)) for point in self.training]
        for name in sorted({name for _, numbers in drawn for name in numbers}):
            points = [(place, numbers[name]) for place, numbers in drawn if name in numbers]
            below.plot(*zip(*points, strict=True), label=name)
        below.set(title=look.below, xlabel=look.x, ylabel=look.y)
        if look.limits:
            below.set_ylim(look.limits)
        below.grid(alpha=0.3)
        if look.legend and below.lines:
            below.legend(title=look.legend, loc="lower right")
        image = BytesIO()
        figure.savefig(image, format="png", dpi=150)
        return image.getvalue()
