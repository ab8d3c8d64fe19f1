"""Pictures of the page and of a report: ``python docs/screenshots.py`` writes docs/images/*.png.

Needs Chromium and the extra ``dev``. The games have fixed seeds, so the pictures change only when
the pages do; the report also shows times and the machine.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from carolus_env import arena, bots
from carolus_env.arena.report import write_report
from carolus_env.engine.rules import DISC, MOVE, PLACE, Rules, action_parts
from carolus_env.play.api import Api, GameInPlay
from carolus_env.play.library import GameFile
from carolus_env.play.roster import Roster
from carolus_env.play.server import make_server, open_socket, start_compiling
from carolus_env.play.session import Session
from carolus_env.records import Record, record_line

IMAGES = Path(__file__).parent / "images"
DESKTOP = {"viewport": {"width": 1360, "height": 860}}
REPORT = {"viewport": {"width": 1000, "height": 876}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "color_scheme": "dark",
    "has_touch": True,
}
DECISIONS = 90  # before the position that is shown


def in_play(players: int, phase: int, seed: int) -> Session:
    """A game in which the first seat, a person, is to move."""
    planner = bots.make("planner")
    session = Session.new(Rules(players=players), [planner] * players, seed=seed)
    decisions = 0
    while decisions < DECISIONS or (session.player, session.state["phase"]) != (0, phase):
        session.ask_agent()
        decisions += 1
    agents = [None, *[planner] * (players - 1)]
    return Session(session.record(), agents, names=["Ada", *[None] * (players - 1)], seed=seed)


def whole(seed: int) -> Record:
    """The record of a whole game."""
    session = Session.new(Rules(), [bots.make("ppo"), bots.make("planner")], seed=seed)
    while not session.over:
        session.ask_agent()
    return session.record()


def report(folder: Path) -> str:
    """The address of the report of a small tournament."""
    agents = ("random", "greedy", "planner", "ppo")
    cup = arena.Tournament(arena.Plan(Rules(), agents, deals=100, seed=1))
    cup.run()
    write_report(folder, cup.summary())
    return (folder / "report.html").as_uri()


def shot(browser: Browser, address: str, name: str, ready: str, look: dict[str, Any]) -> None:
    context = browser.new_context(**look)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(ready)
    if name == "play":
        page.locator(".choices .step.changes").first.hover()
        page.wait_for_selector(".tip")
    if name == "play_phone":
        page.locator(".hand button").first.click()
        page.locator(".where button").nth(1).focus()
        page.wait_for_selector(".tip")
    if name == "viewer":
        page.wait_for_selector(".opinion .shares")
        page.wait_for_selector(".graph")
    page.screenshot(path=IMAGES / f"{name}.png")
    context.close()


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("Chromium is not installed", file=sys.stderr)
        return 2
    IMAGES.mkdir(exist_ok=True)
    app = Api(Roster())
    start_compiling(app.roster).join()  # so that no picture waits for compiling
    move, place, disc = (
        app.games.add(GameInPlay(in_play(players, phase, seed)))
        for players, phase, seed in ((2, MOVE, 1), (2, PLACE, 1), (4, DISC, 3))
    )
    record = whole(1)
    file = app.files.add(GameFile.from_bytes("game", record_line(record)))
    late = list(enumerate(record["events"]))[60:]
    middle = next(
        index
        for index, event in late
        if "action" in event and action_parts(event["action"]).kind == "place"
    )
    listening = open_socket(0)
    server = make_server(app, listening)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with sync_playwright() as playwright:
        options = ["--headless", "--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        shot(browser, f"{address}/game/{move}", "play", ".choices .step", DESKTOP)
        shot(browser, f"{address}/game/{place}", "play_phone", ".choices .clan", PHONE)
        shot(browser, f"{address}/game/{disc}", "play_four", ".choices .choice", DESKTOP)
        shot(browser, f"{address}/replay/{file}#0/{middle}", "viewer", ".board svg", DESKTOP)
        with tempfile.TemporaryDirectory() as folder:
            shot(browser, report(Path(folder)), "report", "table", REPORT)
        browser.close()
    server.should_exit = True
    thread.join(timeout=10)
    return 0


if __name__ == "__main__":
    sys.exit(main())
