"""Whole turns as actions: what is listed, what is seen of it, and what it does to a game."""

import pickle

import gymnasium
import numpy as np
import pytest
from strategies import every_number
from test_learner import go_on

from carolus_env import engine
from carolus_env.engine.rules import CROWN_CHOICE, DISC, DISCS, MOVE, NOBODY, OVER, PLACE, Rules
from carolus_env.envs import turns
from carolus_env.envs.gym import CarolusEnv
from carolus_env.envs.learner import LearnerGames
from carolus_env.envs.turns import IllegalChoiceError, TurnGames, Turns
from carolus_env.planning.heuristic import FEATURES, features
from carolus_env.planning.plans import best_plans

every_rules = pytest.mark.parametrize(
    "rules",
    [
        Rules(2),
        Rules(2, crown_choice="deferred"),
        Rules(3),
        Rules(4),
        Rules(4, partners="adjacent", crown_choice="deferred"),
    ],
    ids=str,
)


def games_of(rules, n=12, opponents="planner:errors=0.3", seed=1, **options):
    return TurnGames(rules, n, opponents, seed=seed, **options)


def choose(games, random):
    """A random candidate in each game."""
    return (random.random(games.n) * games.counts).astype(np.int64)


def seats_from(state, player):
    """The seats as a player sees them: clockwise, a partner third."""
    n = int(state["players"])
    seats = [(player + k) % n for k in range(n)]
    if n == 4 and state["partners_adjacent"]:
        partner = player ^ 1
        first = min(seat for seat in seats if seat not in (player, partner))
        return [player, first, partner, first + 1]
    return seats


def plain_row(state, player, kind):
    """The row of a position after a candidate, from the record's fields."""
    n, teams, regions = (int(state[name]) for name in ("players", "teams", "regions"))
    team_of, seats = state["team"].astype(int), seats_from(state, player)
    team, over = team_of[player], state["phase"] == OVER
    share = engine.win_shares(state.reshape(1))[0, player] * (n // teams) if over else 0.0
    counted = features(state.reshape(1))[0]
    scales = np.array([feature.scale for feature in FEATURES])
    acting = set()
    if not over and state["round"] > 0 and state["phase"] != DISC:
        deferred = state["phase"] == CROWN_CHOICE and state["crown_deferred"]
        now = state["phase"] in (PLACE, MOVE) or deferred
        acting = {int(s) for s in state["order"][int(state["turn"]) + (0 if now else 1) : n]}
    others = [seat for seat in range(n) if seat != player]
    foes = [seat for seat in others if team_of[seat] != team]
    courts, reserves = state["courts"].astype(int), state["reserves"].astype(int)
    paladins = state["region_paladins"][:, :regions].astype(int)
    holders = [NOBODY if seat == NOBODY else team_of[seat] for seat in state["control"].tolist()]
    margins, castles = [0.0] * 8, [0.0] * 8
    for k in range(min(8, regions)):
        region = (int(state["emperor"]) + k + 1) % regions
        owner, size = int(state["region_owner"][region]), int(state["region_castles"][region])
        power = [size * (owner == one) for one in range(teams)]
        for clan, holder in enumerate(holders):
            if holder != NOBODY:
                power[holder] += paladins[clan, region]
        best = max(power[one] for one in range(teams) if one != team)
        margins[k] = (power[team] - best) * 0.2
        castles[k] = size * 0.25 * (1 if owner == team else -1)
    parts = {
        "candidate": [1],
        "kind": np.eye(3)[kind],
        "over": [over],
        "share": [share],
        "features": [counted[(team + k) % teams] * scales for k in range(teams)],
        "acts": [seat in acting for seat in seats],
        "disc_played": [np.eye(6)[int(state["discs_played"][seat])][1:] for seat in seats],
        "discs_in_hand": [
            [int(state["discs_in_hand"][seat]) >> disc & 1 for disc in range(DISCS)]
            for seat in seats
        ],
        "crowns": [int(state["crowns"][seat]) * 0.3 for seat in seats],
        "regions": [regions / 15],
        "round": [int(state["round"]) * 0.05],
        "held": [0 if one == NOBODY else 1 if one == team else -1 for one in holders],
        "lead": (courts[player] - courts[others].max(axis=0)) * 0.25,
        "reserve": reserves[player] * 0.3,
        "threat": reserves[foes].max(axis=0) * 0.3,
        "out": paladins.sum(axis=1) * 0.06,
        "margin": margins,
        "castles": castles,
    }
    assert list(parts) == [block.name for block in turns.layout(n)]
    row = np.concatenate([np.ravel(np.array(part, np.float64)) for part in parts.values()])
    return np.clip(row, -turns.LIMIT, turns.LIMIT)


@every_rules
def test_a_row_tells_the_position_after_its_candidate_as_the_player_sees_it(rules):
    games, random = games_of(rules), np.random.default_rng(3)
    kinds, ends = set(), 0
    for _ in range(60):
        for g in range(games.n):
            state = games.states[g]
            player, phase = int(state["player"]), state["phase"]
            kind = 2 if phase in (PLACE, MOVE) else 0 if phase == DISC else 1
            kinds.add(kind)
            for k in random.permutation(games.counts[g])[:3]:
                after = games.states[g : g + 1].copy()
                due = [a for a in games.choices[g, k].tolist() if a >= 0]
                for action in due:
                    engine.step(after, np.array([action]), roll=False)
                ends += int(after[0]["phase"] == OVER)
                expected = plain_row(after[0], player, kind)
                np.testing.assert_allclose(games.rows[g, k], expected, rtol=1e-5, atol=1e-6)
            assert not games.rows[g, games.counts[g] :].any()
            assert (games.choices[g, games.counts[g] :] == -1).all()
        go_on(games, choose(games, random))
    assert kinds == {0, 1, 2}
    assert ends > 0


@every_number
def test_a_turns_candidates_are_the_planners_best_and_the_rest_is_counted(players):
    few, many = games_of(Rules(players)), games_of(Rules(players), turns=Turns(4096))
    random, turns = np.random.default_rng(4), 0
    for _ in range(40):
        assert not many.left_out.any()
        np.testing.assert_array_equal(few.counts + few.left_out, many.counts)
        for g in np.flatnonzero(np.isin(few.states["phase"], (PLACE, MOVE))):
            plans = best_plans(few.states[g], 16)
            listed = [[a for a in one if a >= 0] for one in few.choices[g].tolist()]
            assert listed[: few.counts[g]] == plans
            turns += 1
        actions = choose(few, random)
        go_on(few, actions)
        go_on(many, actions)
    assert turns > 100


def test_more_places_for_paladins_are_more_candidates():
    most = []
    for plans in ("stop", "one", "all"):
        games = games_of(Rules(), n=64, turns=Turns(16, plans))
        go_on(games, np.zeros(64, np.int64))
        most.append((games.counts + games.left_out)[games.states["phase"] == PLACE].max())
    assert most[0] < most[1] < most[2]
    for options in ({"candidates": 4}, {"candidates": "all"}, {"plans": "two"}):
        [(name, value)] = options.items()
        with pytest.raises(ValueError, match=f"{name} must be .*got {value!r}"):
            Turns(**options)


@every_rules
def test_a_choice_is_its_actions_one_after_the_other(rules):
    turns = games_of(rules, opponents="greedy")
    single = LearnerGames(rules, 12, "greedy", seed=1)
    random, ends = np.random.default_rng(6), 0
    for _ in range(80):
        assert turns.states.tobytes() == single.states.tobytes()
        actions = choose(turns, random)
        chosen = turns.choices[np.arange(12), actions].astype(np.int64)
        over = turns.step(actions).rows
        result = []
        for column in chosen.T:
            rows = np.flatnonzero(column >= 0)
            if len(rows):
                result += single.step(column[rows], rows).rows.tolist()
        assert sorted(result) == over.tolist()
        turns.restart(over)
        single.restart(over)
        ends += len(over)
    assert ends > 5


def test_an_index_of_no_candidate_forfeits_or_raises():
    env = CarolusEnv(turns=True, players=3, opponents="greedy")
    env.reset(seed=1)
    _, reward, terminated, _, info = env.step(15)  # of five discs at most
    assert (reward, terminated, info["illegal"]) == (-0.5, True, True)
    assert not info["action_mask"].any() and (info["choices"] == -1).all()
    games = games_of(Rules())
    before, actions = games.states.copy(), np.zeros(12, np.int64)
    actions[4] = games.counts[4]
    with pytest.raises(IllegalChoiceError, match="0 to 4 in phase crown, got 5") as caught:
        games.step(actions)
    assert games.states.tobytes() == before.tobytes()
    for again in (pickle.loads(pickle.dumps(caught.value)), IllegalChoiceError(caught.value)):
        assert isinstance(again, IllegalChoiceError) and again.legal == [0, 1, 2, 3, 4]
        assert str(again) == str(caught.value)
    with pytest.raises(ValueError, match=r"actions must be whole numbers of shape \(12,\)"):
        games.step(np.zeros(12))


def test_infos_hold_the_actions_behind_the_candidates():
    envs = gymnasium.make_vec("CarolusMagnusTurns-v0", 8, opponents="greedy", candidates=6)
    obs, infos = envs.reset(seed=2)
    assert obs.shape == (8, 6, turns.length(2))
    for _ in range(30):
        masks, firsts = infos["action_mask"], infos["choices"][:, :, 0]
        np.testing.assert_array_equal(masks, obs[:, :, 0])
        np.testing.assert_array_equal(firsts >= 0, masks == 1)
        legal = engine.legal_masks(envs.unwrapped.games.states)
        rows, columns = masks.nonzero()
        last = np.where(masks.any(axis=1), 5 - masks[:, ::-1].argmax(axis=1), 0)
        assert legal[rows, firsts[rows, columns]].all()
        obs, _, _, _, infos = envs.step(last)


def test_candidates_of_games_of_different_numbers_of_players_are_refused():
    mixed = np.concatenate([engine.new_games(Rules(players), 2, seed=1) for players in (2, 3)])
    with pytest.raises(ValueError, match="different numbers of players have different candidates"):
        turns.candidates_of(mixed, Turns())
    assert turns.candidates_of(mixed[:0], Turns()).counts.shape == (0,)
