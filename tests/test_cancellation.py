"""Work is stopped: soon, wherever it is, and without a trace in what is decided otherwise."""

import threading
from typing import Any

import numpy as np
import pytest
from test_bots import middle_games

from carolus_env import bots, engine
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import PLACE, Rules
from carolus_env.engine.state import States
from carolus_env.evaluation import rollouts
from carolus_env.system import cancellation
from carolus_env.system.cancellation import Stop, Stopped

ENDLESS = ("mcts:sims=10000000", "search:sims=10000000", "mcts:seconds=3600", "search:seconds=3600")


class StopAt(Stop):
    """Is set when it is polled for the so-manieth time: sooner or later, without a clock."""

    def __init__(self, polls: int) -> None:
        super().__init__()
        self.polls = iter(range(polls - 1))

    def check(self) -> None:
        if next(self.polls, None) is None:
            self.set()
        super().check()


def turns(players: int) -> States:
    """Positions at the beginning of a turn."""
    states = middle_games(Rules(players), 60)
    full = states["placements_left"] == Rules(players).dice
    return states[(states["phase"] == PLACE) & full].copy()


def ask(agent: bots.Agent, states: States) -> Any:
    return agent.act(states, new_streams(1, len(states)))


@pytest.mark.parametrize("polls", [1, 3])
@pytest.mark.parametrize("spec", ENDLESS)
def test_a_decision_without_end_is_stopped(spec, polls):
    with pytest.raises(Stopped), StopAt(polls).watched():
        ask(bots.make(spec), turns(2)[:1])


@pytest.mark.parametrize("spec", ["greedy", "planner", "value", "ppo", "mcts:sims=5"])
def test_work_for_many_games_is_stopped_between_them(spec):
    agent, stop = bots.make(spec), Stop()
    states = np.tile(turns(2), 4)
    asked = ask(agent, states)
    stop.set()
    with pytest.raises(Stopped), stop.watched():
        ask(agent, states)
    with pytest.raises(Stopped), stop.watched():
        bots.opinion(agent, states)
    assert (ask(agent, states) == asked).all(), "what was stopped leaves nothing behind"


@pytest.mark.parametrize(
    "spec",
    ["random", "greedy:errors=0.5", "planner", "value", "ppo", "mcts:sims=20", "search:sims=9"],
)
def test_who_may_be_stopped_decides_the_same(spec):
    states = middle_games(Rules(3), 30)[::7].copy()
    streams, same = new_streams(5, len(states)), new_streams(5, len(states))
    actions = bots.make(spec).act(states, streams)
    opinion = bots.opinion(bots.make(spec), states)
    with Stop().watched():
        again = bots.make(spec).act(states, same)
        other = bots.opinion(bots.make(spec), states)
    assert (actions == again).all() and (streams == same).all()
    for ours, theirs in zip(opinion, other, strict=True):
        assert (ours is None and theirs is None) or np.array_equal(ours, theirs)


def test_agents_that_play_on_do_the_same_in_portions_and_are_stopped():
    games = engine.new_games(Rules(2), 21, seed=3)
    seating = np.zeros((21, 2), np.int64)
    for spec in ("planner", "value:discs=now"):
        agent = bots.make(spec)
        assert isinstance(agent, bots.CompiledAgent)
        ends = []
        for stop in (cancellation.current(), Stop()):
            played, streams = games.copy(), new_streams(4, 42).reshape(21, 2)
            with stop.watched():
                decisions = agent.play_on(played, streams, seating, 0)
            ends.append((played.tobytes(), streams.tobytes(), decisions))
        assert ends[0] == ends[1] and decisions > 21
        stop.set()
        with pytest.raises(Stopped), stop.watched():
            agent.play_on(games.copy(), new_streams(4, 42).reshape(21, 2), seating, 0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_rollout_is_stopped_in_all_its_threads(threads):
    options = rollouts.Options(base="planner", games=1_000_000, error=1e-9, threads=threads)
    before = threading.active_count()
    with pytest.raises(Stopped), StopAt(20).watched():
        rollouts.roll_out(turns(2)[0], options=options)
    assert threading.active_count() <= before + threads


def test_a_stop_is_for_the_work_that_watches_it():
    outer, inner = Stop(), Stop()
    outer.set()
    with outer.watched():
        with inner.watched():
            assert cancellation.current() is inner
            assert [part.start for part in cancellation.portions(100)][:3] == [0, 1, 3], "they grow"
            rows = [row for part in cancellation.portions(9) for row in range(9)[part]]
            assert rows == [*range(9)]
        with pytest.raises(Stopped):
            cancellation.current().check()
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cancellation.current().is_set()))
        thread.start()
        thread.join()
        assert seen == [False], "another thread watches nothing"
    assert list(cancellation.portions(10)) == [slice(0, 10)]
    assert list(cancellation.portions(0)) == []
    assert not cancellation.current().is_set()
