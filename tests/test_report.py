"""The report: made from a summary alone, with ratings or without, safe with any text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest
from rich.console import Console

from carolus_env.arena.report import (
    cross_table,
    standings,
    table_rows,
    write_report,
)
from carolus_env.arena.report.plots import _ratings_plot
from carolus_env.arena.report.texts import shortened

HOSTILE = "<script>alert('x')</script>\"&\n$\\frac$|`[bold]\ud800"


def agent(spec: str, elo: float, won: float, taken: float) -> dict[str, Any]:
    return {
        "spec": spec,
        "rating": {"elo": elo, "low": elo - 20, "high": elo + 30},
        "games": 80,
        "win_share": won,
        "decisions": 4000,
        "seconds": 4000 * taken / 1e6,
        "us_per_decision": taken,
        "disc_use": [0.2, 0.19, 0.2, 0.21, 0.2],
        "court_share": 0.31,
        "mean_castles": 6.5,
    }


def pairing(i: int, j: int, rate: float) -> dict[str, Any]:
    return {
        "pair": [i, j],
        "agents": ["?", "?"],
        "games": 40,
        "deals": 20,
        "wins": [37, 2],
        "draws": 1,
        "win_rate": [rate, 1 - rate],
        "ci95": [[rate - 0.01, rate + 0.02], [0.98 - rate, 1.01 - rate]],
        "mean_rounds": 12.5,
        "mean_castles": [9.5, 4.25],
        "ends": {"castles": 39, "max_rounds": 1},
        "decisions": [2000, 2000],
        "seconds": [0.5, 1.5],
    }


def three() -> dict[str, Any]:
    """A summary of three agents, the strongest of which comes last."""
    return {
        "format": "carolus-tournament-summary",
        "version": 1,
        "rules": {"players": 2, "crown_choice": "on_roll"},
        "schedule": "round_robin",
        "seed": 7,
        "deals": 20,
        "games": 120,
        "complete": True,
        "agents": [
            agent("random", 0, 0.05, 2.5),
            agent("greedy", 210.4, 0.55, 1234),
            agent("mcts:sims=400", 333.6, 0.9, 2.5e6),
        ],
        "pairings": [pairing(0, 1, 0.1), pairing(0, 2, 0.004), pairing(1, 2, 0.2)],
        "cycle": None,
        "play": {"mean_rounds": 12.4, "mean_lead_changes": 3.2, "ends": {"castles": 120}},
        "versions": {"python": "3.11.7"},
        "machine": {"cpu": "abacus", "cores": 2},
        "seconds": 61.5,
    }


def unrated() -> dict[str, Any]:
    summary = three()
    for each in summary["agents"]:
        each["rating"] = None
    return summary


def printed(summary: Any, **how: Any) -> str:
    console = Console(width=200, **how)
    with console.capture() as caught:
        console.print(cross_table(summary))
    return caught.get()


class Page(HTMLParser):
    """Reads a page: its tags, attributes and text; fails where tags do not close as they open."""

    EMPTY = ("meta", "path", "use", "circle")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.text += f" {data}"


# ------------------------------------------------------------------------------------ the table


def test_the_cross_table_has_the_strongest_agent_first() -> None:
    assert table_rows(three()) == [
        ["#", "agent", "Elo [95 %]", "won %", "1", "2", "3", "a decision"],
        ["1", "mcts:sims=400", "334 [314, 364]", "90.0", "-", "80", ">99", "2.5 s"],
        ["2", "greedy", "210 [190, 240]", "55.0", "20", "-", "90", "1.23 ms"],
        ["3", "random", "0 [-20, 30]", "5.0", "<1", "10", "-", "2.5 us"],
    ]


def test_without_ratings_the_win_rate_decides() -> None:
    assert [line.agent for line in standings(unrated())] == [2, 1, 0]
    assert "Elo [95 %]" not in table_rows(unrated())[0]


@pytest.mark.parametrize(
    ("rate", "shown"),
    [
        (0, "0"),
        (1e-9, "<1"),
        (0.0051, "1"),
        (0.5, "50"),
        (0.994, "99"),
        (0.9951, ">99"),
        (1, "100"),
    ],
)
def test_only_all_wins_are_100_percent(rate: float, shown: str) -> None:
    summary = three()
    summary["pairings"] = [pairing(2, 1, rate)]
    assert table_rows(summary)[1][5] == shown


def test_the_terminals_table_is_complete_without_colours() -> None:
    text = printed(three(), color_system=None)
    for row in table_rows(three()):
        for cell in row:
            assert cell in text
    assert "2 players, round robin, 20 deals, 120 games, seed 7" in text
    assert "\x1b" not in text
    coloured = printed(three(), force_terminal=True, color_system="truecolor")
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == text
    assert "\x1b[38;2;0;0;0;48;2;" in coloured


def test_specs_are_no_markup_for_the_terminal() -> None:
    summary = three()
    summary["agents"][1]["spec"] = "my[bold]|bot`_*<b>.py:X"
    assert "my[bold]|bot`_*<b>.py:X" in printed(summary)


def test_agents_of_the_same_spec_and_long_specs_stay_different() -> None:
    summary = three()
    long = "ppo:/home/a/very/long/path/to/{}/p2/best,temperature=1"
    summary["agents"][0]["spec"] = summary["agents"][1]["spec"] = long.format("mine")
    summary["agents"][2]["spec"] = long.format("yours")
    names = {line.name for line in standings(summary)}
    assert names == {f"{long.format('mine')} #1", f"{long.format('mine')} #2", long.format("yours")}
    shown = set(shortened(sorted(names)))
    assert len(shown) == 3
    assert max(map(len, shown)) <= 36
    summary["agents"][1]["spec"] = long.format("other")
    table = printed(summary)
    assert "ppo:/home/" in table
    assert "\u2026" in table


# ------------------------------------------------------------------------------------ the page


def test_a_report_is_plots_and_a_page_that_needs_nothing_else(tmp_path: Path) -> None:
    written = write_report(tmp_path / "new" / "folder", three())
    assert sorted(path.name for path in written) == [
        "ratings.png",
        "ratings.svg",
        "report.html",
        "wins.png",
        "wins.svg",
    ]
    assert sorted(written) == sorted((tmp_path / "new" / "folder").iterdir())
    for path in written:
        data = path.read_bytes()
        if path.suffix == ".png":
            assert data.startswith(b"\x89PNG")
        elif path.suffix == ".svg":
            assert ElementTree.fromstring(data).tag.endswith("svg")
            assert b"dc:date" not in data

    text = (tmp_path / "new" / "folder" / "report.html").read_text()
    page = Page(text)
    assert not page.tags & {"script", "link", "img", "iframe", "object", "base"}
    for name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in ("href", "xlink:href", "src") or value.startswith("#")
    assert "url(http" not in text
    assert "@import" not in text
    for said in (
        "mcts:sims=400",
        "334 [314, 364]",
        "37-1-2",  # the pairing (0, 1) is seen from its stronger agent: 2-1-37
        "ended by castles",
        "lead changes",
        "20.0",  # discs
        "31.0",  # to court
        "abacus",
        "3.11.7",
        "on_roll",
        "With only 20 deals",
    ):
        assert said in page.text or said == "37-1-2"
    assert "Cycle" not in page.text
    circle = {**three(), "cycle": "a beats b (60 %), b beats c (58 %), c beats a (55 %)"}
    write_report(tmp_path, circle)
    assert "Cycle: a beats b (60 %)" in Page((tmp_path / "report.html").read_text()).text
    assert "2-1-37" in page.text
    assert "prefers-color-scheme:dark" in text


def test_the_same_summary_gives_the_same_bytes_whatever_the_users_settings(tmp_path: Path) -> None:
    one = write_report(tmp_path / "one", three())
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True}):
        settings = dict(matplotlib.rcParams)
        other = write_report(tmp_path / "other", json.loads(json.dumps(three())))
        assert dict(matplotlib.rcParams) == settings
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


def hostile(value: Any, key: str = "") -> Any:
    """The same summary with every text in it, and names of parts that are shown, made hostile."""
    if isinstance(value, dict):
        shown = key in ("versions", "machine", "ends", "rules")
        return {
            HOSTILE if shown and k != "players" else k: hostile(v, k) if k != "format" else v
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [hostile(each) for each in value]
    return HOSTILE if isinstance(value, str) else value


def test_no_text_of_a_summary_becomes_html(tmp_path: Path) -> None:
    summary = hostile(three())
    summary["seed"] = HOSTILE
    assert json.dumps(summary).count("alert") > 10
    written = write_report(tmp_path, summary)
    text = (tmp_path / "report.html").read_text()
    page = Page(text)
    assert "script" not in page.tags
    assert text.count("<script") == 0
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert('x')</script>\"&" in page.text
    for path in written:
        if path.suffix == ".svg":
            tags = {each.tag for each in ElementTree.parse(path).iter()}
            assert not [tag for tag in tags if "script" in str(tag)]
    assert "alert" in printed(summary)


def test_without_ratings_the_page_is_whole_but_for_their_plot(tmp_path: Path) -> None:
    names = [path.name for path in write_report(tmp_path, unrated())]
    assert names == ["wins.svg", "wins.png", "report.html"]
    text = Page((tmp_path / "report.html").read_text()).text
    assert "None" not in text
    assert "Elo" not in text
    assert "mcts:sims=400" in text
    assert "greedy" in printed(unrated())


def test_a_tournament_cut_short_says_so_and_agents_that_never_met_have_no_rate(
    tmp_path: Path,
) -> None:
    summary = three() | {"schedule": "field", "complete": False}
    del summary["pairings"][2]
    write_report(tmp_path, summary)
    assert "cut short" in Page((tmp_path / "report.html").read_text()).text
    assert table_rows(summary)[1][4:7] == ["-", "", ">99"]


def test_perfect_scores_do_not_stretch_the_plot() -> None:
    summary = three()
    summary["agents"][2]["rating"]["high"] = 9000
    axes = _ratings_plot(standings(summary)).axes[0]
    assert axes.get_xlim()[1] < 1000
    assert ">" in [line.get_marker() for line in axes.lines], "an arrow says that it goes on"


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        (None, "format must be 'carolus-tournament-summary', got None"),
        ([], "format must be"),
        ({"agents": []}, "format must be"),
        ({**three(), "format": "carolus-record"}, "got 'carolus-record'"),
        ({**three(), "version": 2}, "version must be 1, got 2"),
    ],
)
def test_what_is_no_summary_is_refused(tmp_path: Path, summary: Any, said: str) -> None:
    for read in (table_rows, cross_table, standings):
        with pytest.raises(ValueError, match=f"^not the summary of a tournament: .*{said}"):
            read(summary)
    with pytest.raises(ValueError, match="not the summary"):
        write_report(tmp_path / "new", summary)
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    old = {path: path.read_bytes() for path in write_report(tmp_path, three())}
    bad = three()
    bad["agents"][0]["spec"] = "another"
    del bad["play"]["mean_rounds"]  # met only while the page is made
    with pytest.raises(KeyError):
        write_report(tmp_path, bad)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == old
