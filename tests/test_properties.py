"""What holds in every state of every game, whatever the rules and however it is played."""

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import history, play_out, rules, sample, seeds

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import (
    ACTIONS,
    CROWN_CHOICE,
    DESTINATIONS,
    FIRST_CROWN,
    FIRST_PLACE,
    OVER,
    REASON_NAMES,
    ROLL,
    TERRITORIES,
)
from carolus_env.engine.state import to_bytes, winning_teams
from carolus_env.records import position
from carolus_env.records.position import from_bytes

ROOT = Path(__file__).parent.parent


@given(rules, seeds)
def test_masks_and_steps_take_the_legal_set_of_the_independent_reader(rules, seed):
    states = history(rules, seed)
    some = sample(states, seed, 60)
    for state, mask in zip(some, engine.legal_masks(some), strict=True):
        known = position.to_dict(state)
        due = known["phase"] not in ("roll", "over")
        expected = reference.legal_from_state(known, rules.to_dict()) if due else []
        assert np.flatnonzero(mask).tolist() == engine.legal_actions(state).tolist() == expected
        assert due == bool(expected)  # whoever is to decide can
    for state in sample(states, seed, 4):
        legal = set(np.flatnonzero(engine.legal_masks(state.reshape(1))[0]))
        for action in range(-2, ACTIONS + 2):
            game = np.array([state])
            with contextlib.suppress(ValueError):
                engine.step(game, np.array([action]), roll=False)
                assert action in legal
            assert (game[0] != state) == (action in legal)


@given(rules, seeds)
def test_random_actions_are_legal_and_all_equally_likely(rules, seed):
    for state in sample(history(rules, seed), seed, 4):
        copies = np.repeat(state.reshape(1), 4000)
        drawn = engine.random_actions(copies, new_streams(seed, len(copies)))
        if state["phase"] in (ROLL, OVER):
            assert (drawn == -1).all()
            continue
        actions, counts = np.unique(drawn, return_counts=True)
        assert actions.tolist() == engine.legal_actions(state).tolist()
        assert len(actions) == 1 or stats.chisquare(counts).pvalue > 1e-7
        assert (copies == state).all()


@given(rules, seeds)
def test_copies_are_independent_and_bytes_round_trip(rules, seed):
    states = sample(history(rules, seed), seed, 200)
    assert to_bytes(from_bytes(to_bytes(states))) == to_bytes(states)
    states = sample(states, seed, 20)
    before, results = to_bytes(states), []
    for _ in range(2):  # nothing that matters is kept elsewhere
        copies = states.copy()
        play_out(copies, seed, limit=30)
        assert to_bytes(states) == before
        results.append(to_bytes(copies))
    assert results[0] == results[1]


@given(rules, seeds)
def test_every_state_of_a_game_is_a_possible_position_and_json_gives_the_same_bytes(rules, seed):
    """Nothing is lost or too much; each state is what the rules say, tests/reference.py shows."""
    states = sample(history(rules, seed), seed, 100)
    position.check_positions(states)
    for state in states[::4]:
        text = json.dumps(position.to_dict(state))
        again = position.from_dict(json.loads(text))
        assert to_bytes(again) == state.tobytes()
        assert json.dumps(position.to_dict(again[0])) == text


@given(rules, seeds)
def test_payoffs_are_what_the_rulings_say(rules, seed):
    states = history(rules, seed, games=16)
    for t in {0, len(states) // 2, len(states) - 1}:
        payoffs = engine.returns(states[t])
        assert payoffs.sum(axis=1) == pytest.approx(0, abs=1e-12)
        for state, payoff in zip(states[t], payoffs, strict=True):
            winners = winning_teams(state)
            assert not winners or state["phase"] == OVER
            teams = [rules.team(seat) for seat in range(rules.players)]
            expected = [reference.payoff(team, winners, rules.teams) for team in teams]
            assert payoff.tolist() == expected


def test_random_games_reach_what_the_properties_are_about():
    """A property proves nothing about what the games never come to."""
    seen = Counter()
    for seed, kind in enumerate(strategies.ALL_KINDS):
        states = history(kind, seed, games=16, limit=1500)
        seen.update(REASON_NAMES[reason] for reason in states["reason"][-1])
        seen["merged"] += int((states["regions"] < TERRITORIES).sum())
        shrinking = np.diff(states["courts"].sum(axis=(-1, -2), dtype=int), axis=0) < 0
        seen["court returns"] += int(shrinking.sum())
        waiting = (states["crowns"].max(axis=-1) > 0) & (states["phase"] != CROWN_CHOICE)
        seen["crown waits"] += int(waiting.sum())
    for event in ("merged", "court returns", "crown waits", *REASON_NAMES[1:4]):
        assert seen[event] > 0, seen


@pytest.mark.parametrize("kind", strategies.ALL_KINDS, ids=repr)
def test_a_game_is_the_same_whatever_the_batch_and_whether_rows_pick_it_or_not(kind):
    def final_games(seed, n):
        states = engine.new_games(kind, n, seed=seed)
        play_out(states, seed, 400)
        return states

    hundred = final_games(5, 100)
    assert len(np.unique(hundred["generator"])) == 100
    assert to_bytes(final_games(5, 7)) == to_bytes(hundred[:7])
    for i in (0, 50, 99):
        assert to_bytes(final_games(5 + i, 1)) == to_bytes(hundred[i : i + 1])
    backwards = final_games(np.arange(104, 4, -1), 100)
    assert to_bytes(backwards[::-1].copy()) == to_bytes(hundred)
    together, apart = (engine.new_games(kind, 20, seed=3) for _ in range(2))
    players, generators = new_streams(3, 20), new_streams(3, 20)
    rows = np.random.default_rng(3).permutation(20)
    for _ in range(150):
        rows = rows[~engine.is_over(apart)[rows]]
        going_on = np.sort(rows)
        actions = engine.random_actions(together, players, rows=going_on)
        engine.step(together, actions, rows=going_on)
        for some in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
            actions = engine.random_actions(apart, generators, rows=some)
            masks = engine.legal_masks(apart, rows=some)
            assert masks[np.arange(len(some)), actions].all()
            assert (masks == engine.legal_masks(apart)[some]).all()
            engine.step(apart, actions, rows=some)
        assert to_bytes(together) == to_bytes(apart)


def in_another_process(*options, code="", **environment):
    return subprocess.run(
        [sys.executable, *options, "-c", f"import strategies; {code}print(strategies.digest())"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_games_and_bots_are_the_same_with_the_compiler_off():
    """And nothing warns: NumPy's scalars would, where the compiled ones wrap around."""
    other = in_another_process("-W", "error", NUMBA_DISABLE_JIT="1")
    assert other.stderr == ""
    assert other.stdout.strip() == strategies.digest()


@pytest.mark.slow
def test_games_are_the_same_with_array_bounds_checked(tmp_path):
    """And no bytes that `from_bytes` takes lead outside an array."""
    hostile = "import test_state; test_state.test_no_bytes_lead_a_kernel_astray(); "
    other = in_another_process(code=hostile, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path))
    assert "Error" not in other.stderr
    assert other.stdout.strip() == strategies.digest()


def renamed_action(action, clans):
    if action >= FIRST_PLACE:
        clan, destination = divmod(action - FIRST_PLACE, DESTINATIONS)
        return FIRST_PLACE + DESTINATIONS * clans[clan] + destination
    return FIRST_CROWN + clans[action - FIRST_CROWN] if 0 <= action - FIRST_CROWN < 5 else action


@given(rules, seeds, st.data())
def test_names_of_seats_clans_and_territories_do_not_matter(rules, seed, data):
    """Played with other names, a game takes the same course."""

    def keeps_teams(seats):
        pairs = {(rules.team(i), rules.team(seat)) for i, seat in enumerate(seats)}
        return len(pairs) == rules.teams

    seats = data.draw(st.permutations(range(rules.players)).filter(keeps_teams), label="seats")
    clans = data.draw(st.permutations(range(5)), label="clans")
    shift = data.draw(st.integers(0, 14), label="shift")

    states = history(rules, seed, games=2)
    begun = states[(states["round"] > 0) & (states["phase"] != OVER)]
    start = begun[data.draw(st.integers(0, len(begun) - 1), label="start")]
    game, generators = np.array([start]), new_streams(seed, 2)[1:]
    other = position.from_dict(strategies.renamed(position.to_dict(start), seats, clans, shift))
    for _ in range(60):
        if engine.is_over(game)[0]:
            break
        if chance.roll_due(game)[0]:
            faces = chance.draw_faces(game)
            chance.apply_roll(game, faces)
            chance.apply_roll(other, np.array([*clans, 5])[faces])
        else:
            actions = strategies.random_moves(game, generators, np.array([0]))
            engine.step(game, actions, roll=False)
            engine.step(other, np.array([renamed_action(int(actions[0]), clans)]), roll=False)
        expected = strategies.renamed(position.to_dict(game[0]), seats, clans, shift)
        known = position.to_dict(other[0])
        assert known == {**expected, "generator": known["generator"]}
