"""The page's first minute: seconds from the command to the first own decision, and frames a second.

    python benchmarks/first_minute.py
    python benchmarks/first_minute.py --level hard --json first_minute.json

Starts `python -m carolus_env.play` with an empty cache of compiled kernels (cold), then with the
cache that it left (warm), opens the page in Chromium, chooses a level as soon as it can be pressed,
and plays the first disc. The browser has been started before. Then two bots play at the usual pace
with motion, and the frames that the browser draws are counted. Needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from attacks import run_server
from machine import line
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
LIMIT = 300_000  # ms, for what is compiled
FRAMES = """seconds => new Promise(done => {
  const times = [];
  const note = now => {
    times.push(now);
    if (now - times[0] < 1000 * seconds) requestAnimationFrame(note); else done(times);
  };
  requestAnimationFrame(note);
})"""
"""The times at which frames were drawn, in ms."""
HERE = Path(__file__).parent.parent


def first_decision(browser: Browser, cache: str, level: str) -> dict[str, float]:
    """Seconds from the command until the page is there, a game can begin, a disc is played."""
    started, times = time.perf_counter(), {}
    with run_server({"NUMBA_CACHE_DIR": cache}, HERE) as (_, port):
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        button = page.locator(f".level.{level}")
        button.wait_for()
        times["page"] = time.perf_counter() - started
        page.locator(f".level.{level}:not([disabled])").wait_for(timeout=LIMIT)
        times["level"] = time.perf_counter() - started
        button.click()
        page.locator(".choices .choice").first.click(timeout=LIMIT)
        page.locator(".log li").last.wait_for(timeout=LIMIT)
        times["decision"] = time.perf_counter() - started
        page.close()
    return times


def frames(page: Page, address: str, seconds: float) -> dict[str, float]:
    """How smoothly a game of two bots is shown."""
    page.goto(address)
    key = page.evaluate(
        """async () => (await (await fetch("/api/games", {
            method: "POST", headers: {"Content-Type": "application/json"},
            body: JSON.stringify({rules: {players: 2}, agents: ["planner", "planner"], seed: 1}),
        })).json()).key"""
    )
    page.goto(f"{address}game/{key}")
    page.locator(".log li").nth(3).wait_for(timeout=LIMIT)
    between = np.diff(page.evaluate(FRAMES, seconds))
    return {
        "frames a second": 1000 * len(between) / float(between.sum()),
        "95th percentile, ms": float(np.quantile(between, 0.95)),
        "longest, ms": float(between.max()),
    }


def main(argv: list[str] | None = None) -> int:
    """Measure, print, and write the JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--level", choices=("easy", "medium", "hard"), default="medium")
    parser.add_argument("--warm", type=int, default=3, metavar="N", help="warm starts (default: 3)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of frames (default: 20)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("Chromium is not installed", file=sys.stderr)
        return 2
    machine = line()
    print(machine)
    rows: list[dict[str, Any]] = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as cache:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        for start in ["cold", *["warm"] * options.warm]:
            times = first_decision(browser, cache, options.level)
            rows.append({"start": start, **{key: round(s, 2) for key, s in times.items()}})
            print(", ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
        with run_server({"NUMBA_CACHE_DIR": cache}, HERE) as (_, port):
            page = browser.new_page(viewport={"width": 1360, "height": 860})
            found = frames(page, f"http://127.0.0.1:{port}/", options.seconds)
            rows.append({key: round(value, 1) for key, value in found.items()})
            print(", ".join(f"{key} {value}" for key, value in rows[-1].items()))
        browser.close()
    if options.json:
        from carolus_env.system.files import write_json

        write_json(options.json, [{**row, "machine": machine} for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
