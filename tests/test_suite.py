"""Suites of decisions: made the same whatever happens, read with care, and measured by."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.suite import SuiteRecipe, checked, main, make_suite, stages_of
from carolus_env import bots
from carolus_env.commands import evaluate
from carolus_env.engine.state import STATE
from carolus_env.evaluation import suite
from carolus_env.evaluation.games import ArenaError
from carolus_env.evaluation.rollouts import KINDS, after, choose, value_function
from carolus_env.evaluation.suite import ALL, GAME, STAGES, measure, optimism
from carolus_env.notation import to_line
from carolus_env.play.session import GameFile, Replay

TINY = SuiteRecipe(
    2,
    decisions=20,
    error=0.3,
    base="greedy",
    rounds=0,
    value="planner",
    decided=0.0,
    seed=3,
    turns=3,
    table=("random", "greedy"),
    proposers=("greedy",),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("suite") / "tiny.jsonl"
    make_suite(TINY, path)
    return path


@pytest.fixture(scope="module")
def tiny(made):
    return suite.parsed(made.read_bytes())


class Fixed(bots.Agent):
    """Plays given choices of a suite's decisions; placements in another order."""

    name = "fixed"

    def __init__(self, decisions, place=0):
        self.known = {}
        for one in decisions:
            state = one.state()
            *placements, last = one.candidates[place].actions
            for action in [*reversed(placements), last]:
                self.known[to_line(state[0], generator=False)] = action
                state = after(state[0], [(action,)])

    def act(self, states, generators):
        return np.array([self.known[to_line(state, generator=False)] for state in states])


def test_a_suite_has_its_command_and_its_shares_of_kinds_stages_and_halves(tiny):
    assert Counter(one.kind for one in tiny.decisions) == {"disc": 8, "turn": 10, "crown": 2}
    for half in suite.HALVES:
        assert Counter(one.kind for one in tiny.half(half))["turn"] == pytest.approx(5, abs=1)
    assert sum(len(tiny.half(half)) for half in suite.HALVES) == len(tiny.half("all")) == 20
    command = "--players 2 --decisions 20 --error 0.3 --base greedy --rounds 0"
    assert command in TINY.command() == tiny.header["command"]
    assert "--turns 3 --table random greedy --proposers greedy --out FILE" in TINY.command()


def test_an_interrupted_suite_goes_on_to_the_same_file(made, tmp_path):
    path = tmp_path / "again.jsonl"
    for most in (3, 11):

        def stop(done, most=most):
            if done == most:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            make_suite(TINY, path, progress=stop)
        assert not path.exists()
        with (tmp_path / "again.jsonl.part").open("ab") as part:
            part.write(b'{"number":19,"kind":"di')  # killed while it wrote
    make_suite(TINY, path)
    assert path.read_bytes() == made.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["again.jsonl"]


@pytest.mark.slow
def test_workers_make_the_same_file(made, tmp_path):
    make_suite(TINY, tmp_path / "two.jsonl.gz", workers=2)
    assert gzip.decompress((tmp_path / "two.jsonl.gz").read_bytes()) == made.read_bytes()


def test_what_is_saved_of_another_recipe_is_refused(made, tmp_path, capsys):
    part = tmp_path / "x.jsonl.part"
    part.write_bytes(made.read_bytes())
    assert main(["--players", "2", "--out", str(tmp_path / "x.jsonl")]) == 2
    text = capsys.readouterr().err
    assert "differs in decisions, error, base, rounds, value, decided, seed, turns" in text
    assert part.read_bytes() == made.read_bytes()
    assert main(["--players", "2", "--out", str(made)]) == 2
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"decisions": 0}, "decisions must be"),
        ({"error": 0.0}, "error must be"),
        ({"rounds": -1}, "rounds must be"),
        ({"seed": -1}, "seed must be"),
        ({"value": "greedy"}, "unknown value function"),
        ({"decided": 0.5}, r"decided must be a number of at least 0 and below 0.5"),
        ({"table": ("greedy", "greedy")}, "two different agents"),
    ],
)
def test_impossible_recipes_are_refused(change, text):
    with pytest.raises(ValueError, match=text):
        SuiteRecipe(**{"players": 2, **change})


def test_games_can_be_left_and_decided_positions_left_out(tmp_path):
    recipe = replace(TINY, decisions=8, rounds=1, decided=0.4)
    make_suite(recipe, tmp_path / "left.jsonl")
    left = suite.parsed((tmp_path / "left.jsonl").read_bytes())
    assert left.sampler(0).rounds == 1
    values = value_function("planner", 2)
    for one in left.decisions:
        ends = after(one.state()[0], [c.actions for c in one.candidates])
        worth = values(ends)[:, one.team]
        assert worth.max() >= 0.4 and worth.min() <= 0.6
        assert any(0.001 < c.value < 0.999 for c in one.candidates)  # no whole games


def test_stages_follow_from_castles_and_regions():
    states = np.zeros(4, STATE)
    states["players"], states["regions"] = 2, 15
    states["castles"][:, 0] = 3, 4, 7, 0
    states["regions"][3] = 6
    assert [STAGES[k] for k in stages_of(states)] == ["opening", "middle", "end", "end"]


@pytest.mark.parametrize(
    ("row", "keys", "value", "text"),
    [
        (0, ("decisions",), 21, "21 decisions expected"),
        (0, ("players",), 3, "decision 0: players"),
        (2, ("number",), 7, "decision 1: number"),
        (2, ("kind",), "crown", "decision 1: kind"),
        (2, ("stage",), "end", "decision 1: stage"),
        (2, ("half",), "none", "decision 1: half"),
        (2, ("team",), 2, "decision 1: team"),
        (2, ("position",), "2 | 1", "position"),
        (2, ("game", "first_player"), None, "decision 1: game"),
        (2, ("game", "events"), None, "waits for a roll"),
        (2, ("candidates",), None, "decision 1: candidates"),
        (2, ("candidates", 0, "actions"), [94], "may not play action 94"),
    ],
)
def test_a_suite_is_checked_before_it_is_written(made, row, keys, value, text):
    lines = [json.loads(line) for line in made.read_bytes().splitlines()]
    *way, last = keys
    inner = lines[row]
    for key in way:
        inner = inner[key]
    if value is None:  # the other player begins, an event less, one candidate
        value = 1 - inner[last] if last == "first_player" else inner[last][1:]
        value = inner[last][:1] if last == "candidates" else value
    inner[last] = value
    wrong = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with pytest.raises(ValueError, match=text):
        checked(wrong)
    assert suite.parsed(wrong).digest != checked(made.read_bytes()).digest


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"", gzip.compress])
def test_a_damaged_suite_of_the_package_is_not_measured_by(damage, tmp_path, monkeypatch):
    intact = (files("carolus_env.evaluation") / "decisions" / "2p.jsonl.gz").read_bytes()
    (tmp_path / "decisions").mkdir()
    (tmp_path / "decisions" / "2p.jsonl.gz").write_bytes(damage(intact))
    monkeypatch.setattr(suite.resources, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=r"2p.jsonl.gz: damaged, install the package again"):
        suite._shipped.__wrapped__(2)


def test_the_best_choices_lose_nothing_in_any_order_and_others_what_the_suite_says(tiny):
    result = measure(tiny, Fixed(tiny.decisions), "all")
    assert result.listed.all()
    assert (result.regrets == 0).all() and (result.errors == 0).all()
    turns = [k for k, one in enumerate(tiny.decisions) if one.kind == "turn"]
    assert any(result.actions[k] != tiny.decisions[k].candidates[0].actions for k in turns)
    result = measure(tiny, Fixed(tiny.decisions, -1), "all")
    assert result.regrets.tolist() == [one.candidates[-1].regret for one in tiny.decisions]
    summary, of_game = result.summary(), 0
    for kind in KINDS:
        part = [one.candidates[-1].regret for one in tiny.decisions if one.kind == kind]
        assert summary[kind].mean == pytest.approx(np.mean(part))
        assert summary[kind].low <= summary[kind].mean <= summary[kind].high
        of_game += tiny.header["per_game"][kind] * summary[kind].mean
    assert summary[ALL].mean == pytest.approx(result.regrets.mean())
    assert summary[GAME].mean == pytest.approx(of_game)
    assert result.regrets[result.worst(1)[0]] == result.regrets.max()


def test_an_unlisted_choice_is_rolled_out_whatever_else_is_asked(tiny):
    agent = bots.make("random")
    result = measure(tiny, agent, "all", games=40)
    assert not result.listed.all() and result.listed.any()
    assert (result.errors[~result.listed] > 0).all()
    for rows in ([0, 3, 7, 9], [9], list(range(19, -1, -1))):
        some = measure(tiny, agent, games=40, decisions=[tiny.decisions[k] for k in rows])
        assert some.actions == tuple(result.actions[k] for k in rows)
        assert some.regrets.tolist() == result.regrets[rows].tolist()


def test_a_choice_that_is_better_than_the_listed_ones_has_negative_regret(tiny):
    """Regrets of two choices against each other are opposite: their games have the same dice."""
    regrets = []
    for place, listed in ((-1, slice(-1)), (0, slice(None, 0, -1))):
        asked = [replace(one, candidates=one.candidates[listed]) for one in tiny.decisions]
        result = measure(tiny, Fixed(tiny.decisions, place), decisions=asked)
        assert not result.listed.any()
        regrets.append(result.regrets)
    assert regrets[0].max() > 0.1
    np.testing.assert_array_equal(regrets[1], -regrets[0])


def test_a_full_turn_is_asked_for(tiny):
    states = np.concatenate([one.state() for one in tiny.decisions])
    before = states.tobytes()
    chosen, ends = choose(bots.make("mcts:sims=8"), states, np.arange(len(states)))
    assert states.tobytes() == before
    for one, state, actions, end in zip(tiny.decisions, states, chosen, ends, strict=True):
        assert len(actions) == 1 + (state["placements_left"] if one.kind == "turn" else 0)
        assert after(state, [actions]).tobytes() == end.tobytes()


def test_the_best_of_noisy_values_is_too_high(tiny):
    def of(*pairs):
        candidates = [SimpleNamespace(regret=a, regret_error=b) for a, b in pairs]
        return optimism([SimpleNamespace(candidates=candidates)])

    assert of((0, 0), (0.5, 0.01)) == pytest.approx(0, abs=1e-4)
    # The mean of the larger of 0 and a normal number with standard deviation 0.1.
    assert of((0, 0), (0, 0.1)) == pytest.approx(0.1 / np.sqrt(2 * np.pi), rel=0.05)


def test_evaluate_prints_what_agents_lose_and_writes_the_worst(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(suite, "shipped", lambda players: tiny)
    for argv, said in ((["--suite"], "one agent"), (["greedy", "--suite", "--games", "5"], "--ga")):
        assert evaluate.main(argv) == 2
        assert said in capsys.readouterr().err
    out = tmp_path / "out"
    monkeypatch.setattr(suite, "WORST", 2)
    assert evaluate.main(["random", "greedy", "--suite", "--players", "2", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert f"2 players: {len(tiny.half('report'))} decisions, base greedy" in text
    assert tiny.digest in text
    assert evaluate.main(["random", "--suite", "--players", "3", "--out", str(out)]) == 2
    assert "suite.json exists: name another folder" in capsys.readouterr().err
    result = json.loads((out / "suite.json").read_text())
    [measured] = result["suites"]
    assert measured["suite"] == tiny.digest and len(measured["decisions"]) == len(
        tiny.half("report")
    )
    for row in measured["agents"]:
        assert row["regret"]["all"]["mean"] == pytest.approx(np.mean(row["regrets"]), abs=1e-4)
    games = GameFile(out / "worst_2p.jsonl")
    assert not games.problems and len(games.games) == 8
    names = {name for game in games.games for name in game["names"]}
    assert "the best choice" in names and any(name.endswith(": random") for name in names)
    for k in range(8):
        Replay(json.loads(games.lines[k]))


def test_all_suites_on_the_standard_output_are_one_document(tiny, capfd, monkeypatch):
    monkeypatch.setattr(suite, "shipped", lambda players: tiny)
    assert evaluate.main(["random", "--suite", "--json", "-"]) == 0
    assert len(json.loads(capfd.readouterr().out)["suites"]) == 3


class Fails(bots.Agent):
    """Raises an error once it is asked for more than one decision."""

    name = "fails"
    error: type[BaseException] = OSError

    def act(self, states, generators):
        if len(states) > 1:
            raise self.error("gone")
        return bots.make("random").act(states, generators)


class Refuses(bots.Agent):
    name = "refuses"

    def act(self, states, generators):
        raise ValueError("not with two players")


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_what_was_measured_is_kept_and_who_cannot_play_is_left_out(
    tiny, tmp_path, capsys, monkeypatch, error
):
    monkeypatch.setattr(suite, "shipped", lambda players: tiny)
    monkeypatch.setattr(Fails, "error", error)
    agents = [Refuses(), bots.make("greedy"), Fails()]
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else ArenaError):
        suite.measure_agents(agents, 2, out=tmp_path)
    out = capsys.readouterr().out
    assert "Left out of 2 players: agent 'refuses'" in out and "a turn" in out
    kept = json.loads((tmp_path / "suite.json").read_text())
    assert [row["spec"] for row in kept["suites"][0]["agents"]] == ["greedy"]
    assert "'refuses'" in kept["left_out"]["2"][0]
    assert (tmp_path / "worst_2p.jsonl").exists()
    with pytest.raises(ValueError, match="not with two players"):
        suite.measure_agents([Refuses()], 2)
