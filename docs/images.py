"""Draw the pictures of docs/images/, always the same bytes: ``python docs/images.py``.

Without options the plot and the game; with ``--screenshots`` also the page and a report, which
needs Chromium and the extra ``dev``. The games have fixed seeds, so pictures change only when the
pages do; the report also shows times and the machine.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.append(str(Path(__file__).parent.parent))

import carolus_env as ce
from benchmarks.results import load, short
from carolus_env import bots, evaluation
from carolus_env.drawing.pictures import animation_svg
from carolus_env.engine.rules import MOVE, Rules, action_parts
from carolus_env.evaluation.report import write_report
from carolus_env.play.server import Api, make_server, open_socket, start_compiling
from carolus_env.play.session import GameFile, Roster, Session
from carolus_env.records import Record, write_records
from carolus_env.system.files import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from playwright.sync_api import Browser

IMAGES = Path(__file__).parent / "images"


# ------------------------------------------------------------------------------------ the plot


BLACK, GREY = "#222222", "#767676"
BLUE, GREEN, VERMILION, PURPLE = "#0072b2", "#009e73", "#d55e00", "#cc79a7"
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""

LINES = {
    "playout": (BLACK, "-"),
    "rollout_mask": (BLUE, "-"),
    "rollout_u8": (VERMILION, "-"),
    "rollout_f32": (GREEN, "-"),
    "step_mask": (BLUE, "--"),
    "step_u8": (VERMILION, "--"),
    "step_f32": (GREEN, "--"),
    "gym_vector": (PURPLE, ":"),
    "gym_turns": (BLACK, ":"),
    "sb3_vec_env": (GREY, ":"),
}
"""Colour: what is written at each decision; line style: who calls the engine."""
CALLERS = "solid: a loop in the kernel\ndashed: calls from Python\ndotted: a library's environment"

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "carolus",  # otherwise ids in the file are random
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": BLACK,
    "text.color": BLACK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
}


def batches() -> Figure:
    """Draw lines: decisions a second against the batch, one line a mode, two players."""
    from matplotlib.figure import Figure

    rows = [row for row in load("throughput") if (row["players"], row["threads"]) == (2, 1)]
    modes = {
        mode: {row["batch"]: row for row in sorted(rows, key=lambda row: row["batch"])
               if row["mode"] == mode}
        for mode in LINES
    }  # fmt: skip
    figure = Figure(figsize=(8.5, 5.2), layout="constrained", facecolor="white")
    axes = figure.subplots()
    ends = {}
    for mode, rows in modes.items():
        colour, line = LINES[mode]
        rates = [row["decisions_per_s"] for row in rows.values()]
        axes.plot(list(rows), rates, line, color=colour, marker="o", markersize=3, linewidth=1.5)
        ends[mode] = (max(rows), rates[-1], colour)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({batch for rows in modes.values() for batch in rows})
    ticks = sizes[:: 1 + len(sizes) // 12]
    axes.set_xticks(ticks, [f"{size:,}" for size in ticks])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda number, _: re.sub(r"\.0+", "", short(number)))
    axes.yaxis.set_minor_formatter("")
    axes.grid()
    axes.set_xlabel("games in the batch")
    axes.set_ylabel("decisions a second, 2 players, one thread")
    axes.text(0.98, 0.03, CALLERS, transform=axes.transAxes, ha="right", color=GREY)
    _label_lines(axes, ends, sizes[-1] * 1.6)
    return figure


def _label_lines(axes: Any, ends: dict[str, tuple[int, float, str]], at: float) -> None:
    """Write the modes at the ends of their lines, moved down where they would overlap."""
    low, high = axes.get_ylim()
    step, last = (high / low) ** 0.042, float("inf")
    for mode, (batch, rate, colour) in sorted(ends.items(), key=lambda item: -item[1][1]):
        last = min(rate, last / step)
        axes.annotate(
            mode,
            (batch, rate),
            (at, last),
            va="center",
            color=colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkB": 3},
        )


# ------------------------------------------------------------------------------------ boards


def boards() -> Iterator[tuple[str, str]]:
    """Name and SVG of a whole game that plays by itself."""
    rules = Rules(players=2)
    agents = ce.make("planner"), ce.make("planner:errors=0.3")
    _, actions = evaluation.play_games([[0, 1]], agents, rules, seed=29)
    record = evaluation.game_record(rules, seed=29, deal=0, actions=actions[0])
    yield "game", animation_svg(record, seconds_per_move=0.6, names=["Pepin", "Lothair"])


# ------------------------------------------------------------------------------------ screenshots

DESKTOP = {"viewport": {"width": 1360, "height": 860}}
REPORT = {"viewport": {"width": 1000, "height": 876}}
DECISIONS = 90  # before the position that is shown


def in_play(players: int, phase: int, seed: int) -> Session:
    """Return a game in which the first seat, a person, is to move."""
    planner = bots.make("planner")
    session = Session.new(Rules(players=players), [planner] * players, seed=seed)
    while not session.over:
        session.ask_agent()
    at = next(
        index
        for index in session.decisions[DECISIONS:]
        if (session.states[index]["player"], session.states[index]["phase"]) == (0, phase)
    )
    record = {**session.record(), "events": session.events[:at], "result": None}
    agents = [None, *[planner] * (players - 1)]
    return Session(record, agents, names=["Ada", *[None] * (players - 1)], seed=seed)


def full_game(seed: int) -> Record:
    """Return the record of a whole game."""
    session = Session.new(Rules(), [bots.make("ppo"), bots.make("planner")], seed=seed)
    while not session.over:
        session.ask_agent()
    return session.record()


def report(folder: Path) -> str:
    """Return the address of the report of a small tournament."""
    agents = ("random", "greedy", "planner", "ppo")
    cup = evaluation.Tournament(evaluation.Plan(Rules(), agents, deals=100, seed=1))
    cup.run()
    write_report(folder, cup.summary())
    return (folder / "report.html").as_uri()


def shot(browser: Browser, address: str, name: str, ready: str, look: dict[str, Any]) -> None:
    context = browser.new_context(**look)
    page = context.new_page()
    if name == "play":  # the game that the tab keeps
        game = json.dumps(in_play(2, MOVE, 1).record())
        page.add_init_script(f"sessionStorage.setItem('carolus.game', {json.dumps(game)})")
    page.goto(address)
    page.wait_for_selector(ready)
    if name == "play":
        page.locator(".choices .step.changes").first.hover()
        page.wait_for_selector(".tip")
    if name == "viewer":
        page.wait_for_selector(".opinion .shares")
        page.wait_for_selector(".graph")
    page.screenshot(path=IMAGES / f"{name}.png")
    context.close()


def screenshots() -> int:
    """Take the pictures of the page and of a report."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("Chromium is not installed", file=sys.stderr)
        return 2
    record = full_game(1)
    with tempfile.TemporaryDirectory() as folder:
        write_records(Path(folder) / "game.jsonl", [record])
        app = Api(Roster(), [GameFile(Path(folder) / "game.jsonl")])
    start_compiling(app.roster).join()  # so that no picture waits for compiling
    late = list(enumerate(record["events"]))[60:]
    middle = next(
        index
        for index, event in late
        if "action" in event and action_parts(event["action"]).kind == "place"
    )
    listening = open_socket(0)
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with sync_playwright() as playwright:
        options = ["--headless", "--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        shot(browser, f"{address}/game", "play", ".choices .step", DESKTOP)
        shot(browser, f"{address}/replay/0#0/{middle}", "viewer", ".board svg", DESKTOP)
        with tempfile.TemporaryDirectory() as folder:
            shot(browser, report(Path(folder)), "report", "pre", REPORT)
        browser.close()
    server.should_exit = True
    thread.join(timeout=10)
    return 0


def main(arguments: list[str]) -> int:
    """Draw the plot and the game, and take screenshots if asked."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # independent of the user's settings
        matplotlib.rcParams.update(STYLE)
        image = BytesIO()
        batches().savefig(image, format="svg", metadata={"Date": None, "Creator": None})
        write_file(IMAGES / "batches.svg", image.getvalue())
    for name, svg in boards():
        write_file(IMAGES / f"{name}.svg", svg.encode())
    return screenshots() if "--screenshots" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
