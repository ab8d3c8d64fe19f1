"""Games as arrays agree with the games, entry by entry, and refuse what is no game."""

import numpy as np
import pytest
from strategies import ALL_KINDS, played

from carolus_env import engine
from carolus_env.commands import dataset
from carolus_env.engine import observation
from carolus_env.engine.chance import derived_seed
from carolus_env.engine.rules import BY_MAX_ROUNDS, Rules
from carolus_env.engine.state import STATE
from carolus_env.evaluation import Plan, Tournament
from carolus_env.records import arrays, make_record, positions, start_of, write_records
from carolus_env.records.arrays import FACE, load_arrays, pack, read_games, read_packed, to_arrays
from carolus_env.system.arrays import from_bytes, to_bytes


def records_of(rules: Rules, count: int = 5) -> list[dict]:
    """Random games."""
    return [make_record(*played(rules, seed)[:2]) for seed in range(count)]


@pytest.mark.parametrize("rules", [kind for kind in ALL_KINDS if kind.max_rounds], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_every_row_is_what_the_player_saw_could_do_did_and_was_paid(rules, dtype):
    records = records_of(rules)
    data = to_arrays(pack(records), observation=dtype)
    row = 0
    for number, record in enumerate(records):
        states = positions(record)
        payoffs = engine.returns(states[-1:])[0]
        first = row
        for event, state in zip(record["events"], states, strict=False):
            if "action" not in event:
                continue
            seat, game = event["player"], state[None].copy()
            obs = observation.observe(game, np.array([seat]), dtype=dtype)[0]
            np.testing.assert_array_equal(data.observations[row], obs)
            np.testing.assert_array_equal(data.masks[row], engine.legal_masks(game)[0])
            assert (data.actions[row], data.seats[row]) == (event["action"], seat)
            assert data.games[row] == number
            assert data.returns[row] == np.float32(payoffs[seat])
            row += 1
        mine = slice(first, row)
        cut_off = states[-1]["reason"] == BY_MAX_ROUNDS
        for seat in range(rules.players):
            last = np.flatnonzero(data.seats[mine] == seat).max()
            assert data.dones[mine][last] and data.discounts[mine][last] == cut_off
        assert data.dones[mine].sum() == rules.players
        assert (data.discounts[mine] == 0).sum() == (0 if cut_off else rules.players)
    assert row == len(data.actions)


@pytest.mark.parametrize("rules", [Rules(2), Rules(3)], ids=str)
def test_threads_and_folders_change_nothing_and_what_is_not_wanted_is_left_out(rules, tmp_path):
    games = pack(records_of(rules))
    here = to_arrays(games, observation="float32")._asdict()
    there = to_arrays(games, observation="float32", out=tmp_path / "data")
    bare = to_arrays(games, observation=None, masks=False, out=tmp_path / "less")
    assert isinstance(there.observations, np.memmap)
    loaded = load_arrays(tmp_path / "less")
    for less in (bare, loaded, to_arrays(games, observation=None, masks=False)):
        assert less.observations is None and less.masks is None
    split = to_arrays(games, observation="float32", threads=3)
    for name, array in here.items():
        for other in (there, split, *((bare, loaded) if getattr(bare, name) is not None else ())):
            np.testing.assert_array_equal(array, getattr(other, name))
    with pytest.raises(FileExistsError, match="data"):
        to_arrays(games, out=tmp_path / "data")
    wrong = games._replace(events=np.where(games.events < FACE, 94, games.events).astype(np.uint8))
    with pytest.raises(ValueError, match="game 0: byte"):
        to_arrays(wrong, out=tmp_path / "none")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "less"]


def test_progress_of_many_games_is_reported():
    one, count = pack(records_of(Rules(2, max_rounds=1), 1)), 4100
    starts, events = np.repeat(one.starts, count), np.tile(one.events, count)
    games = arrays.Packed(starts, events, np.arange(count + 1) * len(one.events))
    reported: list[int] = []
    data = to_arrays(games, observation=None, masks=False, progress=reported.append)
    assert reported == [4096, 4100] and data.games[-1] == 4099
    assert len(data.actions) == games.decisions


@pytest.mark.parametrize("name", ["games.jsonl", "games.jsonl.gz", "games.safetensors"])
def test_any_file_of_games_is_read(tmp_path, name):
    records = records_of(Rules(3))
    games = pack(records)
    assert games.starts.tobytes() == b"".join(start_of(record).tobytes() for record in records)
    write, what = (arrays.write_packed, games) if "safe" in name else (write_records, records)
    write(tmp_path / name, what)
    again = read_games(tmp_path / name)
    assert all(np.array_equal(*pair) for pair in zip(games, again, strict=True))


CHANGES = [
    (lambda t: t.pop("events"), "'events' .*uint8"),
    (lambda t: t.update(bounds=t["bounds"].astype(np.int32)), "'bounds'"),
    (lambda t: t["bounds"].__setitem__(1, -3), "bounds"),
    (lambda t: t["bounds"].__setitem__(-1, 10**6), "bounds"),
    (lambda t: t.update(starts=t["starts"][1:]), "4 games .*5"),
    (lambda t: t.update(starts=t["starts"] | 255), "field"),
    (lambda t: t.update(starts=t["starts"][:, 1:]), "'starts' must be N x"),
    (lambda t: t["bounds"].__setitem__(slice(1, 5), [2**63 - 1, -(2**63), 2**62, 7]), "bounds"),
    (lambda t: t["starts"].view(STATE)["order"].__setitem__(2, 0), "game 2 .* before its first"),
    (lambda t: t["starts"].view(STATE)["supply"].__setitem__(3, 9), "game 3 .* before its first"),
    (9, "version must be 1, got 9"),
    (b"{}\n", ""),
    (b"nonsense", ""),
    (b"\x00" * 8 + b"{", ""),
]


@pytest.mark.parametrize(("change", "named"), CHANGES)
def test_a_file_of_something_else_is_refused(tmp_path, change, named):
    games = pack(records_of(Rules(2)))
    content = {
        "starts": games.starts.view(np.uint8).reshape(5, -1).copy(),
        "events": games.events.copy(),
        "bounds": games.bounds.copy(),
    }
    path, version = tmp_path / "games.jsonl", arrays.VERSION
    if callable(change):
        change(content)
    elif isinstance(change, int):
        version = change
    path.write_bytes(to_bytes(content, {"format": arrays.FORMAT, "version": version}))
    if isinstance(change, bytes):
        path.write_bytes(change)
    for read in (read_games, read_packed):
        with pytest.raises(ValueError, match=rf"games\.jsonl.*{named}"):
            read(path)
    path.write_bytes(b"")
    assert len(read_games(path).starts) == 0


def test_games_that_a_worker_gets_read_only_give_the_same_arrays():
    games = pack(records_of(Rules(2), 2))
    read_only = type(games)(*(each.copy() for each in games))
    for each in read_only:
        each.flags.writeable = False
    for ours, theirs in zip(to_arrays(read_only), to_arrays(games), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_no_bytes_lead_the_kernel_astray(players):
    games = pack(records_of(Rules(players), 3))
    random = np.random.default_rng(players)
    refused = 0
    for _ in range(300):
        events = games.events.copy()
        places = random.integers(len(events), size=random.integers(1, 4))
        events[places] = random.integers(256, size=len(places))
        try:
            to_arrays(games._replace(events=events))
        except ValueError as error:
            assert "is not what is due" in str(error) or "is not over after" in str(error)
            refused += 1
    assert refused > 250


def test_games_that_end_early_or_go_on_or_cannot_be_put_together_are_refused():
    early, late = records_of(Rules(2), 3), records_of(Rules(2), 3)
    early[1]["events"] = early[1]["events"][:-5]
    late[2]["events"].append({"action": 3, "player": 0})
    for records, named in (
        (early, r"game 1 is not over after its \d+ bytes"),
        (late, r"game 2: byte \d+ of its events, 3, is not what is due"),
        (records_of(Rules(2), 1) + records_of(Rules(3), 1), "different numbers of players"),
        ([7], "a game record"),
    ):
        with pytest.raises(ValueError, match=named):
            to_arrays(pack(records))
    with pytest.raises(ValueError, match=r"observation .*uint8, float32 or None"):
        to_arrays(pack([]), observation="int8")
    data = to_arrays(pack([]))
    assert len(data.actions) == 0 and data.observations.shape[1] == observation.length(2)


def folder_of(path):
    """The arrays and tables of a data set."""
    return {**load_arrays(path)._asdict(), "tables": np.load(path / "tables.npy")}


def test_a_data_set_of_named_agents_is_made_by_one_command(tmp_path, capsys):
    out = tmp_path / "data"
    words = ["greedy", "random", "--games", "20", "--workers", "1", "--seed", "4"]
    assert dataset.main([*words, "--out", str(out)]) == 0
    assert "20 games" in capsys.readouterr().out
    result = folder_of(out)
    seed = derived_seed(4, 0)  # of the first part
    cup = Tournament(Plan(Rules(2), ("greedy", "random"), deals=10, seed=seed))
    cup.run(records=tmp_path / "records.jsonl")
    wanted = to_arrays(read_games(tmp_path / "records.jsonl"))
    for name, array in wanted._asdict().items():
        np.testing.assert_array_equal(result[name], array)
    np.testing.assert_array_equal(result["tables"], cup.results["table"])
    card = (out / "README.md").read_text()
    assert "| `greedy` | 20 |" in card and "--games 20" in card and "| `returns` |" in card
    assert dataset.main([*words, "--out", str(out)]) == 2
    assert f"{out} exists: name another folder" in capsys.readouterr().err


def test_an_interrupted_data_set_is_continued(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(dataset, "OF_A_SEED", 12)
    monkeypatch.setattr(dataset, "AT_ONCE", 6)
    words = ["random", "--players", "3", "--games", "18", "--workers", "1"]
    assert dataset.main([*words, "--out", str(tmp_path / "whole")]) == 0
    write, calls = arrays.write_packed, []

    def stops(path, games):
        if path.name != "games.safetensors":
            calls.append(path.stem)
            if len(calls) == 3:
                raise KeyboardInterrupt
        write(path, games)

    monkeypatch.setattr(arrays, "write_packed", stops)
    words += ["--out", str(tmp_path / "data")]
    assert dataset.main(words) == 130
    assert "the same command continues" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()
    assert dataset.main([*words, "--seed", "5"]) == 2
    assert "parts of another data set (seed)" in capsys.readouterr().err
    about = tmp_path / ".data.parts" / "job.json"
    kept = about.read_text()
    for damaged in ("{", "[]", "{}", kept.replace('"sources": [', '"sources": [1, ')):
        about.write_text(damaged)
        assert dataset.main(words) == 2
        assert ".data.parts" in capsys.readouterr().err
    about.write_text(kept)
    with monkeypatch.context() as patch:
        patch.setattr(dataset, "fingerprint", lambda agent, players: {"carolus_env": "edited"})
        assert dataset.main(words) == 2
    assert "(random: carolus_env changed since)" in capsys.readouterr().err
    assert dataset.main(words) == 0
    assert len(calls) == len(set(calls)) + 1, "only what was not kept is played again"
    assert np.load(tmp_path / "whole" / "tables.npy").shape == (18, 3)
    games = read_packed(tmp_path / "whole" / "games.safetensors")
    assert len({start.tobytes() for start in games.starts}) == 18, "every deal once"
    for name, array in folder_of(tmp_path / "whole").items():
        np.testing.assert_array_equal(folder_of(tmp_path / "data")[name], array)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "whole"]


def test_what_cannot_be_made_is_reported(tmp_path, capsys):
    for words, said in (
        ("random --games 0", "--games"),
        ("random greedy random", "got random greedy random"),
        ("greddy", "'greddy'"),
        ("random --players 5", "players"),
        ("value:3p", "3 players"),
    ):
        end = ["--out", str(tmp_path / "out"), "--workers", "1"]
        assert dataset.main([*words.split(), *end]) == 2
        assert said in capsys.readouterr().err
    assert dataset.main(["random", "--games", "2", *end]) == 0, "nothing is left of these"


def test_an_array_of_one_number_is_read_back_with_its_shape():
    assert from_bytes(to_bytes({"a": np.array(1.5)}, {}))[0]["a"].shape == ()
