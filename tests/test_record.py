"""Game records: made from any game, written in one piece, read back whatever befell the file."""

import errno
import gzip
import json
import pickle
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import nested, put, without
from strategies import ALL_KINDS, played

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.rules import ROLL, Rules
from carolus_env.records import (
    RecordError,
    check_record,
    make_record,
    play_events,
    positions,
    read_records,
    record,
    result_of,
    scan_records,
    start_of,
    write_records,
)

GOLDEN = Path(__file__).parent / "golden"


def short_record(players: int = 2) -> dict[str, Any]:
    return make_record(*played(Rules(players=players), 1, limit=12)[:2], legal=True, state=True)


@pytest.mark.parametrize("rules", ALL_KINDS, ids=str)
def test_a_record_holds_the_game_that_was_played_with_its_own_dice(rules):
    start, actions, game = played(rules, 1)
    before = start.tobytes()
    made = make_record(start, actions)
    assert start.tobytes() == before and made["rules"] == rules.to_dict()
    assert {key for event in made["events"] for key in event} == {"roll", "action", "player"}
    assert [event["action"] for event in made["events"] if "action" in event] == actions

    *states, last = positions(made)
    for state, event in zip(states, made["events"], strict=True):
        assert ("roll" in event) == (state["phase"] == ROLL)
        assert state["player"] == event["player"]
    last = last.copy()
    last["generator"] = game["generator"][0]  # which a record does not hold
    assert last.tobytes() == game.tobytes()
    assert made["result"] == result_of(game) == result_of(game[0])
    assert result_of(start) is None
    assert json.loads(json.dumps(made)) == made


def test_rolls_due_after_the_last_action_are_part_of_the_record():
    """So a record of no actions holds the set-up's rolls, up to the first decision."""
    start, actions, _ = played(Rules(players=3, crown_choice="deferred"), 1, limit=40)
    for count in range(len(actions)):
        made = make_record(start, actions[:count])
        assert not chance.roll_due(positions(made)[-1:].copy())[0]
        assert made["result"] is None
        if count == 0:
            rolls = [(event["player"], len(event["roll"])) for event in made["events"]]
            assert rolls == [((made["setup"]["first_player"] + k) % 3, 9) for k in range(3)]


def test_a_made_record_has_the_keys_of_the_golden_files_in_their_order():
    def shape(value: Any) -> Any:
        return {key: shape(of) for key, of in value.items()} if isinstance(value, dict) else None

    _, golden = next(read_records(GOLDEN / "full.jsonl.gz"))
    made = make_record(*played(Rules(), 1)[:2], legal=True, state=True)
    assert str(shape(made)) == str(shape(golden))
    for kind in ("roll", "action"):
        one, other = (next(e for e in r["events"] if kind in e) for r in (made, golden))
        assert str(shape(one)) == str(shape(other))


def test_actions_are_whole_numbers_and_an_illegal_one_is_refused_with_its_place():
    start, actions, game = played(Rules(), 1, limit=6)
    full = played(Rules(), 1)[1]
    assert make_record(start, np.array(actions)) == make_record(start, actions)
    illegal = int(engine.legal_masks(game)[0].argmin())
    for given, error, named in (
        ([*actions, illegal], engine.IllegalActionError, "may not play"),
        ([*full, 0], ValueError, "is over"),
    ):
        with pytest.raises(error, match=named) as caught:
            make_record(start, given)
        (note,) = caught.value.__notes__
        assert f"actions[{len(given) - 1}]" in note
    for wrong in (10**30, 1.0):
        with pytest.raises(TypeError, match=r"actions.*got"):
            make_record(start, [wrong])  # type: ignore[list-item]


def test_a_record_starts_before_the_first_roll_only_and_a_forfeit_is_no_result():
    start, actions, game = played(Rules(players=3), 1, limit=30)
    rolled, doctored, forfeited = engine.new_games(Rules(4), 1, seed=1), start.copy(), game.copy()
    assert rolled["round"][0] == 0
    doctored["supply"][0, 0] -= 1
    engine.forfeit(forfeited)
    assert result_of(forfeited) is None and make_record(start, actions)["result"] is None
    for wrong in (game, rolled, doctored, forfeited):
        with pytest.raises(ValueError, match=r"before its first roll.*this one is in round"):
            make_record(wrong, [])
    with pytest.raises(ValueError, match=r"one game.* 2"):
        make_record(engine.new_games(Rules(), 2, seed=1, roll=False), [])
    with pytest.raises(TypeError, match="start must be"):
        make_record([start], [])


def test_dice_beyond_the_record_are_of_the_given_seed_and_a_wrong_event_is_named():
    made = short_record()
    dice = [start_of(made, **given).tobytes() for given in ({"seed": 5}, {"seed": 6}, {}) * 2]
    assert dice[:3] == dice[3:] and dice[0] != dice[1]
    made = short_record()
    made["events"][5]["player"] ^= 1
    for event in ({"foo": 1}, 5):
        with pytest.raises(RecordError, match=r"^event 0: "):
            play_events(start_of(made), [event])
    with pytest.raises(RecordError, match=r"^event 5: it is the turn of player"):
        positions(made)
    error = pickle.loads(pickle.dumps(RecordError("no", "games.jsonl", 3)))
    assert str(error) == "games.jsonl, line 3: no"
    assert (error.reason, error.path, error.line) == ("no", "games.jsonl", 3)


RESULT = {"reason": "castles", "winners": [0], "castles": [10, 2], "regions": 7, "rounds": 9}
RESULT["returns"] = [1.0, -1.0]

SHAPES = [  # what is changed, and a part of the reason that is given
    (without("format"), "format is missing"),
    (put("format", to="chess"), "format must be 'carolus-record', got 'chess'"),
    (put("version", to=2), "version must be 1, got 2"),
    (put("version", to=1.0), "version must be a whole number, got 1.0"),
    (put("rules", to=[]), "rules must be an object, got []"),
    (put("rules", "players", to=5), "rules: players must be a whole number from 2 to 4, got 5"),
    (put("rules", "colour", to=1), "rules: unknown key 'colour'"),
    (put("rules", "partners", to=nested(400)), "rules: 'partners' must be a number, a string"),
    (without("setup"), "setup is missing"),
    (put("setup", "seed", to=1), "setup: unknown key 'seed'; known are territories"),
    (put("setup", "territories", to=[0] * 15), "setup.territories must hold each clan 0 to 4"),
    (put("setup", "first_player", to=2), "setup.first_player must be from 0 to 1, got 2"),
    (put("events", to={}), "events must be a list, got {}"),
    (put("events", 3, to=7), "event 3: an event is an object with either 'roll' or 'action'"),
    (put("events", 0, "action", to=0), "event 0: an event is an object with either 'roll'"),
    (put("events", 0, "roll", 2, to=1.0), "event 0: roll[2] must be a whole number, got 1.0"),
    (put("events", 0, "legal", to=[]), "event 0: unknown key 'legal'; known are roll, player"),
    (without("events", 0, "player"), "event 0: player is missing"),
    (put("events", -1, "action", to=None), "action must be a whole number, got None"),
    (put("events", -1, "legal", 0, to=True), "legal[0] must be a whole number, got True"),
    (put("events", -1, "state", to=[]), "state must be an object, got []"),
    (put("events", -1, "legall", to=[]), "unknown key 'legall'; did you mean legal?"),
    (without("result"), "result is missing"),
    (put("result", to={}), "result.reason is missing"),
    (put("result", to={**RESULT, "rounds": 1.5}), "result.rounds must be a whole number"),
    (put("result", to={**RESULT, "winner": 0}), "result: unknown key 'winner'"),
    (put("result", to={**RESULT, "winners": [True]}), "result.winners[0] must be a whole"),
    (put("result", to={**RESULT, "returns": [10**400]}), "returns must hold numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "reason"), SHAPES, ids=[reason for _, reason in SHAPES])
def test_what_has_not_the_shape_of_a_record_is_refused_with_the_reason(change, reason):
    broken = short_record()
    while "roll" in broken["events"][-1]:  # the last event is to be an action
        broken["events"].pop()
    check_record({**broken, "result": RESULT, "names": ["Ann", "Bob"]})  # a further key at the top
    check_record(broken)
    change(broken)
    with pytest.raises(RecordError) as caught:
        check_record(broken)
    assert reason in str(caught.value) and len(str(caught.value)) < 500
    assert (caught.value.path, caught.value.line) == (None, None)


@pytest.mark.parametrize("name", ["games.jsonl", "games.jsonl.gz", "GAMES.GZ"])
def test_what_is_written_is_read_back_and_the_same_bytes_each_time(tmp_path, name):
    made = [short_record(players) for players in (2, 3, 4)]
    path = tmp_path / name
    write_records(path, made)
    assert list(read_records(path)) == [(i + 1, one) for i, one in enumerate(made)]
    data, zipped = path.read_bytes(), name.lower().endswith(".gz")
    assert data.startswith(b"\x1f\x8b") == zipped
    if zipped:
        assert data[3] == 0 and data[4:8] == bytes(4)  # neither a name nor a time in the header
    lines = (gzip.decompress(data) if zipped else data).decode().splitlines()
    assert lines == [json.dumps(one, separators=(",", ":")) for one in made]
    other = tmp_path / f"other-{name}"
    write_records(other, iter(made))
    assert other.read_bytes() == data
    write_records(str(path), made[:1])  # takes the place of the first
    assert list(read_records(str(path))) == [(1, made[0])]
    assert {one.name for one in tmp_path.iterdir()} == {name, other.name}


def test_a_written_file_has_the_usual_rights_a_link_stays_one_a_device_too(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "there")
    write_records(tmp_path / "link", [short_record()])
    (tmp_path / "other").write_text("")
    assert (tmp_path / "link").is_symlink()
    assert len(list(read_records(tmp_path / "there"))) == 1
    assert (tmp_path / "there").stat().st_mode == (tmp_path / "other").stat().st_mode
    for path in (tmp_path, Path("/dev/full")):
        with pytest.raises(OSError):
            write_records(path, [short_record()])
    write_records("/dev/null", [short_record()])
    assert Path("/dev/null").is_char_device(), "it is written into, not replaced"
    with pytest.raises(FileNotFoundError):
        write_records(tmp_path / "nowhere" / "a.jsonl", [])


@pytest.mark.parametrize("old", [None, b"the old file"])
@pytest.mark.parametrize("name", ["games.jsonl", "games.jsonl.gz"])
@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace"])
def test_a_full_disk_leaves_the_old_file_or_none(tmp_path, monkeypatch, name, call, old):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if old is not None:
        (tmp_path / name).write_bytes(old)
    monkeypatch.setattr(call, full)
    with pytest.raises(OSError, match="No space left"):
        write_records(tmp_path / name, [short_record()])
    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert contents == ({} if old is None else {name: old})


def test_an_error_among_the_records_leaves_nothing(tmp_path):
    def records() -> Any:
        yield short_record()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_records(tmp_path / "a.jsonl", records())
    for wrong in ({}, {**short_record(), "note": float("nan")}, {**short_record(), "note": b""}):
        with pytest.raises(RecordError):
            write_records(tmp_path / "a.jsonl", [short_record(), wrong])
    assert not list(tmp_path.iterdir())


def read(path: Path) -> tuple[list[int], RecordError | None]:
    """Lines of the games read before the error."""
    lines = []
    try:
        lines += (line for line, _ in read_records(path))
    except RecordError as error:
        return lines, error
    return lines, None


def games(count: int) -> list[bytes]:
    records = [make_record(*played(Rules(), seed)[:2]) for seed in range(count)]
    return [json.dumps(record).encode() + b"\n" for record in records]


def test_blank_lines_are_counted_and_gzip_is_known_by_content_or_name(tmp_path):
    one, two = games(2)
    for name, content, lines in (
        ("a", b"\n \t\n" + one + b"\r\n" + two[:-1] + b"\r\n\n", [3, 5]),
        ("b", b"", []),
        ("b.gz", b"", []),
        ("c", one + two[:-1], [1, 2]),  # a last line without an end is a line
        ("plain.jsonl", gzip.compress(one + two), [1, 2]),
        ("joined.gz", gzip.compress(one + two) + gzip.compress(one + two), [1, 2, 3, 4]),
    ):
        (tmp_path / name).write_bytes(content)
        assert read(tmp_path / name) == (lines, None)
    (tmp_path / "plain.gz").write_bytes(one)
    lines, error = read(tmp_path / "plain.gz")
    assert lines == [] and "damaged gzip data" in str(error)


def test_a_file_cut_short_gives_every_complete_game_wherever_it_was_cut(tmp_path):
    written = games(3)
    content = b"".join(written)
    ends = [len(b"".join(written[: k + 1])) for k in range(3)]
    path = tmp_path / "a.jsonl"
    for cut in [*range(1, len(content), 997), *[end + d for end in ends for d in (-2, -1, 0, 1)]]:
        path.write_bytes(content[:cut])
        lines, error = read(path)
        complete = sum(end - 1 <= cut for end in ends)  # the end of the line may be missing
        assert lines == list(range(1, complete + 1))
        if cut in ends or cut + 1 in ends or cut > len(content):
            assert error is None
        else:
            assert error is not None
            assert (error.path, error.line) == (str(path), complete + 1)
            assert "may be cut short" in error.reason
            assert str(error) == f"{path}, line {complete + 1}: {error.reason}"


def test_gzip_cut_short_gives_every_complete_line_wherever_it_was_cut(tmp_path):
    written = [json.dumps(short_record(players)).encode() + b"\n" for players in (2, 2, 3)]
    zipped, path = gzip.compress(b"".join(written)), tmp_path / "a.gz"
    result = set()
    ends = (*range(2, 40), *range(len(zipped) - 40, len(zipped)))
    for cut in (*ends, *range(40, len(zipped) - 40, 3)):
        path.write_bytes(zipped[:cut])
        unpacked = zlib.decompressobj(31).decompress(zipped[:cut])
        lines, error = read(path)
        assert lines == list(range(1, unpacked.count(b"\n") + 1))
        assert error is not None and error.reason == "the gzip data is cut short"
        result.add(len(lines))
    assert result == {0, 1, 2, 3}


def test_damage_within_gzip_data_is_reported(tmp_path):
    content, path = b"".join(games(6)), tmp_path / "a.gz"
    zipped = bytearray(gzip.compress(content))
    wrong_sum = zipped[:-5] + bytes([zipped[-5] ^ 1]) + zipped[-4:]
    for data, named in ((wrong_sum, "CRC check failed"), (zipped + b"and more", "damaged gzip")):
        path.write_bytes(data)
        lines, error = read(path)
        assert lines == [1, 2, 3, 4, 5, 6]
        assert error is not None and named in error.reason
    middle = len(gzip.compress(b"".join(games(4))))
    zipped[middle : middle + 40] = b"\xff" * 40
    path.write_bytes(zipped)
    assert read(path)[1] is not None  # up to a buffer of content before it is lost


JUNK = [
    (b"\x89PNG\r", "not UTF-8: byte 1"),
    (b"no json", "not JSON: Expecting value, column 1"),
    (b"[1, 2]", "a game record must be an object, got [1, 2]"),
    (b"null", "a game record must be an object, got None"),
    (b"{}", "format is missing"),
    (b'{"format":"\\ud800"}', "format must be 'carolus-record', got '\\ud800'"),
]


@pytest.mark.parametrize(("junk", "reason"), JUNK, ids=[reason for _, reason in JUNK])
def test_a_line_that_is_no_record_is_refused_after_the_games_before_it(tmp_path, junk, reason):
    one, two = games(2)
    path = tmp_path / "a.jsonl"
    path.write_bytes(one + junk + b"\n" + two)
    lines, error = read(path)
    assert lines == [1]
    assert error is not None and error.line == 2 and error.reason.startswith(reason)
    assert len(error.reason) < 500
    scanned = list(scan_records(path))  # goes on after the bad line
    assert scanned[0][0] == 1 and scanned[-1] == (3, json.loads(two))
    assert str(scanned[1][1]) == str(error)


def test_nesting_at_any_depth_is_refused_and_never_overflows(tmp_path):
    made, path = short_record(), tmp_path / "a.jsonl"
    for key in ("format", "rules", "setup", "events", "result"):
        template = json.dumps({**made, key: None})
        for depth in [*range(850, 1000, 3), 100_000]:
            deep = "[" * depth + "]" * depth
            if key == "rules":
                deep = '{"partners":' + deep + "}"
            path.write_text(template.replace(f'"{key}": null', f'"{key}": {deep}', 1))
            assert read(path)[1] is not None


@pytest.mark.parametrize("name", ["a.jsonl", "a.gz"])
def test_a_line_is_as_long_as_the_limit_and_takes_bounded_memory(tmp_path, monkeypatch, name):
    made, path, (game,) = short_record(), tmp_path / name, games(1)
    longest = len(json.dumps(made, separators=(",", ":"))) + 1
    monkeypatch.setattr(record, "MAX_LINE", longest)
    write_records(path, [made])
    assert read(path) == ([1], None)
    with pytest.raises(RecordError, match="the record takes"):
        write_records(path, [{**made, "note": ""}])
    monkeypatch.setattr(record, "MAX_LINE", 2**20)
    content = game + b"[" + b"[]," * 2**24  # as lists it would take 1 GiB
    path.write_bytes(gzip.compress(content) if name == "a.gz" else content)
    del content
    tracemalloc.start()
    lines, error = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == [1] and error is not None and error.line == 2
    assert "longer than 1,048,576 bytes" in error.reason
    assert peak < 4 * 2**20
