"""Exact values of a late position through the adapter, and what only OpenSpiel itself can show."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_in import LATE, PLACING
from test_openspiel import OPTIONS, load, needs_openspiel, some_state

from carolus_env import engine
from carolus_env.engine import chance, rules
from carolus_env.engine.state import from_bytes


def exact_value(game: Any, known: dict[bytes, Any]) -> Any:
    """The payoffs under best play of a game ``(1,)``, by the engine's explicit chance alone."""
    key = game.tobytes()
    if key in known:
        return known[key]
    if engine.is_over(game)[0]:
        result = engine.returns(game)[0]
    elif chance.roll_due(game)[0]:
        outcomes, likelihood = chance.chance_outcomes(game["dice_due"][0]), dict[bytes, float]()
        for faces, probability in zip(outcomes.faces, outcomes.probabilities, strict=True):
            after = game.copy()
            chance.apply_roll(after, faces)
            data = after.tobytes()
            likelihood[data] = likelihood.get(data, 0.0) + probability
        result = sum(p * exact_value(from_bytes(data), known) for data, p in likelihood.items())
    else:
        player, result = int(game["player"][0]), np.full(2, -2.0)
        for action in engine.legal_actions(game):
            after = game.copy()
            engine.step(after, np.array([action]), roll=False)
            result = max(result, exact_value(after, known), key=lambda payoffs: payoffs[player])
    known[key] = result
    return result


def test_a_late_position_is_worth_what_its_note_says():
    """And through the adapter's chance nodes and actions it is the same tree."""
    known: dict[bytes, Any] = {}
    state = load(position=PLACING).new_initial_state()
    assert exact_value(state.states, known) == pytest.approx([-1, 1])
    before = {
        key: values for key, values in known.items() if from_bytes(key)["phase"] != rules.OVER
    }
    assert len(before) > 100
    for data in list(before)[::7]:
        at = state.get_game().state_of(from_bytes(data)[0])
        children = []
        for action in at.legal_actions():
            child = at.clone()
            child.apply_action(action)
            children.append(known[child.states.tobytes()])
        if at.is_chance_node():
            chances = [probability for _, probability in at.chance_outcomes()]
            wanted = np.average(children, axis=0, weights=chances)
        else:
            player = at.current_player()
            wanted = max(children, key=lambda payoffs: payoffs[player])
        assert known[data] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.slow
def test_the_whole_late_position_is_worth_25_of_27():
    result = exact_value(load(position=LATE).new_initial_state().states, {})
    assert result == pytest.approx([-25 / 27, 25 / 27], abs=1e-12)


@needs_openspiel
@pytest.mark.parametrize("options", [*OPTIONS, {"position": LATE.replace("=", ":")}])
def test_openspiels_own_check_of_a_game_finds_nothing(options):
    import pyspiel

    given = ",".join(f"{name}={value}" for name, value in options.items())
    game = pyspiel.load_game(f"carolus_magnus({given})")
    assert game.rules == load(**options).rules
    pyspiel.random_sim_test(game, num_sims=1, serialize=True, verbose=False)


@needs_openspiel
def test_a_serialised_state_goes_on_as_it_was():
    import pyspiel

    for moves in (5, 50):
        state = some_state(load(players=3), moves)
        game, again = pyspiel.deserialize_game_and_state(
            pyspiel.serialize_game_and_state(state.get_game(), state)
        )
        assert (str(game), str(again)) == (str(state.get_game()), str(state))
        assert again.history() == state.history()
        assert again.legal_actions() == state.legal_actions()
        assert again.states.tobytes() == state.states.tobytes() if moves == 50 else True


@needs_openspiel
def test_another_process_gets_the_game_and_the_state_without_registering_it(tmp_path):
    for moves in (3, 50):
        state = some_state(load(players=3, max_rounds=9), moves)
        (tmp_path / "both").write_bytes(pickle.dumps((state.get_game(), state)))
        read = "import pickle; game, state = pickle.load(open('both', 'rb'))"
        show = "print(game, game.rules.max_rounds); print(state); print(state.history())"
        done = subprocess.run(
            [sys.executable, "-c", f"{read}; {show}; print(game.new_initial_state())"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        )
        wanted = f"{state.get_game()} 9", str(state), str(state.history()), "set-up |"
        assert tuple(done.stdout.splitlines()) == wanted


def test_without_openspiel_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    monkeypatch.delitem(sys.modules, "carolus_env.integrations.openspiel", raising=False)
    with pytest.raises(ImportError, match=r"needs OpenSpiel .*: pip install open_spiel==2\.0\.2"):
        import carolus_env.integrations.openspiel  # noqa: F401
