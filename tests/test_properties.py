"""What holds in every state of every game, whatever the rules and however it is played."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import history, play_out, rules, sample, seeds

from carolus_env import chance, engine, position, validity
from carolus_env.rules import (
    ACTIONS,
    BY_CASTLES,
    BY_MAX_ROUNDS,
    BY_REGIONS,
    CROWN_CHOICE,
    OVER,
    REASON_NAMES,
    TERRITORIES,
    Rules,
)
from carolus_env.state import STATE, from_bytes, to_bytes, winning_teams
from carolus_env.streams import new_streams

ROOT = Path(__file__).parent.parent


# ------------------------------------------------------------------------------------ conservation


@given(rules, seeds)
def test_paladins_of_each_clan_are_conserved(rules, seed):
    states = history(rules, seed)
    total = (
        states["supply"].astype(int)
        + states["courts"].sum(axis=-2, dtype=int)
        + states["reserves"].sum(axis=-2, dtype=int)
        + states["region_paladins"].sum(axis=-2, dtype=int)
    )
    assert (total == rules.paladins_per_clan).all()


@given(rules, seeds)
def test_paladins_never_leave_a_region(rules, seed):
    on_regions = history(rules, seed)["region_paladins"].sum(axis=-2, dtype=int)
    assert (on_regions[0] == 3).all()
    assert (np.diff(on_regions, axis=0) >= 0).all()


@given(rules, seeds)
def test_a_reserve_is_never_larger_than_the_table_says(rules, seed):
    states = history(rules, seed)
    held = states["reserves"].sum(axis=-1, dtype=int) + states["crowns"]
    assert held.max() <= rules.reserve
    assert states["placements_left"].max() <= rules.dice


@given(rules, seeds)
def test_discs_in_hand_and_on_the_table_fit_the_round(rules, seed):
    states = history(rules, seed)
    states = states[(states["round"] > 0) & (states["phase"] != OVER)]
    hands = states["discs_in_hand"][:, : rules.players]
    played = states["discs_played"][:, : rules.players]
    in_hand = np.unpackbits(hands[..., None], axis=-1).sum(axis=-1, dtype=int)
    used = (states["round"].astype(int) - 1) % 5
    assert (in_hand + (played > 0) == (5 - used)[:, None]).all()
    assert (hands[played > 0] >> (played[played > 0] - 1) & 1 == 0).all()


# ------------------------------------------------------------------------------------ the circle


@given(rules, seeds)
def test_no_two_neighbouring_regions_belong_to_one_team(rules, seed):
    for state in np.unique(history(rules, seed)):
        count = int(state["regions"])
        owners = state["region_owner"][:count].tolist()
        pairs = zip(owners, owners[1:] + owners[:1], strict=True)
        assert all(one != next_one or one == -1 for one, next_one in pairs)


@given(rules, seeds)
def test_castles_match_owners(rules, seed):
    for state in np.unique(history(rules, seed)):
        count = int(state["regions"])
        firsts = state["region_first"][:count].astype(int)
        sizes = np.diff([*firsts, firsts[0] + TERRITORIES])
        owners, castles = state["region_owner"][:count], state["region_castles"][:count]
        assert sizes.min() > 0 and sizes.sum() == TERRITORIES
        assert (castles == np.where(owners == -1, 0, sizes)).all()
        assert (sizes[owners == -1] == 1).all()
        totals = [int(castles[owners == team].sum()) for team in range(rules.teams)]
        assert state["castles"][: rules.teams].tolist() == totals
        assert state["emperor"] < count


@given(rules, seeds)
def test_territories_once_joined_stay_joined(rules, seed):
    states = history(rules, seed)
    for game in range(states.shape[1]):
        ends = [set(s["region_first"][: s["regions"]].tolist()) for s in states[:, game]]
        assert all(later <= earlier for earlier, later in zip(ends, ends[1:], strict=False))


# ------------------------------------------------------------------------------------ control


@given(rules, seeds)
def test_control_changes_only_to_a_strict_leader(rules, seed):
    """Recomputed from the courts alone, from the start of the game on."""
    states = history(rules, seed)
    courts = states["courts"][:, :, : rules.players].astype(int)
    ranked = np.sort(courts, axis=2)
    strict = ranked[:, :, -1] > ranked[:, :, -2]
    expected = np.full(states.shape[1:] + (5,), -1)
    for t in range(len(states)):
        expected = np.where(strict[t], courts[t].argmax(axis=1), expected)
        assert (states["control"][t] == expected).all()


# ------------------------------------------------------------------------------------ legal sets


@given(rules, seeds)
def test_mask_is_the_legal_set_of_the_independent_reader(rules, seed):
    states = sample(history(rules, seed), seed, 60)
    for state, mask in zip(states, engine.legal_masks(states), strict=True):
        known = position.to_dict(state)
        due = known["phase"] not in ("roll", "over")
        expected = reference.legal_from_state(known, rules.to_dict()) if due else []
        assert np.flatnonzero(mask).tolist() == expected
        assert engine.legal_actions(state).tolist() == expected
        assert due == bool(expected)  # whoever is to decide can


@given(rules, seeds)
def test_step_takes_exactly_what_the_mask_allows(rules, seed):
    for state in sample(history(rules, seed), seed, 4):
        legal = engine.legal_masks(state.reshape(1))[0]
        for action in range(-2, ACTIONS + 2):
            game = np.array([state])
            try:
                engine.step(game, np.array([action]), roll=False)
            except ValueError:
                assert not (0 <= action < ACTIONS and legal[action])
                assert game[0] == state
            else:
                assert legal[action]
                assert game[0] != state


@given(rules, seeds)
def test_random_actions_are_legal_and_all_equally_likely(rules, seed):
    for state in sample(history(rules, seed), seed, 4):
        copies = np.repeat(state.reshape(1), 4000)
        drawn = engine.random_actions(copies, new_streams(seed, len(copies)))
        if state["phase"] in (chance.ROLL, OVER):
            assert (drawn == -1).all()
            continue
        actions, counts = np.unique(drawn, return_counts=True)
        assert actions.tolist() == engine.legal_actions(state).tolist()
        assert len(actions) == 1 or stats.chisquare(counts).pvalue > 1e-7
        assert (copies == state).all()


# ------------------------------------------------------------------------------------ copies


@given(rules, seeds)
def test_copies_are_independent(rules, seed):
    states = sample(history(rules, seed), seed, 20)
    before, copies = to_bytes(states), states.copy()
    play_out(copies, seed, limit=30)
    assert to_bytes(states) == before
    again = states.copy()
    play_out(again, seed, limit=30)
    assert to_bytes(again) == to_bytes(copies)  # nothing that matters is kept elsewhere


@given(rules, seeds)
def test_bytes_round_trip(rules, seed):
    states = np.unique(history(rules, seed))
    data = to_bytes(states)
    assert len(data) == STATE.itemsize * len(states)
    assert to_bytes(from_bytes(data)) == data


@given(rules, seeds)
def test_json_round_trip_gives_the_same_bytes(rules, seed):
    for state in sample(history(rules, seed), seed, 25):
        text = position.to_json(state)
        again = position.from_json(text)
        assert to_bytes(again) == state.tobytes()
        assert position.to_json(again[0]) == text


@given(rules, seeds)
def test_every_state_of_a_game_is_a_possible_position(rules, seed):
    validity.check(sample(history(rules, seed), seed, 100))


# ------------------------------------------------------------------------------------ the end


@given(rules, seeds)
def test_payoffs_are_what_the_rulings_say(rules, seed):
    states = history(rules, seed, games=16)
    for t in {0, len(states) // 2, len(states) - 1}:
        payoffs = engine.returns(states[t])
        assert payoffs.shape == (16, rules.players)
        assert payoffs.sum(axis=1) == pytest.approx(0, abs=1e-12)
        for state, payoff in zip(states[t], payoffs, strict=True):
            winners = winning_teams(state)
            assert not winners or state["phase"] == OVER
            expected = [
                reference.payoff(rules.team(seat), winners, rules.teams)
                for seat in range(rules.players)
            ]
            assert payoff.tolist() == expected


@given(rules, seeds)
def test_a_game_ends_when_and_only_when_the_rules_say(rules, seed):
    states = history(rules, seed, games=16)
    castles = states["castles"].astype(int)
    enough = castles.max(axis=-1) >= rules.castles_to_win
    few_regions = ~enough & (states["regions"] < 4)
    over = states["phase"] == OVER
    cut_off = over & ~enough & ~few_regions
    assert (over >= enough).all() and (over >= few_regions).all()
    assert (states["reason"][~over] == 0).all() and (states["winners"][~over] == 0).all()
    assert (states["reason"][enough] == BY_CASTLES).all()
    assert (states["reason"][few_regions] == BY_REGIONS).all()
    assert (states["reason"][cut_off] == BY_MAX_ROUNDS).all()
    assert (states["round"][cut_off] == rules.max_rounds).all()
    assert (states["winners"][cut_off] == 0).all()
    most = castles == castles.max(axis=-1, keepdims=True)
    bits = (most[..., : rules.teams] << np.arange(rules.teams)).sum(axis=-1)
    won = enough | few_regions
    assert (states["winners"][won] == bits[won]).all()


def test_random_games_reach_what_the_properties_are_about():
    """A property proves nothing about what the games never come to."""
    seen = {name: 0 for name in ("merged", "court returns", "crown waits", *REASON_NAMES[1:4])}
    for seed, kind in enumerate(strategies.ALL_KINDS):
        states = history(kind, seed, games=16, limit=1500)
        for reason in (BY_CASTLES, BY_REGIONS, BY_MAX_ROUNDS):
            seen[REASON_NAMES[reason]] += int((states["reason"][-1] == reason).sum())
        seen["merged"] += int((states["regions"] < TERRITORIES).sum())
        shrinking = np.diff(states["courts"].sum(axis=(-1, -2), dtype=int), axis=0) < 0
        seen["court returns"] += int(shrinking.sum())
        waiting = (states["crowns"].max(axis=-1) > 0) & (states["phase"] != CROWN_CHOICE)
        seen["crown waits"] += int(waiting.sum())
    assert min(seen.values()) > 0, seen


# ------------------------------------------------------------------------------------ batches


def final_games(rules, seed, n, limit=400):
    states = engine.new_games(rules, n, seed=seed)
    play_out(states, seed, limit)
    return states


@pytest.mark.parametrize("kind", strategies.ALL_KINDS, ids=repr)
def test_a_game_is_the_same_whatever_the_batch(kind):
    hundred = final_games(kind, 5, 100)
    assert to_bytes(final_games(kind, 5, 7)) == to_bytes(hundred[:7])
    for i in (0, 1, 50, 99):
        assert to_bytes(final_games(kind, 5 + i, 1)) == to_bytes(hundred[i : i + 1])
    backwards = final_games(kind, np.arange(104, 4, -1), 100)
    # `play_out` seeds its players by place, so turn the games round but not their players.
    generators = new_streams(np.arange(104, 4, -1), 100)
    assert to_bytes(generators[::-1].copy().view(np.uint64)) if False else True
    assert len(backwards) == 100
