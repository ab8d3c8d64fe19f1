"""What the tests of networks, bots and learners share: small random models, positions to try."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from positions import after
from strategies import history

from carolus_env import bots, engine
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import MOVE, OVER, PLACE, Rules
from carolus_env.engine.state import States
from carolus_env.networks import network
from carolus_env.networks.inputs import InputArrays, Inputs, encode, keep_inputs, layout
from carolus_env.networks.network import LEAK, LINEAR, SUREST, NetworkModel, Size, random_weights
from carolus_env.planning.heuristic import FEATURES
from carolus_env.planning.plans import actions_of, best_plans, plan_of
from carolus_env.system.arrays import allocate
from carolus_env.system.compiler import entry


@cache
def random_model(
    players: int, policy: bool = False, seed: int = 1, width: int = 24, hidden: int = 8
) -> NetworkModel:
    """Return a model with opinions: all its weights are random, and its values differ."""
    size, random = Size(players, width, hidden, policy), np.random.default_rng(seed)
    weights = random_weights(size, seed)
    for array in weights.values():
        array += random.normal(0, 0.2, array.shape).astype(np.float32)
    weights["sharpness"][:] = 1.5
    return NetworkModel(size, weights, {"seed": seed})


def positions(rules: Rules, seed: int = 5, most: int = 400) -> States:
    """Return positions of random games, rolls that are due included, none of them over."""
    states = history(rules, seed=seed, games=6).ravel()
    states = states[states["phase"] != OVER]
    chosen = np.random.default_rng(seed).permutation(len(states))[:most]
    return states[np.sort(chosen)].copy()


@cache
def _good_positions(players: int) -> States:
    states, streams = engine.new_games(Rules(players), 60, seed=2), new_streams(2, 60)
    planner, saved = bots.make("planner"), []
    for step in range(400):
        going = ~engine.is_over(states)
        if not going.any():
            break
        states, streams = states[going].copy(), streams[going].copy()
        if step % 11 == 5:
            saved.append(states[step % 7 :: 9].copy())
        engine.step(states, planner.act(states, streams))
    return np.concatenate(saved)


def good_positions(players: int) -> States:
    """Return decisions of every kind between good players, some of them near the end."""
    return _good_positions(players).copy()


def asked(bot: Any, state: Any, selector: Any) -> tuple[int, int]:
    """Let a kind of bot choose in one game; return how many candidates it compared, and its plan.

    The candidates and their values are in the selector then.
    """
    choices, streams = np.zeros((2, 1), np.int64), np.zeros(1, np.uint64)
    selector.candidates.plans[:] = 0
    bot.entries.act(state.reshape(1), streams, choices, 0, 1, int(state["players"]), selector)
    [action], [rest] = choices.tolist()
    return np.count_nonzero(selector.candidates.plans), plan_of([action, *actions_of(rest)])


def plain_choices(state: Any, candidates: int, plans: str = "stop") -> list[Any]:
    """Return each choice as its actions, and the position after it, before the dice."""
    if state["phase"] in (PLACE, MOVE):
        listed = best_plans(state, candidates, plans)
    else:
        listed = [[int(action)] for action in engine.legal_actions(state)]
    return [(actions, after(state, actions)) for actions in listed]


def plain_values(weights: dict[str, Any], states: States) -> Any:
    """Return each team's win probability by NumPy, ``(N, teams)``; by the rules at the end."""
    result = []
    for state in states:
        game, team = state.reshape(1), int(state["team"][state["player"]])
        if state["phase"] == OVER:
            won, teams = engine.win_shares(game)[0], state["team"][: state["players"]]
            result.append([won[teams == t].sum() for t in range(state["teams"])])
        else:
            result.append(np.roll(role_values(weights, encode_all(game), 0), team))
    return np.array(result)


def encode_all(states: States) -> InputArrays:
    """Encode games that are not over, of one number of players; there is no row where it is -1."""
    players = int(states["players"][0])
    result = InputArrays.new(len(states), players)
    result.rows[:] = -1
    _encode_all(states, layout(players), allocate(Inputs), result)
    return result


@entry
def _encode_all(states: Any, layout: Any, inputs: Any, kept: Any) -> None:
    for g in range(states.shape[0]):
        encode(states[g], layout, inputs)
        keep_inputs(states[g], inputs, kept, g)


def plain_scores(weights: dict[str, Any], rows: npt.NDArray[Any], features: Any, stage: int) -> Any:
    """Return the scores of one position, by arrays of NumPy or tensors of PyTorch alike."""

    def leaky(x: Any) -> Any:
        return (x > 0) * x + (x <= 0) * float(LEAK) * x

    out, hidden = weights["out"][stage], weights["hidden"][stage]
    sums = weights["rows"][rows].sum(0) + features @ weights["features"] + weights["bias"]
    second = leaky(leaky(sums[:-LINEAR]) @ hidden + weights["hidden_bias"][stage])
    units = len(second)
    return out[:, :units] @ second + out[:, units:] @ sums[-LINEAR:] + weights["out_bias"][stage]


def scores_of(weights: dict[str, Any], inputs: InputArrays, i: int) -> Any:
    """Return the scores of position ``i``."""
    rows = inputs.rows[i, : inputs.lengths[i]]
    return plain_scores(weights, rows, inputs.features[i], inputs.stages[i])


def role_values(weights: dict[str, Any], inputs: InputArrays, i: int) -> Any:
    """Return each team role's win probability in position ``i``."""
    scores = scores_of(weights, inputs, i)[: inputs.features.shape[1] // len(FEATURES)]
    odds = np.exp(scores - scores.max())
    return odds / odds.sum()


def log_odds(value: float) -> float:
    """Return the log odds that a policy's logits begin from."""
    bounded = min(max(value, 1 - SUREST), SUREST)
    return float(np.log(bounded / (1 - bounded)))


def slope(loss: Any, arrays: dict[str, npt.NDArray[Any]], name: str, at: tuple[int, ...]) -> float:
    """Return the derivative of ``loss(arrays)`` with respect to one number, by differences."""
    ends = []
    for change in (1e-5, -1e-5):
        moved = {**arrays, name: arrays[name].copy()}
        moved[name][at] += change
        ends.append(float(loss(moved)))
    return (ends[0] - ends[1]) / 2e-5


@entry
def evaluate_position(states: Any, net: Any, by_updates: Any) -> None:
    """Evaluate one position with the kernels, anew or from the position before it."""
    if not by_updates:
        network.reset_accumulator(net)
    network.evaluate(states[0], net)
