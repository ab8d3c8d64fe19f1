"""The report: made from a summary alone, with ratings or without, safe with any text."""

import json
import sys
from collections import Counter
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest

from carolus_env.evaluation.report import (
    _ratings_plot,
    cross_table,
    facts_table,
    print_tables,
    shortened,
    standings,
    write_report,
)
from carolus_env.evaluation.tournament import anchor

HOSTILE = "<script>alert('x')</script>\"&\n$\\frac$|`[bold]\ud800"


def agent(spec: str, elo: float, won: float, taken: float) -> dict[str, Any]:
    return {
        "spec": spec,
        "rating": {"elo": elo, "low": elo - 20, "high": elo + 30, "bound": ""},
        "games": 80,
        "win_share": won,
        "by_place": [won, won / 2],
        "decisions": 4000,
        "us_per_decision": taken,
        "mean_castles": 6.5,
    }


def pairing(i: int, j: int, rate: float) -> dict[str, Any]:
    return {
        "pair": [i, j],
        "games": 40,
        "wins": [37, 2],
        "draws": 1,
        "win_rate": [rate, 1 - rate],
        "ci95": [[rate - 0.01, rate + 0.02], [0.98 - rate, 1.01 - rate]],
        "mean_rounds": 12.5,
        "mean_castles": [9.5, 4.25],
        "ends": {"castles": 39, "max_rounds": 1},
    }


def table_rows(summary: Any) -> list[list[str]]:
    return cross_table(summary).texts()


def three() -> dict[str, Any]:
    """A summary of three agents, the strongest of which comes last."""
    return {
        "format": "carolus-tournament-summary",
        "version": 1,
        "schedule": "round_robin",
        "seed": 7,
        "deals": 20,
        "games": 120,
        "complete": True,
        "seconds": 61.5,
        "rules": {"players": 2, "crown_choice": "on_roll"},
        "agents": [
            agent("random", 0, 0.05, 2.5),
            agent("greedy", 210.4, 0.55, 1234),
            agent("mcts:sims=400", 333.6, 0.9, 2.5e6),
        ],
        "pairings": [pairing(0, 1, 0.1), pairing(0, 2, 0.004), pairing(1, 2, 0.2)],
        "play": {"mean_rounds": 12.4, "ends": {"castles": 120}},
        "versions": {"python": "3.11.7"},
        "machine": {"cpu": "abacus", "cores": 2},
        "command": "python evaluate.py random greedy",
        "commit": "0123456789abcdef+",
    }


def printed(summary: Any, capsys: Any) -> str:
    capsys.readouterr()
    print_tables("a title", summary)
    text: str = capsys.readouterr().out
    return text


class Page(HTMLParser):
    """The tags, attributes and text of a page; every tag but the empty ones must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.open = Counter[str]()
        self.feed(text)
        self.tags = set(self.open)
        assert {tag for tag, count in self.open.items() if count} <= {"meta"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        self.open[tag] -= 1

    def handle_data(self, data: str) -> None:
        if not self.open["style"]:
            self.text += f" {data}"


def test_the_cross_table_has_the_strongest_agent_first_and_is_complete_without_colours(capsys):
    rows = table_rows(three())
    assert rows == [
        ["#", "agent", "Elo [95 %]", "won %", "1", "2", "3", "a decision", "won % by place"],
        ["1", "mcts:sims=400", "334 [314, 364]", "90.0", "-", "80", ">99", "2.5 s", "90 45"],
        ["2", "greedy", "210 [190, 240]", "55.0", "20", "-", "90", "1.23 ms", "55 28"],
        ["3", "random", "0 [-20, 30]", "5.0", "<1", "10", "-", "2.5 us", "5 2"],
    ]
    rates = {0: "0", 1e-9: "<1", 0.0051: "1", 0.994: "99", 0.9951: ">99", 1: "100"}
    for rate, shown in rates.items():  # only all wins are 100 %
        assert table_rows({**three(), "pairings": [pairing(2, 1, rate)]})[1][5] == shown
    text = printed(three(), capsys)
    assert all(cell in text for row in rows for cell in row)
    assert (
        "2 players, round robin, 20 deals, 120 games, seed 7, Elo by these games alone, 0: random"
        in " ".join(text.split())
    )
    for bound, shown in (("below", "below 30"), ("above", "above -20"), ("unknown", "unknown")):
        summary = three()  # the other end tells nothing
        summary["agents"][0]["rating"]["bound"] = bound
        assert table_rows(summary)[3][2] == shown


@pytest.mark.parametrize(
    ("agents", "schedule", "zero"),
    [
        ("random greedy planner", "round_robin", "planner"),
        ("greedy planner random", "field", "planner"),
        ("mcts greedy random", "field", "mcts"),
        ("greedy random mcts", "round_robin", "random"),
        ("greedy mcts", "round_robin", "the mean"),
    ],
)
def test_the_planner_has_rating_0_wherever_it_plays(agents, schedule, zero, capsys):
    specs = agents.split()
    number = anchor(specs, schedule)
    assert number == (None if zero == "the mean" else specs.index(zero))
    rows = [agent(spec, 0, 0.5, 1) for spec in specs]
    text = printed({**three(), "agents": rows, "pairings": [], "schedule": schedule}, capsys)
    assert f"alone, 0: {zero}" in " ".join(text.split())


def test_agents_of_the_same_spec_and_long_specs_stay_different(capsys):
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
    assert long.format("other") in printed(summary, capsys)


def test_a_report_is_a_plot_and_a_page_that_needs_nothing_else(tmp_path):
    folder = tmp_path / "new" / "folder"
    written = write_report(folder, three())
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True}):
        settings = dict(matplotlib.rcParams)
        again = write_report(tmp_path / "again", json.loads(json.dumps(three())))
        assert dict(matplotlib.rcParams) == settings
    same = [path.read_bytes() for path in again]
    assert [path.read_bytes() for path in written] == same, "whatever the user's settings"
    assert {path.name for path in written} == {"ratings.png", "ratings.svg", "report.html"}
    assert set(written) == set(folder.iterdir())
    for path in written:
        data = path.read_bytes()
        if path.suffix == ".png":
            assert data.startswith(b"\x89PNG")
        elif path.suffix == ".svg":
            assert ElementTree.fromstring(data).tag.endswith("svg")
            assert b"dc:date" not in data

    text = (folder / "report.html").read_text()
    page = Page(text)
    assert not page.tags & {"script", "link", "img", "iframe", "object", "base"}
    for name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in ("href", "xlink:href", "src") or str(value).startswith("#")
    assert "url(http" not in text and "@import" not in text
    pairing = "2-1-37"  # of 0 and 1, seen from the stronger one
    for said in ("334 [314, 364]", pairing, "abacus", "3.11.7", "on_roll", "only 20 deals"):
        assert said in page.text
    assert "python evaluate.py random greedy" in page.text and "0123456789abcdef+" in page.text
    summary = three() | {"schedule": "field"}
    del summary["pairings"][2]  # they never met
    write_report(tmp_path, summary | {"complete": False, "stop_rule": {"text": "a > b (H1)"}})
    text = Page((tmp_path / "report.html").read_text()).text
    for said in ("cut short", "Stop rule: a > b (H1)."):
        assert said in text
    assert table_rows(summary)[1][4:7] == ["-", "", ">99"]
    summary["agents"][2]["rating"]["high"] = 9000
    axes = _ratings_plot(standings(summary)).axes[0]
    assert axes.get_xlim()[1] < 1000, "perfect scores do not stretch the plot"
    assert ">" in [line.get_marker() for line in axes.lines], "an arrow says that it goes on"


def hostile(value: Any, key: str = "") -> Any:
    """The same summary with every text in it, and names of parts that are shown, made hostile."""
    if isinstance(value, dict):
        name = key in ("versions", "machine", "ends", "rules")
        result = {HOSTILE if name and k != "players" else k: hostile(value[k], k) for k in value}
        return result | {k: value[k] for k in ("format",) if k in value}
    if isinstance(value, list):
        return [hostile(each) for each in value]
    return HOSTILE if isinstance(value, str) else value


def test_no_text_of_a_summary_becomes_html(tmp_path, capsys):
    summary = hostile(three())
    summary["seed"] = HOSTILE
    assert json.dumps(summary).count("alert") > 10
    written = write_report(tmp_path, summary)
    page = Page((tmp_path / "report.html").read_text())
    assert "script" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert('x')</script>\"&" in page.text
    for path in written:
        if path.suffix == ".svg":
            tags = {each.tag for each in ElementTree.parse(path).iter()}
            assert not [tag for tag in tags if "script" in str(tag)]
    assert "`[bold]" in printed(summary, capsys)


NAMES = ("ppo[lr=3e-4]", "x:fire:y", "a[/]b")


@pytest.mark.parametrize("width", [40, 60, 200])
def test_names_are_printed_as_they_are_on_terminals_of_any_width(width, monkeypatch, capsys):
    """A narrow table says which columns it leaves out; a long name takes two lines."""
    summary = three()
    for each, name in zip(summary["agents"], NAMES, strict=True):
        each["spec"] = name
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    text = printed(summary, capsys)
    assert max(map(len, text.splitlines())) <= width
    for name in NAMES:  # in two pairings, and once in the cross table
        assert text.count(name if width == 200 else name[:8]) >= 3
    words = " ".join(text.split())
    assert words.count("left out, for want of width: ") == {40: 2, 60: 2, 200: 0}[width]
    if width == 40:
        assert "width: W-D-L, games, castles, rounds, ended by" in words
        assert "width: 2, 3, a decision" in words
        assert "80.0 [78.0, 81.0]" in words, "win rates stay"


def test_a_report_that_fails_leaves_the_old_one(tmp_path):
    old = {path: path.read_bytes() for path in write_report(tmp_path, three())}
    bad = three()
    bad["agents"][0]["spec"] = "another"
    del bad["play"]["mean_rounds"]  # met only while the page is made
    with pytest.raises(KeyError):
        write_report(tmp_path, bad)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == old


def test_the_time_of_a_long_tournament_is_in_seconds():
    assert ["time", "123,456.8 s"] in facts_table({**three(), "seconds": 123456.78}).texts()
