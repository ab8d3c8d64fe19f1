"""Replaying records: the golden games agree with the engine, and whatever is changed is found."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
from damage import nested, put
from strategies import ALL_KINDS, played

from carolus_env.commands import play as command
from carolus_env.commands.play import check as main
from carolus_env.engine.rules import Rules
from carolus_env.notation import game_text
from carolus_env.records import (
    Difference,
    make_record,
    read_records,
    replay,
    start_of,
    write_records,
)

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"

Record = dict[str, Any]


def random_record(rules: Rules, seed: int, limit: int = 10_000) -> Record:
    return make_record(*played(rules, seed, limit)[:2], legal=True, state=True)


GAME = random_record(Rules(), 1)
TEXT = json.dumps(GAME)
"""The same, which is read more quickly than a copy is made."""


def index_of(kind: str, nth: int) -> int:
    return [i for i, event in enumerate(GAME["events"]) if kind in event][nth]


def in_phase(phase: str, nth: int) -> int:
    phases = [event.get("state", {}).get("phase") for event in GAME["events"]]
    return [i for i, name in enumerate(phases) if name == phase][nth]


def changed(change: Callable[[Record], None]) -> Record:
    record = json.loads(TEXT)
    change(record)
    return record


def edited(*path: Any, **values: Any) -> Record:
    """The game with other values in the object there."""
    return changed(lambda record: reduce(getitem, path, record).update(values))


def with_event(at: int, **values: Any) -> Record:
    return edited("events", at, **values)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """`main` on files that it makes of records or bytes: exit status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def call(*options: str, **contents: Any) -> tuple[int, str, str]:
        for name, content in contents.items():
            if isinstance(content, bytes):
                Path(f"{name}.jsonl").write_bytes(content)
            else:
                write_records(f"{name}.jsonl", content)
        return main([*options, *(f"{name}.jsonl" for name in contents)]), *capsys.readouterr()

    return call


def test_the_golden_games_replay_without_a_difference_and_carry_what_is_to_be_compared(capsys):
    assert main([str(GOLDEN / f"{name}.jsonl.gz") for name in ("full", "legal")]) == 0
    assert capsys.readouterr() == ("96 games, 0 differences\n", "")
    for name, keys, count in (("full", {"legal", "state"}, 5623), ("legal", {"legal"}, 9883)):
        decisions = 0
        for _, record in read_records(GOLDEN / f"{name}.jsonl.gz"):
            for event in record["events"]:
                assert "roll" in event or event.keys() == {"action", "player"} | keys
                decisions += "action" in event
        assert decisions == count


@pytest.mark.parametrize("rules", [kind for kind in ALL_KINDS if kind.max_rounds], ids=str)
def test_a_record_of_random_play_replays_without_a_difference(rules):
    """With its legal sets and states, which are those just before each decision."""
    for limit in (0, 1, 20, 33, 10_000):
        record = random_record(rules, 1, limit)
        assert (record["result"] is not None) == (limit == 10_000)
        keys = {len(event) for event in record["events"] if "action" in event}
        assert keys <= {len(("action", "player", "legal", "state"))}
        assert replay(record) == replay(json.loads(json.dumps(record))) == []


ACTION, LATER, ROLL = index_of("action", 5), index_of("action", 9), index_of("roll", 3)
DISC, PLACE = in_phase("disc", 2), in_phase("place", 4)
ROUND_ONE = in_phase("disc", 0)
EVENTS, RESULT = GAME["events"], GAME["result"]
END = len(EVENTS)
WRONG = 1 - EVENTS[ACTION]["player"]
ROLLER = EVENTS[ROLL]["player"]
LEGAL, STATE = EVENTS[DISC]["legal"], EVENTS[PLACE]["state"]
assert EVENTS[ROUND_ONE]["state"]["round"] == 1


def without_event(at: int) -> Record:
    return changed(lambda record: record["events"].pop(at))


def with_more(at: int) -> Record:
    return changed(lambda record: record["events"].insert(at, {"action": 0, "player": 0}))


def of_state(at: int, **values: Any) -> tuple[Record, list[Any]]:
    """A record with other values in a state, and the difference that this makes."""
    state = EVENTS[at]["state"]
    return edited("events", at, "state", **values), [
        (at, "state", values, {key: state[key] for key in values})
    ]


def of_result(**values: Any) -> tuple[Record, list[Any]]:
    result = (END, "result", values, {key: RESULT[key] for key in values})
    return edited("result", **values), [result]


def illegal(action: int, name: str) -> tuple[Record, list[Any]]:
    result = (DISC, "action", f"{name} is played", f"illegal; legal are {LEGAL}")
    return with_event(DISC, action=action), [result]


def rolled(faces: list[int], *found: Any) -> tuple[Record, list[Any]]:
    return with_event(ROLL, roll=faces), [(ROLL, *found)]


def dice(count: int) -> str:
    return f"a roll of {count} dice by player {ROLLER}"


FIRST, *OTHERS = STATE["regions"]
CHANGES: dict[str, tuple[Record, list[Any]]] = {
    "a legal action is missing": (
        with_event(DISC, legal=LEGAL[:-1]), [(DISC, "legal", LEGAL[:-1], LEGAL)]),
    "the player of an action": (
        with_event(ACTION, player=WRONG), [(ACTION, "player", WRONG, 1 - WRONG)]),
    "the player of a roll": (
        with_event(ROLL, player=1 - ROLLER), [(ROLL, "player", 1 - ROLLER, ROLLER)]),
    "an illegal action": illegal(17, "17 (red paladin to region 1)"),
    "no action": illegal(95, "95"),
    "a negative action": illegal(-1, "-1"),
    "no dice": rolled([], "due", dice(0), dice(3)),
    "too many dice": rolled([0, 1, 2, 3], "due", dice(4), dice(3)),
    "face 6": rolled([0, 1, 6], "roll", [0, 1, 6], "a die shows 0 to 5"),
    "a roll is missing": (
        without_event(ROLL),
        [(ROLL, "due", f"a decision by player {EVENTS[ROLL + 1]['player']}", dice(3))]),
    "the last event is missing": (without_event(-1), [(END - 1, "result", RESULT, None)]),
    "an action is too much": (
        with_more(ROLL), [(ROLL, "due", "a decision by player 0", dice(3))]),
    "an action after the end": (
        with_more(END), [(END, "due", "a decision by player 0", "nothing: the game is over")]),
    "the result is left out": (
        edited(result=None), [(END, "result", None, RESULT)]),
    "an unknown key of a state": (
        edited("events", PLACE, "state", weather=None), [(PLACE, "state", {"weather": None}, {})]),
    **{f"state: {key}": of_state(PLACE, **{key: "?"}) for key in STATE},
    **{f"1 is not {value!r}": of_state(ROUND_ONE, round=value) for value in (True, 1.0, "1")},
    "a list too long": of_state(PLACE, supply=[*STATE["supply"], 0]),
    "a key too many in a region": of_state(PLACE, regions=[{**FIRST, "name": 0}, *OTHERS]),
    "result: winners": of_result(winners=[0, 1]),
    "result: castles": of_result(castles=[0, 0]),
    "result: returns": of_result(returns=[10**300, 0]),
}  # fmt: skip


@pytest.mark.parametrize(("record", "differences"), CHANGES.values(), ids=CHANGES)
def test_a_changed_record_differs_there_and_nowhere_else(record, differences):
    assert replay(record) == [Difference(*result) for result in differences]


def test_a_difference_shows_both_values_and_nonsense_short_without_escape_codes():
    (result,) = replay(edited("events", PLACE, "state", supply=[0] * 5, weather=1))
    assert [line.strip() for line in str(result).split("\n")] == [
        f"event {PLACE}: state",
        *("supply", "record: [0, 0, 0, 0, 0]", f"engine: {STATE['supply']}"),
        *("weather", "record: 1", "engine: no such key"),
    ]
    (result,) = replay(with_event(ACTION, legal=[]))
    legal = EVENTS[ACTION]["legal"]
    assert str(result) == f"event {ACTION}: legal\n    record: []\n    engine: {legal}"
    deep, escape = nested(100_000), "\x1b[2J\ud800"
    for key, value in (
        *(("round", value) for value in (deep, escape, ["x" * 10**6], {"a": deep})),
        (escape, 1),
    ):
        (result,) = replay(edited("events", PLACE, "state", **{key: value}))
        assert len(str(result)) < 11_000
        assert str(result).isascii() and "\x1b" not in str(result)


def test_comparing_goes_on_after_another_player_and_ends_at_an_illegal_action():
    for record, differences in (
        (with_event(ROLL, player=7), ["player"]),
        (with_event(DISC, action=17, player=7, legal=[17]), ["player", "legal", "action"]),
    ):
        assert [difference.what for difference in replay(record)] == differences


def test_other_decisions_dice_rules_and_set_ups_are_found():
    at = in_phase("place", 3)
    other = next(one for one in EVENTS[at]["legal"] if one != EVENTS[at]["action"])
    assert replay(with_event(at, action=other))[0].event == at + 1
    assert replay(with_event(ROLL, roll=[5, 5, 5]))[0].event == ROLL + 1
    for gap in range(0, END - 1, 29):
        assert replay(without_event(gap))
    for change in (
        put("setup", "territories", to=lambda clans: clans[::-1]),
        put("setup", "first_player", to=lambda seat: 1 - seat),
        put("rules", "crown_choice", to="deferred"),
        put("rules", "paladins_per_clan", to=41),
        put("rules", "players", to=3),
        put("rules", "max_rounds", to=1),
    ):
        assert replay(changed(change))


def test_what_a_record_leaves_out_is_not_compared():
    whole_numbers = [int(payoff) for payoff in RESULT["returns"]]
    cut = {**without_event(-1), "result": None}
    for same in (with_event(PLACE, state={}), cut, edited("result", returns=whole_numbers)):
        assert replay(same) == []


def test_the_first_difference_is_shown_in_full_all_are_counted_the_exit_status_is_1(run):
    one, two = with_event(ACTION, legal=[]), with_event(LATER, legal=[], state={"round": 0})
    text = f"b.jsonl, line 2, {replay(one)[0]}\n4 games, 3 differences\n"
    assert run(a=[GAME], b=[GAME, one, two]) == (1, text, "")
    assert run("--quiet", a=[one]) == (1, "1 games, 1 differences\n", "")
    assert run("--quiet", a=[GAME, GAME], b=[GAME]) == (0, "3 games, 0 differences\n", "")
    game = game_text(start_of(GAME), GAME["events"])
    assert run("--text", "--quiet", a=[one, GAME]) == (1, f"{game}\n2 games, 1 differences\n", "")


def test_a_bad_line_is_reported_the_other_games_count_and_the_exit_status_is_2(run):
    line, different = (json.dumps(one).encode() + b"\n" for one in (GAME, {**GAME, "result": None}))
    status, out, err = run(
        "--quiet",
        a=line + b"\n{}\n" + different + b"[]\n",
        b=line + line[:-9],
        c=b"",
        d=gzip.compress(b"", mtime=0),
        e=b"\x1f\x8bjunk" * 9,
    )
    assert (status, out) == (2, "3 games, 1 differences\n")
    named = ("line 3|format", "line 5|[]", "line 2|cut short", *["no game record"] * 2, "gzip")
    for said, names in zip(err.splitlines(), named, strict=True):
        assert all(name in said for name in names.split("|"))
    assert [said[:7] for said in err.splitlines()] == [f"{name}.jsonl" for name in "aabcde"]


def test_a_file_that_holds_no_record_is_one_line(run):
    lines = b"".join(b'{"block": %d}\n' % k for k in range(300))
    status, out, err = run(a=lines, b=b"\x89PNG\n\n" * 9, c=lines + json.dumps(GAME).encode())
    assert (status, out) == (2, "1 games, 0 differences\n")
    first, second, *others = err.splitlines()
    assert first == "a.jsonl: holds no game record: line 1: format is missing"
    assert second.startswith("b.jsonl: holds no game record: line 1: not UTF-8")
    assert len(others) == 300 and others[-1] == "c.jsonl, line 300: format is missing"


def test_unreadable_files_are_named_the_others_replayed_and_an_interrupt_ends_it(run, monkeypatch):
    Path("folder").mkdir()
    status, out, err = run("none.jsonl", "folder", "bad\udcff\n", a=[GAME])
    assert (status, out) == (2, "1 games, 0 differences\n")
    missing, folder = "No such file or directory\n", "folder: Is a directory\n"
    assert err == f"none.jsonl: {missing}{folder}bad\\udcff\n: {missing}"

    def broken(path: str) -> Any:
        yield 1, GAME
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(command, "scan_records", broken)
    assert run("a.jsonl") == (2, "1 games, 0 differences\n", "a.jsonl: Input/output error\n")

    def interrupted(record: Record) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "replay", interrupted)
    assert run(a=[GAME]) == (130, "", "carolus replay: interrupted\n")


def test_output_that_nobody_reads_or_that_cannot_be_written_gives_no_traceback(tmp_path):
    (tmp_path / "none.jsonl").touch()
    reader, closed = os.pipe()
    os.close(reader)
    for output, status in ((closed, 141), (os.open("/dev/full", os.O_WRONLY), 2)):
        done = subprocess.run(
            [sys.executable, "-m", "carolus_env", "replay", str(tmp_path / "none.jsonl")],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": ""},  # or the end could not fail to flush
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
        os.close(output)
        assert done.returncode == status
        assert ("the output could not be written" in done.stderr) == (status == 2)
        assert "Traceback" not in done.stderr and "Exception" not in done.stderr
