"""Rollouts: unbiased, the same for any number of threads, and they find what is best."""

import json
import threading
import time
from typing import Any

import numpy as np
import pytest
from strategies import Watcher

from carolus_env import bots, engine
from carolus_env.bots import Agent, AgentError
from carolus_env.commands import positions
from carolus_env.engine import chance
from carolus_env.engine.chance import new_streams
from carolus_env.engine.play import playout
from carolus_env.engine.rules import OVER, ROLL, TEAMS, Rules, action_parts
from carolus_env.engine.state import States, pick
from carolus_env.evaluation import Plan, Tournament, rollouts
from carolus_env.evaluation.rollouts import (
    MOST_GAMES,
    PORTION,
    Options,
    Sampler,
    Value,
    _Samples,
    after,
    candidates,
    kind_of,
    looks_after,
    roll_out,
    value_function,
)
from carolus_env.notation import from_text, to_line
from carolus_env.records import read_records

PLAYERS = (2, 3, 4)


def games(players: int, count: int, decisions: int) -> States:
    """Games after some random decisions; those that ended are left out."""
    states, streams = engine.new_games(Rules(players), count, seed=7), new_streams(1, count)
    for _ in range(decisions):
        rows = np.flatnonzero(states["phase"] != OVER)
        engine.step(states, engine.random_actions(states, streams, rows=rows), rows=rows)
    return pick(states, np.flatnonzero(states["phase"] != OVER))


def test_values_are_shares_of_each_team_and_real_where_a_game_is_over():
    for players in PLAYERS:
        states = games(players, 50, 60)
        ended = states.copy()
        loser = int(ended["team"][0, int(ended["player"][0])])
        engine.forfeit(ended[:1])
        for spec in ("planner", "ppo", "value"):
            values = value_function(spec, players)(ended)
            assert values.shape == (len(states), TEAMS[players])
            assert np.allclose(values.sum(axis=1), 1, atol=1e-6)
            assert values[0, loser] < 1e-6
    versions = {value_function(s, p).version for s in ("planner", "ppo", "value") for p in PLAYERS}
    assert len(versions) == 9 and all(len(version) == 12 for version in versions)
    assert value_function("ppo", 2).version == value_function("ppo:2p", 2).version


@pytest.mark.parametrize("players", PLAYERS)
def test_games_do_not_depend_on_threads_or_on_what_is_played_beside_them(players):
    starts = games(players, 12, 30)
    numbers = np.arange(len(starts))
    value = value_function("planner", players)
    for stratified in (False, True):
        alone = Sampler("random", 5, value, stratified=stratified)
        full, decisions = alone.play(starts, numbers)
        threads = Sampler("random", 5, value, stratified=stratified, threads=3)
        shared = threads.play(starts, numbers)
        assert (shared[0] == full).all() and shared[1] == decisions
    plain = Sampler("random", 5, value, stratified=False)
    full, _ = plain.play(starts, numbers)
    part, _ = plain.play(starts[3:6], numbers[3:6])
    assert (part == full[3:6]).all()


class Alone(Agent):
    """A user's agent that two threads must not share."""

    def __init__(self, held: Any = None) -> None:
        self.held, self.busy = held, False

    def act(self, states: States, generators: Any) -> Any:
        assert not self.busy
        self.busy = True
        time.sleep(0.001)
        self.busy = False
        return engine.random_actions(states, generators)


def test_threads_have_agents_of_their_own_also_where_one_object_is_given():
    starts, numbers, value = games(2, 6, 30), np.arange(6), value_function("planner", 2)
    for agent in (bots.make("mcts:sims=4"), Alone()):
        shares, _ = Sampler(agent, 5, value, 2).play(starts, numbers)
        several = Sampler(agent, 5, value, 2, threads=3)
        for _ in range(2):  # the copies are used again
            assert (several.play(starts, numbers)[0] == shares).all()
    held = Alone(threading.Lock())
    with pytest.raises(AgentError, match=r"agent 'Alone': .*cop.* TypeError: cannot pickle"):
        Sampler(held, 5, threads=2).play(starts, numbers)


def test_games_of_one_number_have_the_same_dice_and_agents_cannot_foresee_them():
    [start] = games(2, 1, 30)
    agent = Watcher()
    sampler = Sampler(agent, 1, rounds=2, value=value_function("planner", 2), stratified=False)
    starts = pick(np.array([start]), np.zeros(3, np.int64))
    sampler.play(starts, np.array([4, 4, 9]))
    last = [seen for seen in agent.states if len(seen) == 3][-1]
    assert (last["reserves"][0] == last["reserves"][1]).all()
    assert (last["reserves"][0] != last["reserves"][2]).any()
    generators = [int(shown) for seen in agent.states for shown in seen["generator"][:1]]
    assert len(set(generators)) == len(generators)
    # The dice do not come from the generator that is shown.
    foreseen = waiting_again = 0
    for before, following in zip(agent.states, agent.states[1:], strict=False):
        game = before[:1].copy()
        engine.step(game, engine.legal_masks(game).argmax(axis=1), roll=False)
        if game["phase"][0] == ROLL:
            waiting_again += 1
            chance.roll(game)
            foreseen += int((game["reserves"] == following["reserves"][:1]).all())
    assert waiting_again >= 3 and foreseen < waiting_again


def test_first_rolls_come_in_proportion():
    state = from_text(
        "2 | 1 | 0 roll | 2 | b1 r1y1 r1 p1 r1 g1 y1 b1 g1 y1 g1 b1g1 y1 p1 p1 | R1 - | "
        "r1p1y2 r3p1y1g2 | 0:2/1345 1:3/1245"
    )
    agent, plain = Watcher(), Watcher()
    value, places = value_function("planner", 2), np.arange(2 * 216)
    for each in (agent, plain):
        sampler = Sampler(each, 1, rounds=1, value=value, stratified=each is agent)
        sampler.play(pick(state, np.zeros(len(places), np.int64)), places)
    assert (sampler._heights(places) != sampler._heights(places + len(places))).all()
    first = agent.states[0]["reserves"][:, int(state["player"][0])]
    gained = first.astype(int) - state["reserves"][0, int(state["player"][0])].astype(int)
    outcomes = chance.chance_outcomes(3)
    for roll, ways in zip(outcomes.faces, outcomes.ways, strict=True):
        if (roll == 5).any():
            continue  # crowns become paladins by the player's choice
        counts = np.bincount(roll, minlength=5)[:5]
        result = int((gained[:, :5] == counts).all(axis=1).sum())
        assert abs(result - 2 * int(ways)) <= 8  # those whose crowns became the same paladins
    most, most_of_plain = (
        np.unique(a.states[0]["reserves"], axis=0, return_counts=True)[1].max()
        for a in (agent, plain)
    )
    assert most <= most_of_plain


@pytest.mark.parametrize("players", PLAYERS)
def test_rollouts_agree_with_random_playouts(players):
    """`playout` rolls and plays in a kernel of its own."""
    start, numbers = games(players, 1, 40), np.arange(1500)
    sampler = Sampler("random", 2, threads=2)
    shares, _ = sampler.play(pick(start, numbers * 0), numbers)
    team = start["team"][0, :players].astype(int)
    truth = playout(start, new_streams(3, 1), repeats=20_000).returns[0]
    teams = TEAMS[players]
    for k in range(teams):
        wanted = (float(truth[int(np.argmax(team == k))]) * (teams - 1) + 1) / teams
        error = shares[:, k].std() / np.sqrt(len(numbers))
        assert abs(shares[:, k].mean() - wanted) < 4 * error + 0.015
    assert np.allclose(shares.sum(axis=1), 1)


def test_a_move_that_wins_is_the_best():
    [state] = from_text(
        "2 | 8 | 1 move | 2 | A1r1 B2y1g1 A1r1p2b1 B1p1 y1 g1 B1y1 A1r1 B4p1b3 g1 B1p1 | "
        "R5p5b3y3g5 r4P6B3Y3G5 | r4p1b2 b1y2g1 | 1:2/14 0:3/25"
    )
    result = roll_out(state, options=Options(base="greedy", games=400), seed=1)
    assert result.best.actions == (11,) and result.best.mean[result.team] == 1
    assert all(one.regret > 0 for one in result.candidates[1:])
    assert result.games == sum(one.games for one in result.candidates)
    if result.ended == "best":
        assert all(one.dropped for one in result.candidates[1:])


def test_a_rollout_stops_at_the_error_or_the_budget():
    [state] = games(2, 1, 31)
    exact = roll_out(state, options=Options(base="random", games=5000, error=0.03), seed=1)
    left = [one for one in exact.candidates if not one.dropped]
    assert exact.ended in ("error", "best")
    assert max(one.error[exact.team] for one in left) <= 0.03
    short = roll_out(state, options=Options(base="random", games=130), seed=1)
    assert max(one.games for one in short.candidates) <= 130
    again = roll_out(state, options=Options(base="random", games=130, threads=2), seed=1)
    assert [one.mean.tolist() for one in again.candidates] == [
        one.mean.tolist() for one in short.candidates
    ]
    [choice] = candidates(state)[:1]
    one = Options(base="random", games=200, error=0.1)
    assert roll_out(state, [choice], one).ended == "error", "there is nothing to be better than"
    other = roll_out(state, options=Options(base="random", games=130), seed=2)
    assert other.best.mean.tolist() != short.best.mean.tolist()


def test_what_is_done_once_does_not_count_as_the_bases_time():
    class Late(Agent):
        name, wait = "late", 1.0

        def act(self, states, generators):
            time.sleep(self.wait)
            self.wait = 0.0
            return engine.random_actions(states, generators)

    [state] = games(2, 1, 31)
    roll_out(state, options=Options(base="random", games=2))
    assert roll_out(state, options=Options(base=Late(), games=2)).seconds < 1


def test_tests_become_rarer_so_that_ten_million_games_are_looked_through_in_proportion():
    first = list(looks_after(2000))
    assert first == [*range(100, 2001, 100)]
    assert list(looks_after(2050))[-2:] == [2000, 2050] and list(looks_after(2)) == [2]
    read = [sum(looks_after(games)) / games for games in (10**5, 10**6, MOST_GAMES)]
    assert max(read) < 25, "times that a game is read"
    samples = _Samples(2, team=0)
    for _ in range(300):
        samples.add(np.arange(2), np.ones((2, PORTION, 2)))
    assert len(samples._parts[0]) == 300, "copied only when they are looked at"
    assert (samples.games == 300 * PORTION).all() and samples.of(1).shape == (300 * PORTION, 2)


def test_the_same_dice_make_differences_more_exact():
    """Two turns that differ little, after which games go on much alike."""
    text = (
        "2 | 3 | 1 place 2 | 11 | A1y1 g1 b1 y1 p1 A1p1 b1 B2r2 p1 r1 g1 A1y1 b1 g1 | "
        "r2p1B3Y3 R3P2y1G1 | r1p2b2g2 p1b1y2g2 | 0:3/25 1:4/12"
    )
    [state] = from_text(text)
    alike = [(31, 63, 13), (31, 79, 13)]
    result = roll_out(state, alike, Options(games=100, error=0.001), seed=3)
    apart = float(np.hypot(*(one.error[result.team] for one in result.candidates)))
    assert 0 < result.candidates[1].regret_error < 0.8 * apart


def test_a_cut_off_rollout_takes_the_values_word():
    [state] = games(2, 1, 30)
    seen: list[States] = []
    value = value_function("planner", 2)

    def noting(states: States) -> Any:
        seen.append(states.copy())
        return value._of(states)

    sampler = Sampler("random", 1, Value("noting", "0", 2, noting), rounds=2)
    start = np.array([state])
    shares, _ = sampler.play(pick(start, np.zeros(40, np.int64)), np.arange(40))
    [left] = seen
    assert (left["round"] == state["round"] + 2).all() and (left["turn"] == 0).all()
    assert np.allclose(np.sort(shares, axis=0), np.sort(value(left), axis=0))


def test_impossible_options_and_candidates_are_refused():
    [state] = games(2, 1, 30)
    first, over = candidates(state)[0], np.array([state])
    engine.forfeit(over)
    known = "known are planner, ppo, value, ppo:MODEL or value:MODEL"
    for call, text in (
        (lambda: value_function("greedy", 2), f"unknown value function 'greedy'; {known}"),
        (lambda: value_function("ppo:2p,temperature=1", 2), "unknown value function 'ppo:2p"),
        (lambda: value_function("ppo:2p", 3), "'ppo:2p' is for 2 players, not for 3"),
        (lambda: Options(games=1), "games must be a whole number from 2 to 10,000,000, got 1"),
        (lambda: Options(rounds=0), "rounds must be a whole number of at least 1"),
        (lambda: Options(error=0.0), "error must be a number above 0 and below 1"),
        (lambda: Options(threads=0), "threads must be"),
        (lambda: roll_out(state, [first, first]), "given twice"),
        (lambda: roll_out(state, []), "one candidate or more"),
        (lambda: Sampler("random", 1, rounds=1), "value must be a rollouts.Value, got None"),
        (lambda: value_function("value", 3)(over), "'value' is for 3 players, not for 2"),
        (lambda: roll_out(state, [(*first, 0)]), "does not decide"),
        (lambda: roll_out(over[0]), "no decision is due"),
        (lambda: candidates(state, 0), "most must be"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    for games_, error in ((np.array([state, state]), ValueError), (None, TypeError)):
        with pytest.raises(error, match="one game"):
            roll_out(games_)
    with pytest.raises(TypeError, match="options must be"):
        roll_out(state, options={"games": 5})
    alone = np.array([state])
    assert candidates(alone) == candidates(state) and kind_of(alone) == kind_of(state)
    with pytest.raises(engine.IllegalActionError):
        roll_out(alone, [(int(engine.legal_masks(np.array([state]))[0].argmin()),)])


@pytest.mark.parametrize("players", PLAYERS)
def test_candidates_are_all_discs_and_crowns_and_the_best_turns(players):
    kinds = set()
    for decisions in (1, 20, 21, 22, 23, 24, 25, 26):
        for state in games(players, 8, decisions):
            listed = candidates(state, 5)
            kinds.add(kind_of(state))
            legal = engine.legal_actions(state).tolist()
            assert all(turn[0] in legal for turn in listed)
            if kind_of(state) == "turn":
                ends = after(state, listed)
                assert (ends["phase"] != 3).all() and (ends["phase"] != 4).all()
                assert len(np.unique(ends)) == len(listed) <= 5
            else:
                assert [turn[0] for turn in listed] == legal
    assert kinds == {"disc", "turn", "crown"}


def test_ctrl_c_shows_what_was_rolled_out(capsys, monkeypatch):
    [state] = [s for s in games(2, 80, 33) if s["phase"] == 2][:1]
    play, calls = Sampler.play, 0

    def stopped(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return play(*given)

    monkeypatch.setattr(Sampler, "play", stopped)
    assert positions.analyse([to_line(state), "--base", "random"]) == 130
    out, err = capsys.readouterr()
    assert "d1" in out and "\ninterrupted: " in out
    shown = sum(int(row.split()[-1]) for row in out.splitlines()[2:-1])
    assert f"interrupted: the {shown:,} games played before are shown" in err
    calls = 2
    assert positions.analyse([to_line(state), "--base", "random"]) == 130
    assert capsys.readouterr().out == "", "nothing was played"
    calls = 0
    with pytest.raises(KeyboardInterrupt):  # for those who know no `Interrupted`
        roll_out(state, options=Options(base="random"))


def test_a_recorded_game_is_analysed_decision_by_decision(capsys, tmp_path, monkeypatch):
    path, plan = tmp_path / "games.jsonl", Plan(Rules(3, "deferred"), ("greedy", "random"), deals=1)
    Tournament(plan).run(records=path)
    record = [record for _, record in read_records(path)][1]
    words = [str(path), "--game", "2", "--base", "random", "--games", "4", "--most", "2"]
    assert positions.analyse([*words, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    turns = [row for row in data["decisions"] if "E+" in row["choice"]]
    assert all(row["cost"] == 0 for row in data["decisions"] if row["best"] == row["choice"])
    steps = [e for e in record["events"] if action_parts(e.get("action", 0)).kind == "move"]
    assert len(turns) == len(steps), "a turn is one decision"
    assert [row["player"] for row in turns] == [event["player"] for event in steps]
    for seat, player in enumerate(data["players"]):
        costs = [row["cost"] for row in data["decisions"] if row["player"] == seat]
        assert (player["decisions"], player["cost"]) == (len(costs), pytest.approx(sum(costs)))
        assert player["rate"] == pytest.approx(np.mean(costs))
    assert sorted(player["name"] for player in data["players"]) == [
        "greedy",
        "random #1",
        "random #2",
    ]
    roll, calls = rollouts.roll_out, 0

    def stopped(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return roll(*given, **named)

    monkeypatch.setattr(rollouts, "roll_out", stopped)
    assert positions.analyse(words) == 130
    out, err = capsys.readouterr()
    assert f"2 of {len(data['decisions'])} decisions were rolled out" in err
    assert "mean" in out and data["decisions"][0]["choice"] in out
    for words, text in (
        ([str(path), "--game", "7"], "holds no game 7"),
        ([str(path), "--move", "d1"], "--move needs a position"),
        ([str(tmp_path / "none.jsonl")], "No such file"),
        (["2 | 3", "--game", "2"], "--game needs a file of game records"),
    ):
        assert positions.analyse(words) == 2
        assert text in capsys.readouterr().err


def test_the_command_prints_a_table_and_json_or_what_is_wrong(capsys, tmp_path):
    [state] = [s for s in games(2, 80, 33) if s["phase"] == 2][:1]
    file = tmp_path / "position.txt"
    file.write_text(to_line(state) + "\n")
    assert positions.analyse([str(file), "--base", "random", "--games", "200"]) == 0
    table = capsys.readouterr().out
    assert "percent of the win for team" in table and "d1" in table and "games by random" in table
    arguments = [to_line(state), "--base", "random", "--games", "200", "--json", "--move"]
    discs = [f"d{action + 1}" for action in engine.legal_actions(state)[:2]]
    assert positions.analyse([*arguments, discs[0], "--move", discs[1]]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {one["text"] for one in data["candidates"]} == set(discs)
    for words, text in (
        (["2 | 3"], "is missing"),
        (["nowhere.txt"], "'nowhere.txt': No such file"),
        ([str(file), "--base", "nobody"], "unknown agent 'nobody'"),
        ([str(file), "--move", "d9"], "move 'd9'"),
        ([str(file), "--rounds", "2", "--value", "mcts"], "unknown value function"),
        ([str(file), "--value", "ppo"], "--value needs --rounds"),
        ([str(file), "--move", "d1", "--most", "3"], "--most needs"),
    ):
        assert positions.analyse(words) == 2
        assert text in capsys.readouterr().err
