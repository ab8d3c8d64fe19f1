"""The learning curve of a run, as JSON and as PNG."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from carolus_env.arena import ladder
from carolus_env.system.files import write_file, write_json


@dataclass
class Curve:
    """What a run has measured so far.

    Attributes:
        training: one point for each rollout: ``decisions``, ``seconds``, and ``shares``, the mean
            share of the win in recent training games against each kind of opponent. There the
            network draws its actions.
        evaluation: one point for each evaluation: ``decisions``, ``seconds``, and what
            `measures.Evaluation` has. Those of runs begun by version 0.1 may have ``results`` only.
    """

    training: list[dict[str, Any]] = field(default_factory=list)
    evaluation: list[dict[str, Any]] = field(default_factory=list)

    def elo(self) -> float | None:
        """The last rating; None without any."""
        return next((point["elo"] for point in reversed(self.evaluation) if "elo" in point), None)

    def save(self, folder: Path, players: int) -> None:
        """Write ``curve.json`` and ``curve.png`` of a run with that number of players."""
        write_json(folder / "curve.json", asdict(self))
        if self.training and self.evaluation:
            write_file(folder / "curve.png", self.draw(players))

    def draw(self, players: int) -> bytes:
        """The curve as a PNG: ratings among the rungs met above, training games below.

        Args:
            players: of the run.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 6.5), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        rated = [point for point in self.evaluation if "elo" in point]
        decisions = [point["decisions"] / 1e6 for point in rated]
        (line,) = above.plot(decisions, [point["elo"] for point in rated], marker="o")
        low, high = ([point[end] for point in rated] for end in ("low", "high"))
        above.fill_between(decisions, low, high, color=line.get_color(), alpha=0.2, lw=0)
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
        above.set(
            title="evaluation: the likeliest action", ylabel="Elo above planner (95 % interval)"
        )
        kinds = sorted({kind for point in self.training for kind in point["shares"]})
        for kind in kinds:
            points = [point for point in self.training if kind in point["shares"]]
            below.plot(
                [point["decisions"] / 1e6 for point in points],
                [point["shares"][kind] for point in points],
                label=kind,
            )
        below.set(
            title="training games: actions drawn from the policy",
            xlabel="decisions of the learner (millions)",
            ylabel="share of the win",
        )
        below.set_ylim(-0.03, 1.03)
        below.grid(alpha=0.3)
        if kinds:
            below.legend(title="against", loc="lower right")
        image = BytesIO()
        figure.savefig(image, format="png", dpi=150)
        return image.getvalue()
