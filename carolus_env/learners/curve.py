"""The learning curve of a run, as JSON and as PNG."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from carolus_env.system.files import write_file, write_json


@dataclass
class Curve:
    """What a run has measured so far.

    Attributes:
        training: one point for each rollout: ``decisions``, ``seconds``, and ``shares``, the mean
            share of the win in recent training games against each kind of opponent. There the
            network draws its actions.
        evaluation: one point for each evaluation: ``decisions``, ``seconds``, and ``results`` of
            the likeliest action against each bot: ``win_rate``, ``ci95``, ``games``.
    """

    training: list[dict[str, Any]] = field(default_factory=list)
    evaluation: list[dict[str, Any]] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Write ``curve.json`` and ``curve.png``."""
        write_json(folder / "curve.json", asdict(self))
        if self.training and self.evaluation:
            write_file(folder / "curve.png", self.draw())

    def draw(self) -> bytes:
        """The curve as a PNG: evaluation above, training games below."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 6.5), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        decisions = [point["decisions"] / 1e6 for point in self.evaluation]
        for spec in self.evaluation[-1]["results"]:
            results = [point["results"][spec] for point in self.evaluation]
            (line,) = above.plot(
                decisions, [result["win_rate"] for result in results], marker="o", label=spec
            )
            low, high = zip(*(result["ci95"] for result in results), strict=True)
            above.fill_between(decisions, low, high, color=line.get_color(), alpha=0.2, lw=0)
        above.set(title="evaluation: the likeliest action", ylabel="win rate (95 % interval)")
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
        for axes in (above, below):
            axes.set_ylim(-0.03, 1.03)
            axes.grid(alpha=0.3)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(title="against", loc="lower right")
        image = BytesIO()
        figure.savefig(image, format="png", dpi=150)
        return image.getvalue()
