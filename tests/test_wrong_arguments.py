"""Every public entry point, called with wrong values: the error is ours and names the argument.

Ours means: raised in the package, on purpose. An error that Python or NumPy raises in the middle of
our code speaks of something else than what the caller gave.
"""

# ruff: noqa: E501 (a table)

import inspect
import linecache
import math
import re
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import carolus_env as ce
from carolus_env import bots, carolus_magnus_v0, evaluation
from carolus_env.bots.network import Models, values_ahead
from carolus_env.commands.train import read_job
from carolus_env.drawing import board_svg, show
from carolus_env.engine import chance
from carolus_env.engine.chance import random_bits
from carolus_env.engine.rules import PLACE
from carolus_env.envs import aec, gym, sb3
from carolus_env.evaluation import rollouts, suite
from carolus_env.evaluation.rollouts import value_function
from carolus_env.learners import config_of, learner
from carolus_env.networks import network
from carolus_env.planning import heuristic
from carolus_env.planning.plans import MOST_PLANS, best_plans
from carolus_env.records import make_record
from carolus_env.system import untrusted
from carolus_env.system.options import UserError

PACKAGE = Path(ce.__file__).parent
WRONG: tuple[Any, ...] = (
    None, 0, -1, 1.5, math.nan, 2**70, "x", b"x", [], [[1, 2], [3]], {"a": 1}, object(), int, bots.RandomBot,
)  # fmt: skip


ALSO = {
    "opponents": ["agent"],
    "spec": ["agent", "value function"],
    "agents": ["agent"],
    "action": ["move"],
    "rows": ["shape"],
    "base": ["spec", "agent"],
    "choices": ["action"],
}
"""Other words by which a message may name an argument."""


def games(**options: Any) -> Any:
    return ce.new_games(ce.Rules(), 2, seed=1, **options)


def a_turn() -> Any:
    state = games()
    while state["phase"][0] != PLACE:
        ce.step(state, ce.legal_masks(state).argmax(axis=1))
    return state[0]


def arena_args() -> dict[str, Any]:
    pair = [bots.make("random"), bots.make("random")]
    return {"tables": [[0, 1]], "agents": pair, "rules": ce.Rules(), "seed": 1}


def started(env: Any) -> Any:
    env.reset() if isinstance(env, sb3.CarolusVecEnv) else env.reset(seed=1)
    return env


# A function that makes the callable anew, and arguments that work.
CALLS: dict[str, tuple[Callable[[], Callable[..., Any]], Callable[[], dict[str, Any]]]] = {
    "Rules": (lambda: ce.Rules, lambda: {"players": 2, "paladins_per_clan": 40, "max_rounds": 9}),
    "new_games": (lambda: ce.new_games, lambda: {"rules": ce.Rules(), "n": 2, "seed": 1, "first_player": 0}),
    "new_streams": (lambda: ce.new_streams, lambda: {"seed": 1, "n": 2}),
    "are_legal": (lambda: ce.engine.are_legal, lambda: {"states": games(), "actions": [0, 0], "rows": [0, 1]}),
    "forfeit": (lambda: ce.engine.forfeit, lambda: {"states": games(), "rows": [0]}),
    "strengths": (lambda: ce.engine.strengths, lambda: {"state": games()[0]}),
    "roll_dealt": (lambda: partial(chance.roll_dealt, rows=np.array([0])), lambda: {"states": games(roll=False), "dice": ce.new_streams(1, 8).reshape(2, 4)}),
    "best_plans": (lambda: best_plans, lambda: {"state": a_turn(), "most": 3, "width": "stop"}),
    "values_ahead": (lambda: partial(values_ahead, weights=Models("value", None).weights("", 2)), lambda: {"states": games(), "candidates": 3}),
    "features": (lambda: heuristic.features, lambda: {"states": games()}),
    "chances": (lambda: heuristic.chances, lambda: {"states": games(), "weights": None}),
    "PlannerBot": (lambda: bots.PlannerBot, lambda: {"weights": None}),
    "step": (lambda: ce.step, lambda: {"states": games(), "actions": [0, 0], "rows": [0, 1]}),
    "legal_masks": (lambda: ce.legal_masks, lambda: {"states": games(), "rows": [0], "out": np.zeros((1, 95), np.int8)}),
    "legal_actions": (lambda: ce.legal_actions, lambda: {"state": games()[0]}),
    "random_actions": (lambda: ce.random_actions, lambda: {"states": games(), "generators": ce.new_streams(1, 2), "rows": [0]}),
    "observe": (lambda: ce.observe, lambda: {"states": games(), "viewers": [0, 1], "dtype": "uint8"}),
    "playout": (lambda: ce.playout, lambda: {"states": games(), "generators": ce.new_streams(1, 2), "repeats": 1, "most_decisions": 9, "threads": 1}),
    "returns": (lambda: ce.returns, lambda: {"states": games()}),
    "roll_due": (lambda: ce.roll_due, lambda: {"states": games()}),
    "is_over": (lambda: ce.is_over, lambda: {"states": games()}),
    "copy": (lambda: ce.copy, lambda: {"states": games()}),
    "pick": (lambda: ce.pick, lambda: {"states": games(), "rows": [0]}),
    "rules_of": (lambda: ce.rules_of, lambda: {"state": games()[0]}),
    "to_bytes": (lambda: ce.to_bytes, lambda: {"states": games()}),
    "from_bytes": (lambda: ce.from_bytes, lambda: {"data": ce.to_bytes(games())}),
    "chance_outcomes": (lambda: ce.chance_outcomes, lambda: {"dice": 3}),
    "roll": (lambda: ce.roll, lambda: {"states": games()}),
    "draw_faces": (lambda: ce.draw_faces, lambda: {"states": games(roll=False), "rows": [0]}),
    "apply_roll": (lambda: ce.apply_roll, lambda: {"states": games(roll=False), "faces": [[0, 0, 0]], "rows": [0]}),
    "action_text": (lambda: ce.action_text, lambda: {"action": 3}),
    "make": (lambda: ce.make, lambda: {"spec": "random"}),
    "Game": (lambda: ce.Game, lambda: {"rules": ce.Rules(), "seed": 1, "observe": "uint8"}),
    "Game.play": (lambda: ce.Game(ce.Rules(), seed=1).play, lambda: {"action": 0}),
    "GameBatch": (lambda: ce.GameBatch, lambda: {"rules": ce.Rules(), "n": 2, "seed": 1, "observation": "uint8", "threads": 1}),
    "GameBatch.reset": (lambda: ce.GameBatch(ce.Rules(), 2, seed=1).reset, lambda: {"seed": 1}),
    "GameBatch.step": (lambda: ce.GameBatch(ce.Rules(), 2, seed=1).step, lambda: {"actions": [0, 0]}),
    "GameBatch.rollout": (lambda: ce.GameBatch(ce.Rules(), 2, seed=1).rollout, lambda: {"decisions": 1}),
    "aec.env": (lambda: aec.env, lambda: {"players": 2, "illegal": "raise", "observation": "uint8", "render_mode": "ansi", "max_rounds": 9}),
    "aec.reset": (lambda: aec.env().reset, lambda: {"seed": 1, "options": {}}),
    "aec.step": (lambda: started(aec.env()).step, lambda: {"action": 0}),
    "aec.observe": (lambda: started(aec.env()).observe, lambda: {"agent": "player_0"}),
    "aec.action_space": (lambda: started(aec.env()).action_space, lambda: {"agent": "player_0"}),
    "aec.observation_space": (lambda: started(aec.env()).observation_space, lambda: {"agent": "player_0"}),
    "parallel": (lambda: aec.CarolusParallelEnv, lambda: {"players": 2}),
    "parallel.reset": (lambda: aec.CarolusParallelEnv().reset, lambda: {"seed": 1, "options": {}}),
    "parallel.step": (lambda: started(aec.CarolusParallelEnv()).step, lambda: {"actions": {"player_0": 0, "player_1": 0}}),
    "CarolusEnv": (lambda: gym.CarolusEnv, lambda: {"players": 2, "opponents": "random", "seat": 0, "illegal": "raise", "masks": "info", "observation": "uint8", "render_mode": "ansi"}),
    "CarolusEnv.reset": (lambda: gym.CarolusEnv().reset, lambda: {"seed": 1, "options": {}}),
    "CarolusEnv.step": (lambda: started(gym.CarolusEnv()).step, lambda: {"action": 0}),
    "CarolusVectorEnv": (lambda: gym.CarolusVectorEnv, lambda: {"num_envs": 2, "players": 2, "opponents": "random", "seat": 0, "illegal": "raise", "masks": "info", "observation": "uint8", "autoreset_mode": "NextStep", "render_mode": "ansi"}),
    "CarolusVectorEnv.reset": (lambda: gym.CarolusVectorEnv(2).reset, lambda: {"seed": 1, "options": {}}),
    "CarolusVectorEnv.step": (lambda: started(gym.CarolusVectorEnv(2)).step, lambda: {"actions": [0, 0]}),
    "CarolusVectorEnv, turns": (lambda: gym.CarolusVectorEnv, lambda: {"num_envs": 2, "opponents": "random", "turns": True, "candidates": 16, "plans": "stop"}),
    "CarolusVectorEnv.step, turns": (lambda: started(gym.CarolusVectorEnv(2, turns=True)).step, lambda: {"actions": [0, 0]}),
    "CarolusVecEnv": (lambda: sb3.CarolusVecEnv, lambda: {"rules": ce.Rules(), "n": 2, "opponents": "random", "seat": 0, "seed": 1, "dtype": "uint8", "render_mode": "rgb_array"}),
    "CarolusVecEnv.seed": (lambda: sb3.CarolusVecEnv(ce.Rules(), 2).seed, lambda: {"seed": 1}),
    "CarolusVecEnv.step": (lambda: started(sb3.CarolusVecEnv(ce.Rules(), 2, seed=1)).step, lambda: {"actions": np.array([0, 0])}),
    "CarolusVecEnv, turns": (lambda: sb3.CarolusVecEnv, lambda: {"rules": ce.Rules(), "n": 2, "opponents": "random", "turns": True, "candidates": 16, "plans": "stop"}),
    "play_games": (lambda: evaluation.play_games, arena_args),
    "play_pairing": (lambda: evaluation.play_pairing, lambda: {"agents": arena_args()["agents"], "rules": ce.Rules(), "games": 4, "seed": 1}),
    "make_record": (lambda: make_record, lambda: {"start": ce.new_games(ce.Rules(), 1, seed=1, roll=False), "actions": [0]}),
    "roll_out": (lambda: lambda **given: rollouts.roll_out(**given, options=rollouts.Options(base="random", games=2)), lambda: {"state": games()[:1], "choices": [[5]], "seed": 1}),
    "rollouts.Options": (lambda: lambda **given: rollouts.roll_out(games()[0], options=rollouts.Options(**{"base": "random", "games": 2} | given)), lambda: {"base": "random", "rounds": 1, "value": "planner", "games": 2, "error": 0.1, "threads": 1}),
    "candidates": (lambda: rollouts.candidates, lambda: {"state": games()[0], "most": 8}),
    "after": (lambda: rollouts.after, lambda: {"state": games()[0], "choices": []}),
    "Sampler": (lambda: lambda **given: rollouts.Sampler(**given).play(games(), np.arange(2)), lambda: {"base": "random", "seed": 1, "value": rollouts.value_function("planner", 2), "rounds": 1, "stratified": False, "threads": 1}),
    "Sampler.play": (lambda: rollouts.Sampler("random", 1).play, lambda: {"starts": games(), "numbers": [0, 1]}),
    "value_function": (lambda: rollouts.value_function, lambda: {"spec": "planner", "players": 2}),
    "Value": (lambda: rollouts.value_function("ppo", 3), lambda: {"states": ce.new_games(ce.Rules(3), 2, seed=1)}),
    "choose": (lambda: rollouts.choose, lambda: {"agent": bots.make("random"), "states": games(), "numbers": [0, 1], "seed": 1}),
    "shipped": (lambda: suite.shipped, lambda: {"players": 2}),
    "measure": (lambda: suite.measure, lambda: {"suite": suite.shipped(2), "agent": bots.make("random"), "half": "learn", "games": 2, "decisions": suite.shipped(2).half("learn")[:1]}),
    "measure_agents": (lambda: lambda agents: suite.measure_agents(agents, 2), lambda: {"agents": []}),
    "board_svg": (lambda: board_svg, lambda: {"state": games()[0]}),
}  # fmt: skip


def cases() -> Iterator[Any]:
    for label, (_, arguments) in CALLS.items():
        for name in arguments():
            yield pytest.param(label, name, id=f"{label}-{name}")


@pytest.mark.parametrize(("label", "name"), list(cases()))
def test_a_wrong_value_is_refused_by_an_error_that_names_the_argument(label, name, monkeypatch):
    make, arguments = CALLS[label]
    complaints = []
    for wrong in WRONG:
        given = arguments() | {name: wrong}
        call = make()
        try:
            with np.errstate(all="ignore"):
                call(**given)
        except Exception as error:
            if complaint := not_ours(error, name):
                complaints.append(f"{name}={wrong!r}: {complaint}")
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("most", [0, -1, MOST_PLANS + 1, 2**62])
def test_a_list_of_plans_has_room_for_one_and_no_more_than_there_can_be(most):
    """Its length is what a kernel writes to: of none it wrote before the memory."""
    with pytest.raises(ValueError, match=r"most must be a whole number from 1 to 4,096, got"):
        best_plans(a_turn(), most)
    for enough in (1, MOST_PLANS):
        assert len(best_plans(a_turn(), enough)) <= enough


@pytest.mark.parametrize("streams", ["strided", "read-only"])
def test_streams_that_no_kernel_can_advance_are_refused_by_us(streams):
    given = ce.new_streams(1, 4)[::2] if streams == "strided" else ce.new_streams(1, 2)
    given.flags.writeable = streams == "strided"
    for call in (ce.random_actions, ce.playout, bots.make("random").act):
        with pytest.raises(ValueError, match="generators must be a contiguous, writeable uint64"):
            call(games(), given)
    with pytest.raises(ValueError, match="generators must be a contiguous, writeable uint64"):
        random_bits(given)


def test_weights_that_a_kernel_would_read_past_are_refused():
    two = Models("value", None).weights("", 2)
    three = ce.new_games(ce.Rules(3), 2, seed=1)
    with pytest.raises(ValueError, match="weights must be of a network for 3 players"):
        network.values(three, two)
    for call in (heuristic.chances, lambda _, weights: bots.PlannerBot(weights=weights)):
        for shape in ((5, 3), (2, len(heuristic.FEATURES))):
            with pytest.raises(ValueError, match=r"weights must be float64 \(5, 20\), got"):
                call(three, np.zeros(shape))


def test_no_games_are_no_games():
    """An empty list of rows picks none, and what is asked of none has as many columns as of two."""
    states = games()
    before = states.tobytes()
    assert ce.legal_masks(states, rows=[]).shape == (0, 95)
    assert ce.random_actions(states, ce.new_streams(1, 2), rows=[]).shape == (0,)
    ce.step(states, [], rows=[])
    ce.engine.forfeit(states, rows=[])
    assert states.tobytes() == before
    for columns in (ce.returns, ce.engine.win_shares):
        assert columns(states[:0]).shape == (0, 2)


@pytest.mark.parametrize("row", [-1, 2, 2**40])
def test_dealt_dice_are_for_games_that_there_are(row):
    with pytest.raises(IndexError, match="rows must be from 0 to 1, got"):
        chance.roll_dealt(games(roll=False), ce.new_streams(1, 8).reshape(2, 4), np.array([row]))


def test_one_action_is_not_that_of_three_games():
    three, actions = ce.new_games(ce.Rules(), 3, seed=1), np.array([0])
    with pytest.raises(ValueError, match=r"actions must be one a game, shape \(3,\), got \(1,\)"):
        ce.engine.are_legal(three, actions)


def test_a_batch_of_one_has_the_strengths_of_its_game():
    one = games()[:1]
    for mine, other in zip(ce.engine.strengths(one), ce.engine.strengths(one[0]), strict=True):
        np.testing.assert_array_equal(mine, other)


def not_ours(error: Exception, name: str) -> str:
    """What is wrong with an error; empty when it is raised on purpose and names the argument."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    text = f"{type(error).__name__}: {error}"
    raised = any(
        linecache.getline(last.filename, line).strip().startswith("raise")
        for line in range(last.lineno or 0, (last.end_lineno or last.lineno or 0) + 1)
    )
    if not (Path(last.filename).is_relative_to(PACKAGE) and raised):
        return f"not raised by us ({where}): {text}"
    if not any(word in str(error) for word in (name.rstrip("s"), *ALSO.get(name, ()))):
        return f"does not name it ({where}): {text}"
    return ""


def test_the_walk_covers_what_the_package_exports():
    functions = {n for n in ce.__all__ if inspect.isroutine(getattr(ce, n))}
    assert functions <= CALLS.keys()


MISSPELT: dict[str, tuple[Callable[[], Any], str]] = {
    "agent": (lambda: ce.make("grady"), "'grady'; did you mean greedy?"),
    "agent with options": (lambda: ce.make("plannr:errors=0.1"), "'plannr'; did you mean planner?"),
    "option of a bot": (lambda: ce.make("search:sim=20"), "'sim'; did you mean sims?"),
    "model": (lambda: ce.make("value:2pp"), "unknown model '2pp'; did you mean 2p? Known are 2p, 3p, 4p"),
    "model, not near": (lambda: ce.make("decisions:nosuch"), "'nosuch'; known are 2p, 3p, 4p"),
    "value function": (lambda: value_function("vaule", 2), "'vaule'; did you mean value?"),
    "opponents": (lambda: gym.CarolusEnv(opponents="planer"), "'planer'; did you mean planner?"),
    "option of one game": (lambda: gymnasium.make(ONE, oponents="greedy"), "unknown option 'oponents'; did you mean opponents?"),
    "option of many games": (lambda: gymnasium.make_vec(ONE, num_envs=2, ilegal="raise"), "unknown option 'ilegal'; did you mean illegal?"),
    "option of turns": (lambda: gymnasium.make("CarolusMagnusTurns-v0", plan="one"), "unknown option 'plan'; did you mean plans?"),
    "option of PettingZoo": (lambda: carolus_magnus_v0.env(player=3), "unknown option 'player'; did you mean players?"),
    "rule": (lambda: ce.Rules.from_dict({"maxrounds": 9}), "'maxrounds'; did you mean max_rounds?"),
    "reset of PettingZoo": (lambda: carolus_magnus_v0.env().reset(options={"teritories": CLANS}), "'teritories'; did you mean territories?"),
    "reset of a parallel one": (lambda: carolus_magnus_v0.parallel_env().reset(options={"firstplayer": 0}), "'firstplayer'; did you mean first_player?"),
    "reset of many games": (lambda: gym.CarolusVectorEnv(2).reset(options={"resetmask": [True] * 2}), "'resetmask'; did you mean reset_mask?"),
    "learner": (lambda: learner("pppo"), "unknown learner 'pppo'; did you mean ppo?"),
    "option of a learner": (lambda: config_of({"learning_rat": 0.1}), "'learning_rat'; did you mean learning_rate or"),
    "option of a command": (lambda: read_job(["--minuts", "3"]), "'--minuts'; did you mean --minutes?"),
    "key of a record": (lambda: untrusted.only({"evnts": []}, ("events", "setup")), "'evnts'; did you mean events?"),
}  # fmt: skip
ONE = "carolus_env:CarolusMagnus-v0"
CLANS = [0, 1, 2, 3, 4] * 3


@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_name_brings_the_nearest(name):
    call, text = MISSPELT[name]
    with pytest.raises((ValueError, TypeError, UserError), match=re.escape(text)) as error:
        call()
    assert not re.search(r"Carolus\w*Env|raw_env|\n", str(error.value)), "what the user wrote"
    if name == "option of one game":
        assert not re.search("num_envs|autoreset_mode|copy", str(error.value))


UNSTARTED: dict[str, Callable[[], Any]] = {
    "aec": lambda **options: carolus_magnus_v0.env(**options).unwrapped,
    "parallel": carolus_magnus_v0.parallel_env,
    "one": gym.CarolusEnv,
    "one, turns": lambda **options: gym.CarolusEnv(turns=True, **options),
    "many": lambda **options: gym.CarolusVectorEnv(2, **options),
    "many, turns": lambda **options: gym.CarolusVectorEnv(2, turns=True, **options),
}


@pytest.mark.parametrize("mode", ["ansi", "rgb_array", "human"])
@pytest.mark.parametrize("kind", UNSTARTED)
def test_nothing_can_be_seen_of_a_game_that_has_not_started(kind, mode, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = UNSTARTED[kind](**({} if mode == "human" and "many" in kind else {"render_mode": mode}))
    calls = [lambda: env.step(0)]
    if "many" not in kind:
        calls.append(lambda: show(env))
    if env.render_mode:
        calls.append(env.render)
    if hasattr(env, "action_masks"):
        calls.append(env.action_masks)
    if hasattr(env, "state"):
        calls += [env.state]
    if kind == "aec":
        calls += [env.last, env.record, lambda: env.games, lambda: env.observe("player_0")]
    for call in calls:
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
            call()
    if mode == "rgb_array":
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
            sb3.CarolusVecEnv(ce.Rules(), 2, render_mode=mode).get_images()
