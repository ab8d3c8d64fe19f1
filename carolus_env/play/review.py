"""A look back at a game: what changed the odds most, and the best and worst decisions.

All values are those of the package's value network (docs/value.md), after the best next choice. It
judges a position in less than a millisecond, so a whole game takes a second.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.planner.plans import best_plans
from carolus_env.bots.value.ahead import disc_values, values_ahead
from carolus_env.bots.value.inference import ValueWeights
from carolus_env.bots.value.model import ValueModel
from carolus_env.engine.rules import (
    CLAN_NAMES,
    CROWN_CHOICE,
    DISC,
    MOVE,
    PLACE,
    ROLL,
    action_parts,
    disc_action,
)
from carolus_env.engine.state import States, pick, single
from carolus_env.play.library import Replay
from carolus_env.play.words import action_label

AGENT: Final = "value"
"""Whose values they are."""
SWINGS: Final = 3
PLANS: Final = 64
"""Turns with which a turn is compared, the planner's best ones."""
CLOSE: Final = 0.01
"""A decision that gives away less of the win is as good as the best."""
LARGE: Final = 0.02
"""Shares of the win: smaller swings, losses and leads are not told."""

_KINDS: Final = {
    ROLL: "roll", CROWN_CHOICE: "crown", DISC: "disc", PLACE: "turn", MOVE: "turn"
}  # fmt: skip

Floats = npt.NDArray[np.float64]


class Stretch(NamedTuple):
    """Events that one seat goes through in a row: a disc, or crowns, or a turn with its dice.

    Attributes:
        first, end: indices of its first event, and of the one after its last.
        seat: the player's.
        actions: its decisions, in order.
    """

    first: int
    end: int
    seat: int
    actions: tuple[int, ...]


class Swing(NamedTuple):
    """A stretch that changed the odds.

    Attributes:
        position: after its last decision that is no crown's, where there is one.
        seat, round: whose and when.
        text: that decision, in words that follow the player's name.
        dice: whether the seat rolled after it.
        team: the team that it changed most for.
        before, after: that team's expected share of the win.
    """

    position: int
    seat: int
    round: int
    text: str
    dice: bool
    team: int
    before: float
    after: float


class Judged(NamedTuple):
    """A decision against its alternatives: a disc, a crown, or all that is left of a turn.

    Attributes:
        position: before it.
        seat, round: whose and when.
        text: what was done, in words.
        value: the expected share of the win of the seat's team after it.
        better: what was worth most, in words; None: nothing was worth more.
        loss: how much less of the win it was worth than that.
        lead: how much more than the best choice that does something else: with another disc, with
            another clan for the crown, or with another stop of the Emperor; 0 where there is none.
    """

    position: int
    seat: int
    round: int
    text: str
    value: float
    better: str | None
    loss: float
    lead: float


@dataclass(frozen=True)
class Review:
    """A look back.

    Attributes:
        agent: whose values they are.
        values: ``(decisions + 1, teams)``, shares of the win at every decision and at the end.
        swings: the largest, in the order of the game.
        best, worst: of each seat that was asked about and has any.
    """

    agent: str
    values: Floats
    swings: list[Swing]
    best: list[Judged]
    worst: list[Judged]


def review(replay: Replay, seats: Sequence[int]) -> Review:
    """Look back at a game.

    Args:
        replay: the game; it need not be over.
        seats: whose decisions are judged.
    """
    weights = ValueWeights.of(ValueModel.shipped(replay.rules.players).weights)

    def value(states: States) -> Floats:
        return values_ahead(states, weights)

    positions = [*replay.decisions, replay.events]
    values = value(replay.states[positions])
    stretches = _stretches(replay)
    at = dict(zip(positions, values, strict=True))
    swings = [swing for one in stretches if (swing := _swing(replay, one, at)) is not None]
    largest = sorted(swings, key=lambda one: -abs(one.after - one.before))[:SWINGS]
    best, worst = [], []
    for seat in seats:
        judged = [_judged(replay, one, weights, value) for one in stretches if one.seat == seat]
        good = [one for one in judged if one.loss < CLOSE and one.lead >= LARGE]
        bad = [one for one in judged if one.loss >= LARGE]
        best += sorted(good, key=lambda one: -one.lead)[:1]
        worst += sorted(bad, key=lambda one: -one.loss)[:1]
    return Review(AGENT, values, sorted(largest, key=lambda one: one.position), best, worst)


def _stretches(replay: Replay) -> list[Stretch]:
    """Those with a decision."""
    found: list[Stretch] = []
    first, events = 0, replay.record["events"]
    phases = replay.states["phase"]
    for index, event in enumerate(events):
        after = index + 1
        ends = (
            after == len(events)
            or events[after]["player"] != event["player"]
            or phases[after] == DISC
            or phases[index] == DISC
        )
        if ends:
            actions = tuple(one["action"] for one in events[first:after] if "action" in one)
            if actions:
                found.append(Stretch(first, after, event["player"], actions))
            first = after
    return found


def _swing(replay: Replay, one: Stretch, at: dict[int, Floats]) -> Swing | None:
    """The change from the first decision of a stretch to the next decision of the game."""
    first = next(k for k in replay.decisions if k >= one.first)
    after = min(k for k in at if k >= one.end)
    change = at[after] - at[first]
    team = int(np.abs(change).argmax())
    if abs(change[team]) < LARGE:
        return None
    decisions = [k for k in replay.decisions if one.first <= k < one.end]
    decision = max(decisions, key=lambda k: (replay.states["phase"][k] != CROWN_CHOICE, k))
    line = replay.log[decision]
    return Swing(
        decision + 1,
        one.seat,
        line.round,
        line.words,
        any("roll" in event for event in replay.record["events"][decision : one.end]),
        team,
        float(at[first][team]),
        float(at[after][team]),
    )


# ------------------------------------------------------------------------------------ judging


def _judged(
    replay: Replay, one: Stretch, weights: ValueWeights, value: Callable[[States], Floats]
) -> Judged:
    """The weightiest decision of a stretch, which may hold several crowns."""
    found = []
    for phase, group in itertools.groupby(
        range(one.first, one.end), lambda k: _KINDS[int(replay.states["phase"][k])]
    ):
        events = list(group)
        if phase == "turn":
            found.append(_decision(replay, events[0], len(events), weights, value))
        elif phase != "roll":
            found += [_decision(replay, index, 1, weights, value) for index in events]
    return max(found, key=lambda decision: max(decision.loss, decision.lead))


def _decision(
    replay: Replay,
    index: int,
    length: int,
    weights: ValueWeights,
    value: Callable[[States], Floats],
) -> Judged:
    state, seat = replay.states[index], int(replay.states["player"][index])
    team = replay.rules.team(seat)
    events = replay.record["events"][index : index + length]
    actions = tuple(event["action"] for event in events)
    choices: list[tuple[int, ...]]
    if state["phase"] == DISC:
        each = disc_values(single(state), weights)[0, :, team]
        choices = [(disc_action(k + 1),) for k in np.flatnonzero(~np.isnan(each)).tolist()]
        worth = each[~np.isnan(each)]
    else:
        choices = _choices(state, actions)
        worth = value(_after(state, choices))[:, team]
    own = choices.index(actions)
    best = int(worth.argmax())
    kinds = np.array([choice[-1] for choice in choices])
    others = worth[kinds != actions[-1]]
    loss = float(worth[best] - worth[own])
    return Judged(
        index,
        seat,
        int(state["round"]),
        choice_words(state, actions),
        float(worth[own]),
        choice_words(state, choices[best]) if loss > 0 else None,
        loss,
        float(worth[own] - others.max()) if len(others) else 0.0,
    )


def _choices(state: np.void, actions: tuple[int, ...]) -> list[tuple[int, ...]]:
    """What could have been done instead, with ``actions`` among it."""
    if state["phase"] == CROWN_CHOICE:
        return [(int(action),) for action in engine.legal_actions(state)]
    plans = [tuple(plan) for plan in best_plans(state, PLANS, "one")]
    if action_parts(actions[-1]).kind == "move":
        before = single(state).copy()
        for action in actions[:-1]:
            engine.step(before, np.array([action]), roll=False)
        stops = engine.legal_actions(before[0])
        plans += [(*actions[:-1], int(stop)) for stop in stops]
    return list(dict.fromkeys([*plans, actions]))


def _after(state: np.void, choices: Sequence[tuple[int, ...]]) -> States:
    """The position after each choice, before any dice: ``(K,)``."""
    states = pick(single(state), np.zeros(len(choices), np.int64))
    for step in range(max(map(len, choices))):
        rows = np.array([row for row, choice in enumerate(choices) if len(choice) > step])
        actions = np.array([choices[row][step] for row in rows])
        engine.step(states, actions, rows=rows, roll=False)
    return states


def choice_words(state: np.void, actions: Sequence[int]) -> str:
    """Decisions in a row in words: ``red to court, blue to 7-9, the Emperor 2 steps to 4``."""
    game, words = single(state).copy(), []
    for action in actions:
        kind, _, clan, _ = action_parts(action)
        label = action_label(game[0], action)
        start = {"place": f"{CLAN_NAMES[clan]} to ", "move": "the Emperor "}.get(kind, "")
        words.append(start + label + (" for the crown" if kind == "crown" else ""))
        engine.step(game, np.array([action]), roll=False)
    return ", ".join(words)
