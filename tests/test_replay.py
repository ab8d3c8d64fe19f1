"""Replaying records: the golden games agree with the engine, and whatever is changed is found."""

from __future__ import annotations

import copy
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.rules import Rules
from carolus_env.engine.streams import new_streams
from carolus_env.records import (
    RecordError,
    make_record,
    positions,
    read_records,
    write_records,
)
from carolus_env.records import replay as replay_module
from carolus_env.replay import Difference, main, replay, replayed

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"

Record = dict[str, Any]


def random_record(rules: Rules, seed: int, limit: int = 10_000) -> Record:
    start = engine.new_games(rules, 1, seed=seed, roll=False)
    game, generators, actions = start.copy(), new_streams(seed, 1), []
    chance.roll(game)
    while not engine.is_over(game)[0] and len(actions) < limit:
        chosen = engine.random_actions(game, generators)
        actions.append(int(chosen[0]))
        engine.step(game, chosen)
    return make_record(start, actions, legal=True, state=True)


GAME = random_record(Rules(), 1)


def index_of(kind: str, nth: int, record: Record = GAME) -> int:
    return [i for i, event in enumerate(record["events"]) if kind in event][nth]


def in_phase(phase: str, nth: int) -> int:
    events = enumerate(GAME["events"])
    return [i for i, event in events if event.get("state", {}).get("phase") == phase][nth]


def changed(change: Callable[[Record], None]) -> Record:
    record = copy.deepcopy(GAME)
    change(record)
    return record


def with_event(at: int, **values: Any) -> Record:
    return changed(lambda record: record["events"][at].update(values))


def with_state(at: int, **values: Any) -> Record:
    return changed(lambda record: record["events"][at]["state"].update(values))


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """`main` on files that it makes of records or bytes: exit status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def call(*options: str, **contents: Any) -> tuple[int, str, str]:
        names = []
        for name, content in contents.items():
            names.append(f"{name}.jsonl")
            if isinstance(content, bytes):
                Path(names[-1]).write_bytes(content)
            else:
                write_records(names[-1], content)
        status = main([*options, *names])
        return status, *capsys.readouterr()

    return call


# ------------------------------------------------------------------------------------ agreement


def test_the_golden_games_replay_without_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(GOLDEN / f"{name}.jsonl.gz") for name in ("full", "legal")]
    assert main(files) == 0
    assert capsys.readouterr() == ("96 games, 0 differences\n", "")


def test_the_golden_games_carry_what_is_to_be_compared() -> None:
    for name, keys in (("full", {"legal", "state"}), ("legal", {"legal"})):
        decisions = 0
        for _, record in read_records(GOLDEN / f"{name}.jsonl.gz"):
            for event in record["events"]:
                assert "roll" in event or event.keys() == {"action", "player"} | keys
                decisions += "action" in event
        assert decisions == {"full": 5623, "legal": 9883}[name]


RULES = [
    Rules(players=players, partners=partners, crown_choice=crown_choice, **rest)
    for players in (2, 3, 4)
    for partners in (("opposite", "adjacent") if players == 4 else ("opposite",))
    for crown_choice in ("on_roll", "deferred")
    for rest in (
        {},
        {"paladins_per_clan": 3, "max_rounds": 4},
        {"paladins_per_clan": 7, "max_rounds": 12},
        {"max_rounds": None},
        {"max_rounds": 1},
    )
]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_a_record_of_random_play_replays_without_a_difference(rules: Rules) -> None:
    for seed in range(2):
        record = random_record(rules, seed)
        assert record["result"] is not None
        assert replay(record) == []
        assert replay(json.loads(json.dumps(record))) == []


def test_a_record_of_a_game_that_is_not_over_replays_too() -> None:
    for limit in (0, 1, 20, 33):
        record = random_record(Rules(players=3), 3, limit)
        assert record["result"] is None
        assert replay(record) == []


def test_a_replay_changes_nothing_in_the_record() -> None:
    record = copy.deepcopy(GAME)
    replay(record)
    assert record == GAME


def test_one_pass_gives_the_differences_and_every_position() -> None:
    found, states = replayed(GAME)
    assert found == []
    assert states.tobytes() == positions(GAME).tobytes()


def test_positions_end_before_the_event_that_cannot_be_played() -> None:
    at = index_of("action", 5)
    found, states = replayed(with_event(at, action=95))
    assert [difference.event for difference in found] == [at]
    assert states.tobytes() == positions(GAME)[: at + 1].tobytes()


def test_positions_go_on_after_a_difference_that_can_be_played() -> None:
    at = index_of("roll", 3)
    found, states = replayed(with_event(at, player=7))
    assert [difference.what for difference in found] == ["player"]
    assert states.tobytes() == positions(GAME).tobytes()


# ------------------------------------------------------------------------------------ differences


def test_a_changed_legal_set_is_found_event_by_event() -> None:
    one, other = index_of("action", 5), index_of("action", 9)

    def change(record: Record) -> None:
        record["events"][one]["legal"].pop()
        record["events"][other]["legal"] = []

    record = changed(change)
    legal = GAME["events"][one]["legal"]
    assert replay(record) == [
        Difference(one, "legal", legal[:-1], legal),
        Difference(other, "legal", [], GAME["events"][other]["legal"]),
    ]
    assert str(replay(record)[0]) == (
        f"event {one}: legal\n    record: {legal[:-1]}\n    engine: {legal}"
    )


def test_legal_numbers_out_of_order_are_a_difference() -> None:
    at = index_of("action", 5)
    assert len(replay(changed(lambda it: it["events"][at]["legal"].reverse()))) == 1


def test_each_changed_key_of_a_state_is_named_with_both_values_and_no_other() -> None:
    at = in_phase("move", 3)

    def change(record: Record) -> None:
        state = record["events"][at]["state"]
        state["supply"][2] += 1
        state["regions"][1]["owner"] = 5

    state, wrong = GAME["events"][at]["state"], changed(change)["events"][at]["state"]
    (found,) = replay(changed(change))
    keys = ("regions", "supply")
    assert found == Difference(
        at, "state", {key: wrong[key] for key in keys}, {key: state[key] for key in keys}
    )
    assert str(found) == (
        f"event {at}: state\n"
        f"    regions\n        record: {json.dumps(wrong['regions'])}\n"
        f"        engine: {json.dumps(state['regions'])}\n"
        f"    supply\n        record: {wrong['supply']}\n        engine: {state['supply']}"
    )


@pytest.mark.parametrize("key", list(GAME["events"][-1].get("state") or GAME["events"][1]["state"]))
def test_every_key_of_a_state_is_compared(key: str) -> None:
    at = in_phase("place", 4)
    record = with_state(at, **{key: "?"})
    engine_says = GAME["events"][at]["state"][key]
    assert replay(record) == [Difference(at, "state", {key: "?"}, {key: engine_says})]


def test_only_the_keys_that_a_state_carries_are_compared_but_an_unknown_one_differs() -> None:
    at = in_phase("place", 4)
    assert replay(with_event(at, state={})) == []
    for unknown in (1, None):
        (found,) = replay(with_state(at, weather=unknown))
        assert found == Difference(at, "state", {"weather": unknown}, {})
        assert str(found).endswith(
            f"    weather\n        record: {json.dumps(unknown)}\n        engine: no such key"
        )


def test_a_list_too_short_and_a_region_with_a_key_more_or_less_are_differences() -> None:
    at = in_phase("place", 4)
    state = GAME["events"][at]["state"]
    first, *others = state["regions"]
    ownerless = {key: first[key] for key in first if key != "owner"}
    assert len(replay(with_state(at, supply=state["supply"][:-1]))) == 1
    assert len(replay(with_state(at, supply=[*state["supply"], 0]))) == 1
    assert len(replay(with_state(at, regions=[{**first, "name": 0}, *others]))) == 1
    assert len(replay(with_state(at, regions=[ownerless, *others]))) == 1


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1]])
def test_in_a_state_one_is_a_whole_number_and_nothing_else(value: Any) -> None:
    at = in_phase("disc", 0)
    assert GAME["events"][at]["state"]["round"] == 1
    assert len(replay(with_state(at, round=value))) == 1


def test_an_illegal_action_is_found_and_ends_the_game() -> None:
    at = in_phase("disc", 2)
    legal = GAME["events"][at]["legal"]
    names = {17: "17 (red paladin to region 1)", 95: "95", -1: "-1", 2**70: str(2**70)}
    for action, name in names.items():
        record = with_event(at, action=action)
        assert replay(record) == [
            Difference(at, "action", f"{name} is played", f"illegal; legal are {legal}")
        ]


def test_what_else_is_wrong_with_an_illegal_action_is_counted_too() -> None:
    at = in_phase("disc", 2)
    player = 1 - GAME["events"][at]["player"]
    found = replay(with_event(at, action=17, player=player, legal=[17]))
    assert [difference.what for difference in found] == ["player", "legal", "action"]


def test_another_legal_action_is_found_by_what_follows() -> None:
    at = in_phase("place", 3)
    legal = GAME["events"][at]["legal"]
    played = GAME["events"][at]["action"]
    record = with_event(at, action=next(one for one in legal if one != played))
    assert replay(record)[0].event == at + 1


def test_a_wrong_player_is_found_and_the_game_goes_on() -> None:
    action, roll = index_of("action", 4), index_of("roll", 3)

    def change(record: Record) -> None:
        for at in (action, roll):
            record["events"][at]["player"] = 1 - record["events"][at]["player"]

    right = [GAME["events"][at]["player"] for at in (action, roll)]
    assert replay(changed(change)) == sorted(
        [
            Difference(action, "player", 1 - right[0], right[0]),
            Difference(roll, "player", 1 - right[1], right[1]),
        ],
        key=lambda difference: difference.event,
    )


def test_a_wrong_number_of_dice_is_found_and_ends_the_game() -> None:
    at = index_of("roll", 3)
    player = GAME["events"][at]["player"]
    for faces in ([], [0, 1], [0, 1, 2, 3]):
        record = with_event(at, roll=faces)
        assert replay(record) == [
            Difference(
                at,
                "due",
                f"a roll of {len(faces)} dice by player {player}",
                f"a roll of 3 dice by player {player}",
            )
        ]


def test_a_face_that_no_die_has_is_found_and_ends_the_game() -> None:
    at = index_of("roll", 3)
    for faces in ([0, 1, 6], [0, 1, -1], [0, 1, 2**70]):
        record = with_event(at, roll=faces)
        assert replay(record) == [Difference(at, "roll", faces, "a die shows 0 to 5")]


def test_other_dice_are_found_by_what_follows() -> None:
    at = index_of("roll", 3)
    record = with_event(at, roll=[5, 5, 5])
    assert replay(record)[0].event == at + 1


def test_a_missing_event_is_found_and_ends_the_game() -> None:
    roll = index_of("roll", 3)
    assert "action" in GAME["events"][roll + 1]
    (found,) = replay(changed(lambda it: it["events"].pop(roll)))
    assert (found.event, found.what) == (roll, "due")
    who = GAME["events"][roll + 1]["player"], GAME["events"][roll]["player"]
    assert found.expected == f"a decision by player {who[0]}"
    assert found.got == f"a roll of 3 dice by player {who[1]}"
    for gap in range(0, len(GAME["events"]) - 1, 7):
        events = GAME["events"][:gap] + GAME["events"][gap + 1 :]
        assert replay({**GAME, "events": events})


def test_events_missing_at_the_end_are_a_difference_of_the_result() -> None:
    (found,) = replay(changed(lambda it: it["events"].pop()))
    assert found == Difference(len(GAME["events"]) - 1, "result", GAME["result"], None)
    assert replay(changed(lambda it: (it["events"].pop(), it.update(result=None)))) == []


def test_an_extra_event_is_found() -> None:
    more = {"action": 0, "player": 0}
    assert replay(changed(lambda it: it["events"].append(more))) == [
        Difference(
            len(GAME["events"]), "due", "a decision by player 0", "nothing: the game is over"
        )
    ]
    (found,) = replay(changed(lambda it: it["events"].append({"roll": [1, 2, 3], "player": 1})))
    assert found.expected == "a roll of 3 dice by player 1"
    at = index_of("roll", 3)
    (found,) = replay(changed(lambda it: it["events"].insert(at, more)))
    assert (found.event, found.what) == (at, "due")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("reason", "forfeit"),
        ("winners", [0, 1]),
        ("castles", [0, 0]),
        ("regions", 14),
        ("rounds", 99),
        ("returns", [0.0, 0.0]),
        ("returns", [10**300, 0]),
    ],
)
def test_every_key_of_the_result_is_compared(key: str, value: Any) -> None:
    (found,) = replay(changed(lambda it: it["result"].update({key: value})))
    end = len(GAME["events"])
    assert found == Difference(end, "result", {key: value}, {key: GAME["result"][key]})
    assert f"    {key}\n        record: " in str(found)


def test_payoffs_are_numbers_1_and_1_0_are_the_same() -> None:
    whole = [int(payoff) for payoff in GAME["result"]["returns"]]
    assert replay(changed(lambda it: it["result"].update(returns=whole))) == []


def test_a_result_left_out_of_a_finished_game_is_a_difference() -> None:
    (found,) = replay(changed(lambda it: it.update(result=None)))
    assert found == Difference(len(GAME["events"]), "result", None, GAME["result"])
    assert str(found) == (
        f"event {len(GAME['events'])}: result\n"
        f"    record: null\n    engine: {json.dumps(GAME['result'])}"
    )


def test_other_rules_or_another_set_up_are_found() -> None:
    def swap(record: Record) -> None:
        clans = record["setup"]["territories"]
        other = next(i for i in range(15) if clans[i] != clans[0])
        clans[0], clans[other] = clans[other], clans[0]

    first = GAME["setup"]["first_player"]
    for change in (
        swap,
        lambda it: it["setup"].update(first_player=1 - first),
        lambda it: it["rules"].update(crown_choice="deferred"),
        lambda it: it["rules"].update(paladins_per_clan=41),
        lambda it: it["rules"].update(players=3),
        lambda it: it["rules"].update(max_rounds=1),
    ):
        assert replay(changed(change))


def test_a_shape_that_is_none_is_refused() -> None:
    with pytest.raises(RecordError, match="version must be 1, got 2"):
        replay(changed(lambda it: it.update(version=2)))


def test_nonsense_is_shown_short_and_without_escape_codes() -> None:
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    at = in_phase("place", 4)
    for nonsense in (deep, "\x1b[2J\ud800", ["x" * 10**6], {"a": deep}):
        (found,) = replay(with_state(at, round=nonsense))
        assert len(str(found)) < 11_000
        assert str(found).isascii() and "\x1b" not in str(found)
    (found,) = replay(with_state(at, **{"\x1b\ud800": 1}))
    assert str(found).isascii() and "\x1b" not in str(found)


# ------------------------------------------------------------------------------------ command line


def test_without_a_difference_the_exit_status_is_0(run: Callable[..., Any]) -> None:
    assert run(a=[GAME, GAME], b=[GAME]) == (0, "3 games, 0 differences\n", "")


def test_the_first_difference_is_shown_in_full_all_are_counted_the_exit_status_is_1(
    run: Callable[..., Any],
) -> None:
    at, other = index_of("action", 5), index_of("action", 9)
    one, two = with_event(at, legal=[]), with_event(other, legal=[], state={"round": 0})
    text = f"b.jsonl, line 2, {replay(one)[0]}\n4 games, 3 differences\n"
    assert run(a=[GAME], b=[GAME, one, two]) == (1, text, "")
    assert run("-q", a=[one]) == (1, "1 games, 1 differences\n", "")
    assert run("--quiet", a=[GAME]) == (0, "1 games, 0 differences\n", "")


def test_a_bad_line_is_reported_the_other_games_count_and_the_exit_status_is_2(
    run: Callable[..., Any],
) -> None:
    line = json.dumps(GAME).encode() + b"\n"
    different = json.dumps(changed(lambda it: it.update(result=None))).encode() + b"\n"
    status, out, err = run("-q", a=line + b"\n{}\n" + different + b"[]\n", b=line)
    assert (status, out) == (2, "3 games, 1 differences\n")
    assert err == (
        "a.jsonl, line 3: format is missing\n"
        "a.jsonl, line 5: a game record must be an object, got []\n"
    )


@pytest.mark.parametrize("zipped", [False, True])
def test_of_a_file_cut_short_the_games_before_are_counted_and_the_exit_status_is_2(
    run: Callable[..., Any], zipped: bool
) -> None:
    content = (json.dumps(GAME).encode() + b"\n") * 3
    status, out, err = run(a=gzip.compress(content)[:-9] if zipped else content[:-9])
    games = 3 if zipped else 2
    assert (status, out) == (2, f"{games} games, 0 differences\n")
    assert err.startswith("a.jsonl, line ")
    assert "cut short" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "a.jsonl: it holds no game record"),
        (b"\n \n", "a.jsonl: it holds no game record"),
        (gzip.compress(b"", mtime=0), "a.jsonl: it holds no game record"),
        (b"\x1f\x8bjunk", "a.jsonl, line 1: damaged gzip data ("),
        (bytes(range(256)), "a.jsonl, line 1: not JSON"),
        (b"\x89PNG", "a.jsonl, line 1: not UTF-8: byte 1"),
        (b"hello\n", "a.jsonl, line 1: not JSON: Expecting value, column 1"),
        (b"[" * 100_000 + b"\n", "a.jsonl, line 1: not JSON: nested too deeply"),
    ],
)
def test_what_is_no_record_is_named_with_the_reason_and_the_exit_status_is_2(
    run: Callable[..., Any], content: bytes, reason: str
) -> None:
    status, out, err = run(a=content, b=[GAME])
    assert (status, out) == (2, "1 games, 0 differences\n")
    assert err.startswith(reason)
    assert "Traceback" not in err


def test_missing_files_directories_and_unreadable_files_are_named_and_the_others_replayed(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("folder").mkdir()
    status, out, err = run("none.jsonl", "folder", "bad\udcff\n", a=[GAME])
    assert (status, out) == (2, "1 games, 0 differences\n")
    assert err == (
        "none.jsonl: No such file or directory\n"
        "folder: Is a directory\n"
        "bad\\udcff\n: No such file or directory\n"
    )

    def broken(path: str) -> Any:
        yield 1, GAME
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(replay_module, "scan_records", broken)
    assert run("a.jsonl") == (2, "1 games, 0 differences\n", "a.jsonl: Input/output error\n")


def test_no_file_at_all_and_unknown_options_show_the_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments in ([], ["--colour", "x"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert capsys.readouterr().err.startswith("usage: python -m carolus_env.replay")
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    assert "exit status: 0 no difference; 1 a difference" in capsys.readouterr().out


def test_an_interrupt_ends_it_without_a_traceback(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(record: Record) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(replay_module, "replay", interrupted)
    assert run(a=[GAME]) == (130, "", "interrupted\n")


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "carolus_env.replay", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": ""},  # or the end could not fail to flush
        text=True,
        timeout=120,
        **options,
    )


@pytest.mark.slow
def test_the_module_runs_as_a_program(tmp_path: Path) -> None:
    golden = str(GOLDEN / "full.jsonl.gz")
    done = command(golden, capture_output=True)
    assert (done.returncode, done.stdout) == (0, "36 games, 0 differences\n")
    assert "RuntimeWarning" not in done.stderr and "Traceback" not in done.stderr
    write_records(tmp_path / "a", [with_event(0, player=7)])
    done = command(str(tmp_path / "a"), golden, str(tmp_path / "none"), capture_output=True)
    assert done.returncode == 2
    assert done.stdout.startswith(f"{tmp_path}/a, line 1, event 0: player\n    record: 7\n")
    assert done.stdout.endswith("\n37 games, 1 differences\n")
    assert done.stderr.endswith(f"{tmp_path}/none: No such file or directory\n")


def test_output_that_nobody_reads_or_that_cannot_be_written_gives_no_traceback() -> None:
    golden = str(GOLDEN / "full.jsonl.gz")
    reader, writer = os.pipe()
    os.close(reader)
    done = command(golden, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.returncode == 141
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    with Path("/dev/full").open("w") as full:
        done = command(golden, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.endswith("the output cannot be written: No space left on device\n")
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
