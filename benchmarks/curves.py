"""Learning curves of PPO on single decisions: strength over decisions, and over CPU-minutes.

    python -m benchmarks.curves                   # learns what --folder lacks; takes hours
    python -m benchmarks.curves --curves example --players 2 --seeds 1
    python -m benchmarks.curves --learned --save  # table and picture of what has been learnt

`CURVES` has the runs. Each is learnt on one core. Evaluations are paired games of the likeliest
action against `planner`, and against rungs of the ladder; their time does not count.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.machine import line
from benchmarks.results import Row, markdown, measuring_parser, report
from carolus_env import learners
from carolus_env.bots.network import DecisionsBot
from carolus_env.engine.rules import Rules
from carolus_env.evaluation.ladder import Evaluation, evaluate
from carolus_env.learners.run import Progress, Run, RunConfig
from carolus_env.system.files import write_file, write_json


class Curve(NamedTuple):
    """Runs that make a curve."""

    about: str
    """What learns, in the table."""
    learner: str
    """``example`` or ``sb3``."""
    runs: dict[int, tuple[int, tuple[int, ...]]]
    """By number of players: decisions to learn from, and seeds."""
    opponents: str = "self"
    """Of ``sb3``: who plays the other seats."""


CURVES: Final = {
    "example": Curve(
        "`examples/ppo_torch.py`",
        "example",
        {2: (12_000_000, (1, 2, 3)), 3: (6_000_000, (1,)), 4: (6_000_000, (1,))},
    ),
    "sb3": Curve("`train.py --learner sb3`", "sb3", {2: (8_000_000, (1, 2, 3))}),
    "bot": Curve(
        "`train.py --learner sb3 --opponents planner:errors=0.5`",
        "sb3",
        {2: (4_000_000, (1,))},
        "planner:errors=0.5",
    ),
}
EVERY: Final = 1_000_000
"""Decisions between two evaluations."""
GAMES: Final = 400
"""Most games against each agent in an evaluation."""
COLOURS: Final = ("blue", "orange", "red")
"""Of the curves."""
AFTER: Final = (5, 10)
"""CPU-minutes after which the table has win rates."""
PICTURE: Final = Path(__file__).parent.parent / "docs" / "images" / "decisions.png"

Note = Callable[[int, float, Evaluation], None]
"""A function of the decisions, the CPU-seconds of learning, and the evaluation."""


def learn_example(
    players: int, seed: int, steps: int, folder: Path, note: Note, every: int, games: int
) -> None:
    """Learn as `examples/ppo_torch.py` does."""
    import torch

    ppo_torch: Any = import_module("examples.ppo_torch")  # a script
    args = ppo_torch.Args(players=players, seed=seed, steps=steps, eval_every=every)
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    network = ppo_torch.Network(ppo_torch.Size(players, args.region, args.whole), seed)
    elo, evaluating, started = None, 0.0, time.process_time()
    for done in ppo_torch.train(args, network):
        before = time.process_time()
        model = network.model({"seed": seed, "decisions": done})
        result = evaluate(DecisionsBot(model), Rules(players), games, near=elo)
        note(done, before - started - evaluating, result)
        elo = result.elo
        model.save(folder / "final")
        evaluating += time.process_time() - before


def learn_run(config: RunConfig, folder: Path, note: Note) -> Run:
    """Learn as ``train.py`` does."""

    def show(progress: Progress) -> None:
        if progress.evaluation is not None:
            note(progress.done, run.learner.cpu_seconds, progress.evaluation)

    run = Run(config, folder, show=show)
    run.train()
    return run


def learn(name: str, players: int, seed: int, folder: Path) -> None:
    """Learn, and write the curve after each evaluation."""
    folder.mkdir(parents=True, exist_ok=True)
    curve, points = CURVES[name], list[Row]()
    steps = curve.runs[players][0]
    about = {"curve": name, "players": players, "seed": seed, "steps": steps, "machine": line()}

    def note(done: int, seconds: float, result: Evaluation) -> None:
        match = result.results["planner"]
        points.append(
            {
                "decisions": done,
                "minutes": round(seconds / 60, 2),
                "rate": match["win_rate"],
                "ci95": match["ci95"],
                "games": match["games"],
                "elo": round(result.elo),
            }
        )
        write_json(folder / "points.json", {**about, "points": points})
        print(f"{name}, {players} players, seed {seed}: {points[-1]}", flush=True)

    if curve.learner == "example":
        learn_example(players, seed, steps, folder, note, EVERY, GAMES)
    else:
        one = {"learner": curve.learner, "players": players, "seed": seed, "steps": steps}
        often = {"eval_every": EVERY, "eval_games": GAMES}
        config = learners.config_of({**one, **often, "opponents": curve.opponents})
        learn_run(config, folder, note)
    (folder / "finished").touch()


def rate_after(row: Row, minutes: float) -> float | None:
    """Return the win rate after CPU-minutes, between the evaluations before and after them."""
    points = [{"minutes": 0.0, "rate": 0.0}, *row["points"]]
    if points[-1]["minutes"] < minutes:
        return None
    times, rates = ([point[key] for point in points] for key in ("minutes", "rate"))
    return float(np.interp(minutes, times, rates))


def table(rows: list[Row]) -> str:
    """Return the win rates against `planner` of each curve's seeds."""
    cases: dict[tuple[str, int], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["players"], list(CURVES).index(row["curve"]))):
        cases.setdefault((row["curve"], row["players"]), []).append(row)
    lines = []
    for (name, players), runs in cases.items():
        after = [[rate_after(run, minutes) for run in runs] for minutes in AFTER]
        last = [run["points"][-1] for run in runs]
        at_the_end = [f"{100 * point['rate']:.0f}" for point in last]
        if len(runs) == 1:
            low, high = last[0]["ci95"]
            at_the_end[0] += f" ({100 * low:.0f} - {100 * high:.0f})"
        lines.append(
            [
                *(CURVES[name].about, str(players)),
                *(
                    ", ".join(f"{100 * rate:.0f}" for rate in rates if rate is not None) or "-"
                    for rates in after
                ),
                ", ".join(at_the_end),
                ", ".join(str(point["elo"]) for point in last),
                f"{np.mean([point['decisions'] for point in last]) / 1e6:.0f} M",
                f"{np.mean([point['minutes'] for point in last]):.0f}",
            ]
        )
    head = ["learner", "players", *(f"% after {n} CPU-minutes" for n in AFTER)]
    head += ["% at the end", "Elo", "decisions", "CPU-minutes"]
    return markdown(head, lines, rows)


def draw(rows: list[Row]) -> bytes:
    """Draw win rate and rating over decisions and over CPU-minutes, with two players, as a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.5), layout="constrained")
    panels = figure.subplots(2, 2, sharex="col", sharey="row")
    colours = {name: f"tab:{colour}" for name, colour in zip(CURVES, COLOURS, strict=True)}
    for row in rows:
        if row["players"] != 2:
            continue
        points = row["points"]
        for panel, y, scale in ((panels[0], "rate", 100), (panels[1], "elo", 1)):
            for axis, x, unit in ((panel[0], "decisions", 1e6), (panel[1], "minutes", 1)):
                places = [point[x] / unit for point in points]
                numbers = np.array([scale * point[y] for point in points])
                about = CURVES[row["curve"]].about.strip("`") if row["seed"] == 1 else None
                axis.plot(places, numbers, color=colours[row["curve"]], label=about, lw=1.2)
                if y == "rate":
                    rates = numbers / scale
                    games = np.array([point["games"] for point in points])
                    ends = 1.96 * scale * np.sqrt(rates * (1 - rates) / games)
                    band = (numbers - ends, numbers + ends)
                    axis.fill_between(places, *band, color=colours[row["curve"]], alpha=0.1, lw=0)
    for axis in panels.flat:
        axis.grid(alpha=0.3)
    panels[0, 0].set_ylabel("% of games won against planner")
    panels[1, 0].set_ylabel("Elo above planner")
    panels[1, 0].set_xlabel("decisions (millions)")
    panels[1, 1].set_xlabel("CPU-minutes of learning, one core")
    lines, texts = panels[0, 0].get_legend_handles_labels()
    figure.legend(lines, texts, loc="outside upper center", ncols=3, fontsize=8)
    image = BytesIO()
    figure.savefig(image, format="png", dpi=130)
    return image.getvalue()


def main() -> int:
    """Learn what is missing, print the table, and save it with the picture if asked."""
    parser = measuring_parser(__doc__)
    parser.add_argument("--curves", nargs="+", choices=CURVES, default=list(CURVES))
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--folder", type=Path, default=Path("runs/curves"))
    parser.add_argument("--learned", action="store_true", help="learn no more")
    options = parser.parse_args()
    for name in options.curves:
        for players, (_, seeds) in CURVES[name].runs.items():
            for seed in seeds:
                folder = options.folder / f"{name}-{players}p-{seed}"
                wanted = players in options.players and seed in options.seeds
                if wanted and not options.learned and not (folder / "finished").exists():
                    learn(name, players, seed, folder)
    rows = [json.loads(path.read_text()) for path in sorted(options.folder.glob("*/points.json"))]
    report(table(rows), rows, "curves", options.save)
    if options.save:
        write_file(PICTURE, draw(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
