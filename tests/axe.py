"""``make axe``: axe-core's findings on every page, in both themes, on a desktop and a phone.

axe-core is fetched from the npm registry with npm, into a temporary folder. It is no dependency of
the project, and CI does not run this. The exit status is 1 where a finding is serious or critical.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from page import Page, serving
from playwright.sync_api import sync_playwright

from carolus_env import bots
from carolus_env.engine.rules import DISC, MOVE, PLACE, Rules
from carolus_env.notation import to_line
from carolus_env.play.api import Api, GameInPlay
from carolus_env.play.library import GameFile
from carolus_env.play.roster import Roster
from carolus_env.play.session import Session
from carolus_env.records import record_line

SERIOUS = ("serious", "critical")
LOOKS = [
    {"viewport": size, "color_scheme": scheme}
    for size in ({"width": 1360, "height": 860}, {"width": 390, "height": 844})
    for scheme in ("light", "dark")
]


def axe() -> str:
    """The source of axe-core."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["npm", "pack", "--silent", "axe-core"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        [packed] = Path(folder).glob("axe-core-*.tgz")
        with tarfile.open(packed) as archive:
            content = archive.extractfile("package/axe.min.js")
            assert content is not None
            return content.read().decode()


def pages(page: Page) -> dict[str, tuple[str, str]]:
    """Of each page its path, and what it shows when it is ready."""
    greedy = bots.make("greedy")
    whole = Session.new(Rules(max_rounds=3), [greedy] * 2, seed=3)
    found, states = {"start": ("/", "main h1"), "viewer, none open": ("/replay", "main h1")}, {}
    while not whole.over:
        phase = int(whole.state["phase"])
        if len(whole.events) > 12 and phase not in states:
            states[phase] = whole.record()
        whole.ask_agent()
    for phase, name in ((DISC, "a disc"), (PLACE, "a paladin"), (MOVE, "the Emperor")):
        session = Session(states[phase], [None, None], seed=1)
        found[name] = f"/game/{page.app.games.add(GameInPlay(session))}", ".choices button"
    over = GameInPlay(Session(whole.record(), [None, greedy], seed=1))
    found["the end"] = f"/game/{page.app.games.add(over)}", ".choices.over button"
    file = page.app.files.add(GameFile.from_bytes("a game", record_line(whole.record())))
    found["viewer"] = f"/replay/{file}#0/40", ".viewer .axes"
    line = to_line(session.state, generator=False)
    found["position"] = f"/position#{quote(line)}", ".board svg"
    found["no such game"] = "/game/none", "[role=alert]"
    return found


def findings(browser: Any, page: Page, source: str) -> list[tuple[str, str, str, str]]:
    """Impact, rule, page and element of each finding."""
    found = []
    for look in LOOKS:
        context = browser.new_context(**look)
        context.set_default_timeout(180_000)
        name = f"{look['viewport']['width']} px, {look['color_scheme']}"
        for title, (path, ready) in pages(page).items():
            tab = context.new_page()
            tab.goto(page.address + path)
            tab.wait_for_selector(ready)
            tab.evaluate(source)
            for one in tab.evaluate("axe.run().then(result => result.violations)"):
                for node in one["nodes"]:
                    place = f"{title} ({name})"
                    found.append((one["impact"], one["id"], place, node["html"][:100]))
            tab.close()
        context.close()
    return found


def main() -> int:
    """Print the findings."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or shutil.which("npm") is None:
        print("this needs Chromium and npm", file=sys.stderr)
        return 2
    source = axe()
    print(source.partition("\n")[0][:40])
    with serving(Api(Roster())) as page, sync_playwright() as playwright:
        options = ["--headless", "--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        found = findings(browser, page, source)
        browser.close()
    for impact, rule, place, element in sorted(set(found)):
        print(f"{impact:10}{rule:28}{place:36}{element}")
    print(f"{len(found)} findings, {sum(one[0] in SERIOUS for one in found)} serious or critical")
    return int(any(one[0] in SERIOUS for one in found))


if __name__ == "__main__":
    sys.exit(main())
