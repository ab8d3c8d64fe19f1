"""What each learner makes of eight seeds: none may fail, and none may lag behind the others.

    python -m benchmarks.seeds                                    # `make seeds`; an hour and more
    python -m benchmarks.seeds --learners sb3 --players 2 --seeds 1 2 3
    python -m benchmarks.seeds --learned --save                   # table and pictures of the runs

Runs are short, each on one core, some side by side. An evaluation is at most 400 paired games of
the learner's bot against `planner`. A run that was finished is not repeated.
"""

from __future__ import annotations

import json
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from io import BytesIO
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.curves import learn_example, learn_run
from benchmarks.machine import line
from benchmarks.results import Row, markdown, measuring_parser, report
from carolus_env import learners
from carolus_env.evaluation.ladder import Evaluation
from carolus_env.system import machine
from carolus_env.system.files import write_file, write_json


class Short(NamedTuple):
    """A short run."""

    about: str
    length: int  # decisions, of `value` games
    lag: float  # points that a seed may lie under the mean


LEARNERS: Final = {
    "ppo": Short("`train.py --learner ppo`", 600_000, 3),
    "value": Short("`train.py --learner value`", 5_000, 3),
    "sb3": Short("`train.py --learner sb3`", 1_000_000, 6),
    "example": Short("`examples/ppo_torch.py`", 1_200_000, 6),
}
GAMES: Final = 400
EVALUATIONS: Final = 4
PICTURE: Final = Path(__file__).parent.parent / "docs" / "images" / "seeds.png"


def learn(learner: str, players: int, seed: int, folder: Path) -> None:
    """Learn, and write the evaluations, or what the run failed with."""
    folder.mkdir(parents=True, exist_ok=True)
    short, points = LEARNERS[learner], list[Row]()
    case = {"learner": learner, "players": players, "seed": seed, "length": short.length}
    row: Row = {**case, "machine": line(), "points": points, "failure": None}
    every = short.length // EVALUATIONS

    def note(done: int, seconds: float, result: Evaluation) -> None:
        rate = result.results["planner"]["win_rate"]
        points.append({"done": done, "minutes": round(seconds / 60, 2), "rate": round(rate, 4)})

    try:
        if learner == "example":
            learn_example(players, seed, short.length, folder, note, every, GAMES)
        else:
            options = {"learner": learner, "players": players, "seed": seed, "eval_every": every}
            options |= {"curve_every": 1, "eval_games": GAMES, "final_games": GAMES}
            options |= {learners.learner(learner).Config.length: short.length}
            options |= {} if learner == "sb3" else {"workers": 1}
            run = learn_run(learners.config_of(options), folder, note)
            run.finish()  # the last point is that of the last network, not of the best one
            row["kl"] = max(point.get("approx_kl", 0) for point in run.curve.training)
    except (Exception, SystemExit) as error:  # is told for what it is
        traceback.print_exc()
        row["failure"] = f"{type(error).__name__}: {error}"
    write_json(folder / "row.json", row)
    last = row["failure"] or f"{100 * points[-1]['rate']:.1f} %"
    print(f"{learner}, {players} players, seed {seed}: {last}", flush=True)


def by_case(rows: list[Row]) -> dict[tuple[str, int], list[Row]]:
    """Return the rows of each learner and number of players, by seed."""
    cases: dict[tuple[str, int], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["players"], row["seed"])):
        cases.setdefault((row["learner"], row["players"]), []).append(row)
    order = list(LEARNERS)
    return dict(sorted(cases.items(), key=lambda item: (order.index(item[0][0]), item[0][1])))


def ends(rows: list[Row]) -> dict[int, float]:
    """Return the percentage of games won at the end, by seed, of runs that did not fail."""
    return {row["seed"]: 100 * row["points"][-1]["rate"] for row in rows if not row["failure"]}


def faults(rows: list[Row]) -> list[str]:
    """Name the runs that failed, and those that lag behind."""
    result = []
    for (learner, players), runs in by_case(rows).items():
        where, lag = f"{learner}, {players} players, seed", LEARNERS[learner].lag
        result += [f"{where} {row['seed']}: {row['failure']}" for row in runs if row["failure"]]
        wins = ends(runs)
        mean = float(np.mean([*wins.values()] or [0.0]))
        result += [
            f"{where} {seed}: {won:.1f} %, more than {lag:g} points under the mean, {mean:.1f}"
            for seed, won in wins.items()
            if won < mean - lag
        ]
    return result


def table(rows: list[Row]) -> str:
    """Return the wins of each learner's seeds: mean, lowest and highest."""
    lines = []
    for (learner, players), runs in by_case(rows).items():
        wins = ends(runs)
        if not wins:
            continue
        worst = min(wins, key=lambda seed: wins[seed])
        minutes = np.mean([row["points"][-1]["minutes"] for row in runs if not row["failure"]])
        unit = "games" if learner == "value" else "decisions"
        kl = max((row.get("kl") or 0 for row in runs), default=0)
        lines.append(
            [
                *(LEARNERS[learner].about, f"{runs[0]['length']:,} {unit}", str(players)),
                f"{len(wins)} of {len(runs)}",
                f"{np.mean([*wins.values()]):.1f} %",
                f"{wins[worst]:.1f} % (seed {worst})",
                f"{max(wins.values()):.1f} %",
                f"{kl:.3f}" if kl else "-",
                f"{minutes:.1f}",
            ]
        )
    head = ["learner", "learns from", "players", "seeds that end", "mean", "worst", "best"]
    return markdown([*head, "largest KL of an update", "CPU-minutes"], lines, rows)


def draw(rows: list[Row]) -> bytes:
    """Draw a curve for each seed, a panel for each learner and number of players, as a PNG."""
    from matplotlib.figure import Figure

    cases = by_case(rows)
    learners = [name for name in LEARNERS if any(name == learner for learner, _ in cases)]
    figure = Figure(figsize=(9, 2.2 * len(learners)), layout="constrained")
    panels = figure.subplots(len(learners), 3, squeeze=False, sharey="row")
    for (i, learner), (j, players) in product(enumerate(learners), enumerate((2, 3, 4))):
        axis, unit = panels[i, j], "games" if learner == "value" else "decisions"
        for row in cases.get((learner, players), []):
            points = [{"done": 0, "rate": 0.0}, *row["points"]]
            places = [point["done"] / 1000 for point in points]
            axis.plot(places, [100 * point["rate"] for point in points], lw=1)
        axis.set_title(f"{LEARNERS[learner].about.strip('`')}, {players} players", fontsize=8)
        axis.set_xlabel(f"{unit} (thousands)", fontsize=7)
        axis.tick_params(labelsize=7)
        axis.grid(alpha=0.3)
        axis.set_ylim(bottom=0)
    for row_of_panels in panels:
        row_of_panels[0].set_ylabel("% won against planner", fontsize=7)
    image = BytesIO()
    figure.savefig(image, format="png", dpi=130)
    return image.getvalue()


def main() -> int:
    """Learn what is missing, print the table and the faults, and save them if asked."""
    parser = measuring_parser(__doc__)
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--players", type=int, nargs="+", choices=(2, 3, 4), default=[2, 3, 4])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(1, 9)))
    parser.add_argument("--folder", type=Path, default=Path("runs/seeds"))
    parser.add_argument("--workers", type=int, default=machine.cores(), help="runs side by side")
    parser.add_argument("--learned", action="store_true", help="learn no more")
    options = parser.parse_args()
    cases = product(options.learners, options.players, options.seeds)
    wanted = [(*case, options.folder / "{}-{}p-{}".format(*case)) for case in cases]
    context = get_context("spawn")
    if not options.learned:
        with ProcessPoolExecutor(options.workers, context, max_tasks_per_child=1) as pool:
            missing = [case for case in wanted if not (case[-1] / "row.json").exists()]
            for run in [pool.submit(learn, *case) for case in missing]:
                run.result()
    paths = (folder / "row.json" for *_, folder in wanted)
    rows = [json.loads(path.read_text()) for path in paths if path.exists()]
    report(table(rows), rows, "seeds", options.save)
    if options.save:
        write_file(PICTURE, draw(rows))
    for fault in (found := faults(rows)):
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
