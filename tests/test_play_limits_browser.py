"""The page stops searches, lets others take over a seat, waits for compiling, and keeps files."""

from __future__ import annotations

import time
from typing import Any

import test_play_browser
from page import Page, serving
from test_play_browser import Open, click_to, decided, drop, start_game, sync_api
from test_play_limits import ENDLESS, compile_endless, in_time, thinking_game
from test_play_server import finished

from carolus_env.play.app_state import AppState
from carolus_env.play.roster import LIMITS, Roster
from carolus_env.records import record_line

pytestmark = test_play_browser.pytestmark
browser, open_tab, page = (
    getattr(test_play_browser, name) for name in ("browser", "open_tab", "page")
)
expect = sync_api.expect


def jobs(page: Page, key: str) -> Any:
    return page.app.games[key].jobs


def test_a_bot_is_stopped_and_replaced(open_tab: Open, page: Page) -> None:
    game = thinking_game(page)
    key, seat = game["key"], game["seat"]
    tab = open_tab(f"/game/{key}")
    stop = tab.locator(".bots").get_by_role("button", name="Stop")
    expect(stop).to_be_enabled()
    assert in_time(lambda: jobs(page, key))
    stop.click()
    expect(tab.locator("#notice")).to_have_text("The bot was stopped.")
    assert in_time(lambda: not jobs(page, key))
    expect(stop).to_be_disabled()
    tab.get_by_role("button", name="Resume").click()
    expect(stop).to_be_enabled()
    tab.get_by_text("Replace a player").click()
    expect(tab.locator(".replace")).to_contain_text(LIMITS)
    expect(tab.get_by_label("Seat", exact=True)).to_have_value(str(seat))
    tab.get_by_label("Who takes over").select_option("")
    tab.get_by_role("button", name="Replace", exact=True).click()
    assert decided(tab) == "place"
    expect(tab.locator("h1")).to_contain_text(f"Player {seat + 1}")
    assert in_time(lambda: not jobs(page, key))
    tab.get_by_label("Who takes over").select_option("easy")
    tab.get_by_label("Seat", exact=True).select_option(str(seat))
    tab.get_by_role("button", name="Replace", exact=True).click()
    tab.wait_for_function("n => document.querySelectorAll('.log li').length > n", arg=game["at"])
    assert page.get(f"games/{key}")[1]["agents"][seat] == "planner:errors=0.33"


def test_a_search_ends_when_the_page_is_left_or_the_game_forgotten(
    open_tab: Open, page: Page
) -> None:
    game = thinking_game(page)
    tab = open_tab(f"/game/{game['key']}")
    held = page.app.games[game["key"]]
    assert in_time(lambda: held.jobs)
    tab.get_by_role("link", name="New game").click()
    assert in_time(lambda: not held.jobs)
    tab.get_by_role("button", name="Forget the game").first.click()
    assert in_time(lambda: game["key"] not in page.app.games)


def test_a_hint_that_takes_long_is_stopped(open_tab: Open) -> None:
    compile_endless()
    with serving(AppState(Roster([ENDLESS]))) as page:
        tab = open_tab(page.address)
        start_game(tab)
        click_to(tab, "place")
        tab.get_by_label("Bot that gives hints").select_option(ENDLESS)
        tab.get_by_role("button", name="Hint").click()
        held = page.app.games[tab.url.rpartition("/")[2]]
        assert in_time(lambda: held.jobs)
        tab.locator(".thinking").get_by_role("button", name="Stop").click()
        assert in_time(lambda: not held.jobs)
        expect(tab.locator(".opinions")).to_have_text("The search was stopped.")
        expect(tab.get_by_role("button", name="Hint")).to_be_enabled()


def test_links_to_a_file_stay_when_the_server_was_started_anew(open_tab: Open) -> None:
    record = finished(1, names=["Anna", "Bert"])
    with serving(AppState(Roster())) as page:
        tab = open_tab(page.address)
        drop(tab, "saved.jsonl", record_line(record))
        expect(tab.locator("h1")).to_have_text("Anna · Bert")
        address = tab.url
        for key in list(page.app.files):  # as after a restart: the same address, and no files
            page.app.files.remove(key)
        tab.goto(page.address)
        tab.goto(f"{address.partition('#')[0]}#0/20")
        expect(tab.locator("h1")).to_have_text("Anna · Bert")
        expect(tab.locator(".transport output")).to_have_text(f"20 / {len(record['events'])}")
        assert page.get(f"files/{address.partition('#')[0].rpartition('/')[2]}")[0] == 200


def test_start_waits_until_the_chosen_bots_are_compiled(open_tab: Open) -> None:
    app = AppState(Roster(), warms=True)  # it never begins
    with serving(app) as page:
        tab = open_tab(page.address)
        start = tab.get_by_role("button", name="Start")
        line = tab.locator("form .warmth")
        expect(line).to_contain_text("Preparing the engine, once on this machine: the game")
        expect(start).to_be_disabled()
        cold = app.warmth.view()["cold"]
        tab.get_by_label("Seat 2", exact=True).select_option("greedy")
        app.warmth._done = 1 + cold.index("greedy")
        expect(line).to_be_hidden()
        time.sleep(1)
        expect(start).to_be_disabled()
        app.warmth._done += 1
        expect(start).to_be_enabled()
