"""What the tests of the core share: Hypothesis strategies, and games played at random.

`history` keeps every state of a batch of games as one array ``(T, N)``, so that a property is
checked on thousands of states at once.
"""

import hashlib
from functools import cache

import numpy as np
import pytest
from hypothesis import strategies as st

from carolus_env import Game, GameBatch, bots, engine, observe
from carolus_env.engine import chance
from carolus_env.engine.chance import new_streams, random_bits
from carolus_env.engine.play import playout
from carolus_env.engine.rules import (
    DESTINATIONS,
    FIRST_PLACE,
    OVER,
    PLACE,
    ROLL,
    TERRITORIES,
    Rules,
)

every_number = pytest.mark.parametrize("players", [2, 3, 4])
seeds = st.integers(0, 2**64 - 1)

rules = st.builds(
    Rules,
    players=st.integers(2, 4),
    crown_choice=st.sampled_from(["on_roll", "deferred"]),
    partners=st.sampled_from(["opposite", "adjacent"]),
    # Small supplies run dry, and then the courts return paladins and crowns are lost.
    paladins_per_clan=st.sampled_from([3, 4, 6, 9, 12, 200]) | st.integers(3, 200),
    max_rounds=st.sampled_from([1, 2, 7, 100, None]),
)


class Watcher(bots.Agent):
    """Plays the first legal action, and keeps what it was shown."""

    def __init__(self):
        self.states = []

    def act(self, states, generators):
        self.states.append(states.copy())
        return engine.legal_masks(states).argmax(axis=1)

    def shown(self, field):
        """All values of a field, in order."""
        return [value for states in self.states for value in states[field].tolist()]


# One of each kind, for tests that search nothing.
ALL_KINDS = (
    Rules(players=2),
    Rules(players=3),
    Rules(players=4),
    Rules(players=4, partners="adjacent"),
    Rules(players=2, crown_choice="deferred", paladins_per_clan=6, max_rounds=30),
    Rules(players=3, crown_choice="deferred", paladins_per_clan=3, max_rounds=15),
    Rules(players=4, crown_choice="deferred", paladins_per_clan=9, max_rounds=None),
    Rules(players=3, paladins_per_clan=200, max_rounds=7),
)


def random_moves(states, generators, rows):
    """Random actions; every second game likes its court, so that control and castles change."""
    actions = engine.random_actions(states, generators, rows=rows)
    liking = random_bits(generators)[rows] % 4 > 0
    to_court = (states["phase"][rows] == PLACE) & (rows % 2 == 1) & liking
    return np.where(to_court, actions - (actions - FIRST_PLACE) % DESTINATIONS, actions)


def advance(states, generators):
    """One decision or one roll in each game that is not over."""
    rolling = np.flatnonzero(chance.roll_due(states))
    deciding = np.flatnonzero(~chance.roll_due(states) & ~engine.is_over(states))
    for dice in np.unique(states["dice_due"][rolling]):
        rows = rolling[states["dice_due"][rolling] == dice]
        chance.apply_roll(states, chance.draw_faces(states, rows=rows), rows=rows)
    if len(deciding):
        actions = random_moves(states, generators, deciding)
        engine.step(states, actions, rows=deciding, roll=False)


def history(rules, seed, games=8, limit=500):
    """Every state of random games, rolls included: ``(T, games)``. What is over stays as it is."""
    states = engine.new_games(rules, games, seed=seed, roll=False)
    generators = new_streams(seed, games)
    seen = [states.copy()]
    while len(seen) < limit and not engine.is_over(states).all():
        advance(states, generators)
        seen.append(states.copy())
    return np.array(seen)


def sample(states, seed, count):
    """Up to ``count`` of the states, all phases among them as far as there are."""
    states = states.reshape(-1)
    shuffled = np.random.default_rng(seed).permutation(len(states))
    _, first_of_each = np.unique(states["phase"][shuffled], return_index=True)
    chosen = np.concatenate([first_of_each, np.arange(len(states))])[:count]
    return states[shuffled[np.unique(chosen)]]


@cache
def sample_states():
    """Some states of random games of each kind, all phases among them."""
    return [
        state
        for seed, kind in enumerate(ALL_KINDS)
        for state in sample(history(kind, seed, games=16), seed, 30)
    ]


def mapped(values, mapping):
    """``values`` in new places: the one at ``i`` goes to ``mapping[i]``."""
    moved = [None] * len(values)
    for i, value in enumerate(values):
        moved[mapping[i]] = value
    return moved


def renamed(known, seats=None, clans=range(5), shift=0):
    """A position, as JSON, with other names for seats, clans and territories."""
    rules = Rules.from_dict(known["rules"])
    seats = range(rules.players) if seats is None else seats
    teams = {rules.team(seat): rules.team(seats[seat]) for seat in range(rules.players)}
    control = [-1 if seat == -1 else seats[seat] for seat in known["control"]]
    result = known["result"]
    return {
        **known,
        "player": None if known["player"] is None else seats[known["player"]],
        "regions": [
            {
                "territories": [(number + shift) % TERRITORIES for number in region["territories"]],
                "paladins": mapped(region["paladins"], clans),
                "owner": teams.get(region["owner"], -1),
                "castles": region["castles"],
            }
            for region in known["regions"]
        ],
        "courts": mapped([mapped(court, clans) for court in known["courts"]], seats),
        "reserves": mapped([mapped(reserve, clans) for reserve in known["reserves"]], seats),
        "control": mapped(control, clans),
        "supply": mapped(known["supply"], clans),
        "castles": mapped(known["castles"], teams),
        "order": [seats[seat] for seat in known["order"]],
        "result": result
        and {**result, "winners": sorted(teams[team] for team in result["winners"])},
        **{key: mapped(known[key], seats) for key in ("crowns", "discs_in_hand", "discs_played")},
    }


def played(rules, seed, limit=10_000):
    """A game of random decisions: as it began, the actions, and as it then is."""
    start = engine.new_games(rules, 1, seed=seed, roll=False)
    game, generators, actions = start.copy(), new_streams(seed, 1), []
    chance.roll(game)
    while not engine.is_over(game)[0] and len(actions) < limit:
        chosen = engine.random_actions(game, generators)
        actions.append(int(chosen[0]))
        engine.step(game, chosen)
    return start, actions, game


def play_out(states, seed, limit=2000):
    """Random play in place until every game is over, or ``limit`` decisions."""
    generators = new_streams(seed, len(states))
    chance.roll(states)
    for _ in range(limit):
        rows = np.flatnonzero(~engine.is_over(states))
        if not len(rows):
            return
        engine.step(states, engine.random_actions(states, generators, rows=rows), rows=rows)


def digest():
    """A hash over random games of every kind, and over bots, to compare processes."""
    hashed = hashlib.sha256()
    for seed, kind in enumerate(ALL_KINDS):
        states = history(kind, seed, games=2, limit=160)
        assert (states["phase"] == ROLL).any()
        last = np.ascontiguousarray(states[-1])
        for result in (last, engine.legal_masks(last), engine.returns(last)):
            hashed.update(result.tobytes())
        hashed.update(playout(last, new_streams(0, 2), most_decisions=40).returns.tobytes())
        batch = GameBatch(kind, 2, seed=seed, observation=("uint8", "float32")[seed % 2])
        for _ in range(20):
            turn = batch.step(batch.sample())
        hashed.update(batch.states.tobytes() + turn.observations.tobytes())
        batch.rollout(15)
        hashed.update(batch.states.tobytes() + batch.masks.tobytes())
        game = Game(kind, seed=seed, observe="float32")
        for _ in range(20):
            game.play(game.legal_actions[-1])
            hashed.update(game.observation.tobytes())
        for some in states[::20]:
            hashed.update(observe(np.ascontiguousarray(some)).tobytes())
        if seed == 4:
            hashed.update(decided(states))
    return hashed.hexdigest()


def decided(states):
    """What bots decide in a few positions, all phases among them, as bytes."""
    from networks import random_model

    states = states[~np.isin(states["phase"], (ROLL, OVER)) & (states["round"] > 2)]
    _, first_of_each = np.unique(states["phase"], return_index=True)
    few = states[first_of_each]
    options = bots.SearchOptions(sims=3, candidates=3)
    agents = [bots.SearchBot(random_model(int(few["players"][0])), options)]
    for spec in ("planner", "mcts:sims=4"):
        agents.append(bots.make(spec))
    return b"".join(agent.act(few, new_streams(1, len(few))).tobytes() for agent in agents)
