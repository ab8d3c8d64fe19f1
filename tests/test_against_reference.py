"""The engine against an independent reading of the rules, decision by decision.

`reference.py` is slow plain Python written from the rulebook and docs/rules.md alone. Both play the
same games with the engine's dice: at every roll and decision phase, player, dice, legal set and
state must agree, and in the end the result.
"""

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from reference import ReferenceGame

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.rules import DESTINATIONS, FIRST_PLACE, PHASE_NAMES, Rules
from carolus_env.records import result_of, state_of

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"max_rounds": None},
    {"paladins_per_clan": 3, "max_rounds": 15},
    {"paladins_per_clan": 6, "max_rounds": 25},
    {"paladins_per_clan": 9, "max_rounds": 30},
)


def choose(legal: list[int], random: np.random.Generator, court_lover: bool) -> int:
    """At random; a court-lover mostly to the own court, so that control and castles change."""
    courts = [a for a in legal if a >= FIRST_PLACE and (a - FIRST_PLACE) % DESTINATIONS == 0]
    if court_lover and courts and random.random() < 0.7:
        return int(random.choice(courts))
    return int(random.choice(legal))


def play_in_lockstep(rules: Rules, seed: int, seen: Counter[str]) -> None:
    game = engine.new_games(rules, 1, seed=seed, roll=False)
    territories = game["region_paladins"][0, :, :15].argmax(axis=0).tolist()
    reference = ReferenceGame(rules.to_dict(), territories, int(game["order"][0, 0]))
    random = np.random.default_rng(seed)
    while not engine.is_over(game)[0]:
        phase = PHASE_NAMES[game["phase"][0]]
        assert (phase, game["player"][0]) == (reference.phase, reference.player)
        state, legal = state_of(game), engine.legal_actions(game).tolist()
        assert (state, legal) == (reference.state(), reference.legal())
        assert result_of(game) is None and reference.result is None
        if phase == "roll":
            assert game["dice_due"][0] == reference.dice_due
            faces = chance.draw_faces(game)
            chance.apply_roll(game, faces)
            reference.roll(faces[0].tolist())
            continue
        action = choose(legal, random, court_lover=seed % 2 == 0)
        engine.step(game, np.array([action]), roll=False)
        reference.play(action)

        now, control = reference.state(), state["control"]
        courts = [sum(map(sum, one["courts"])) for one in (state, now)]
        lost = [was not in (-1, holds) for was, holds in zip(control, now["control"], strict=True)]
        seen["decisions"] += 1
        seen["merged"] += len(now["regions"]) < len(state["regions"])
        seen["crown that not every clan can take"] += phase == "crown" and len(legal) < 5
        seen["courts return"] += phase == "crown" and courts[1] < courts[0]
        seen["number played twice"] += phase == "disc" and action + 1 in state["discs_played"]
        seen["control changed hands"] += any(lost)
    assert reference.phase == "over"
    assert state_of(game) == reference.state()
    result = result_of(game)
    assert result is not None and result == reference.result
    seen[result["reason"]] += 1


@pytest.mark.parametrize("players", [2, 3, 4])
def test_engine_and_reference_play_the_same_games(players: int) -> None:
    partners = ("opposite", "adjacent") if players == 4 else ("opposite",)
    seen: Counter[str] = Counter()
    games = list(product(partners, ("on_roll", "deferred"), OPTIONS)) * (1 if players == 4 else 2)
    for seed, (sides, crowns, options) in enumerate(games):
        rules = Rules(players=players, partners=sides, crown_choice=crowns, **options)
        try:
            play_in_lockstep(rules, seed, seen)
        except (AssertionError, ValueError) as error:
            error.add_note(f"game with seed {seed} and {rules}")
            raise
    # A comparison proves something only where the rare events happen.
    rare = ("merged", "courts return", "control changed hands", "castles", "max_rounds")
    for event in (*rare, "crown that not every clan can take", "number played twice"):
        assert seen[event] > 0, seen
    assert seen["decisions"] > 1000, seen
