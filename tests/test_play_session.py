"""A game with people and agents: the record is the game, for saving, undoing and going on."""

from __future__ import annotations

import itertools
import json
import random
import re
from typing import Any

import numpy as np
import pytest

from carolus_env import bots, engine
from carolus_env.bots import Agent
from carolus_env.engine import IllegalActionError, chance
from carolus_env.engine.rules import (
    CROWN_CHOICE,
    CROWN_CHOICES,
    DISC,
    MOVE,
    NOBODY,
    OVER,
    PLACE,
    Rules,
    action_parts,
    disc_action,
)
from carolus_env.engine.state import single
from carolus_env.notation import move_text, region_text
from carolus_env.play.library import Replay
from carolus_env.play.session import Session, TurnError, up_to
from carolus_env.play.words import (
    Region,
    action_label,
    action_words,
    emperor_steps,
    outcome,
    placements,
    regions_of,
    third_person,
)
from carolus_env.records import RecordError, make_record, record_line, start_of
from carolus_env.replay import replay


def fresh(*specs: str | None, seed: int = 7, **rules: Any) -> Session:
    """A new game; None in ``specs`` is a person."""
    agents = [None if spec is None else bots.make(spec) for spec in specs]
    return Session.new(Rules(players=len(specs), **rules), agents, seed=seed)


def taken_up(session: Session, events: int | None = None) -> Session:
    """The same game by way of JSON, as after a restart, with agents of its own."""
    record = json.loads(json.dumps(session.record()))
    agents = [spec and bots.make(spec) for spec in record["agents"]]
    record = up_to(record, len(record["events"]) if events is None else events)
    return Session(record, agents, names=record["names"], seed=record["seed"])


def play_on(session: Session, decisions: int | None = None) -> Session:
    """People play the middle one of their legal actions."""
    while not session.over and decisions != 0:
        if session.agent is None:
            legal = session.legal()
            session.play(legal[len(legal) // 2].action)
        else:
            session.ask_agent()
        decisions = None if decisions is None else decisions - 1
    return session


def play_to(session: Session, phase: int, seat: int = 0) -> Session:
    while (session.player, session.state["phase"]) != (seat, phase):
        play_on(session, 1)
    return session


# ------------------------------------------------------------------------------------ a game


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_game_is_that_of_the_engine_with_the_same_seed(players: int) -> None:
    session = play_on(fresh(None, *["greedy"] * (players - 1)), 40)
    start = engine.new_games(Rules(players=players), 1, seed=7, roll=False)
    actions = [event["action"] for event in session.events if "action" in event]
    assert len(actions) == 40
    assert make_record(start, actions)["events"] == session.events


def test_a_whole_game_gives_a_record_that_replays() -> None:
    session = play_on(fresh(None, "greedy", "random"))
    assert replay(session.record()) == []
    assert session.record()["result"] is not None
    assert session.outcome() is not None
    assert (session.player, session.agent, session.legal()) == (None, None, [])


def test_partners_are_named_together() -> None:
    session = fresh(None, "greedy", None, "random", partners="adjacent")
    assert session.names == ("Player 1", "greedy", "Player 3", "random")
    assert session.team_names() == ["Player 1 and greedy", "Player 3 and random"]


def test_no_two_seats_have_the_same_name() -> None:
    assert fresh("random", None, "random").names == ("random 1", "Player 2", "random 3")
    three = Session.new(Rules(3), [None] * 3, names=["Ada", "Ada", "Ada 2"])
    assert three.names == ("Ada 1", "Ada 3", "Ada 2")
    taken = Session.new(Rules(), [None, None], names=["Ada", "Ada"])
    assert taken.names == ("Ada 1", "Ada 2")
    assert taken_up(taken).names == taken.names


def test_an_illegal_action_changes_nothing() -> None:
    session = play_to(fresh(None, "greedy"), DISC)
    before, events = session.state.tobytes(), list(session.events)
    for action in (disc_action(3) + 40, -1, 95):
        with pytest.raises(IllegalActionError):
            session.play(action)
    assert (session.state.tobytes(), session.events) == (before, events)


def test_nobody_plays_for_somebody_else() -> None:
    session = play_to(fresh(None, "greedy"), CROWN_CHOICE, seat=1)
    with pytest.raises(TurnError, match="it is greedy's turn"):
        session.play(session.legal()[0].action)
    play_to(session, DISC)
    with pytest.raises(TurnError, match="no agent"):
        session.ask_agent()


def test_nothing_is_played_after_the_end() -> None:
    session = play_on(fresh("random", "random", max_rounds=1))
    for ask in (session.ask_agent, lambda: session.play(0), lambda: session.hint(bots.make("ppo"))):
        with pytest.raises(TurnError):
            ask()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"names": ["A"]}, "names must be 2, one for each seat"),
        ({"names": ["A", "B\x1b[31m"]}, r"names\[1\] must be printable text"),
        ({"names": ["A", 7]}, r"names\[1\]"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": 2**53}, "seed must be a whole number"),
        ({"seed": True}, "seed must be a whole number"),
    ],
)
def test_impossible_seats_and_seeds_are_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Session.new(Rules(), [None, None], **change)
    with pytest.raises(ValueError, match="agents must be 3, one for each seat"):
        Session.new(Rules(players=3), [None, None])


# ------------------------------------------------------------------------------------ taken up


@pytest.mark.parametrize("spec", ["random", "mcts:sims=20", "planner"])
def test_a_game_taken_up_goes_on_as_it_would_have_gone_on(spec: str) -> None:
    whole = play_on(fresh(spec, "greedy", max_rounds=3))
    events = len(whole.events)
    for cut in range(5, events, 7):  # in mid-turn too, where the agent has planned all of it
        assert play_on(taken_up(whole, cut)).events == whole.events, cut


def test_any_record_is_taken_up_and_seeds_decide_what_follows() -> None:
    start = engine.new_games(Rules(), 1, seed=3, roll=False)
    record = make_record(start, [])
    games = [
        play_on(Session(record, [bots.make("greedy")] * 2, seed=seed), 30).events
        for seed in (1, 1, 2)
    ]
    assert games[0] == games[1] != games[2]
    assert games[0][:2] == games[2][:2] == record["events"][:2]


def test_a_record_that_breaks_the_rules_is_refused() -> None:
    record = play_on(fresh(None, None), 12).record()
    at = next(i for i, event in enumerate(record["events"]) if "action" in event)
    record["events"][at] = {**record["events"][at], "action": 94}
    with pytest.raises(RecordError, match=f"event {at}: action"):
        Session(record, [None, None])
    with pytest.raises(RecordError, match="a game record must be an object"):
        Session([], [None, None])  # type: ignore[arg-type]


def test_a_game_cut_back_is_the_game_as_it_was() -> None:
    session = play_on(fresh(None, None), 30)
    for events in (2, 10, len(session.events)):
        earlier = up_to(session.record(), events)
        again = Session(earlier, [None, None], seed=7)
        assert again.events[:events] == session.events[:events]
    with pytest.raises(ValueError, match="events must be from 0 to"):
        up_to(session.record(), 1000)


# ------------------------------------------------------------------------------------ undo


def test_decisions_are_undone_until_dice_fall() -> None:
    session = play_to(fresh(None, "greedy"), PLACE)
    states, log = [session.state.tobytes()], session.log()
    for _ in range(3):
        play_on(session, 1)
        states.append(session.state.tobytes())
    assert session.state["phase"] == MOVE
    for before in reversed(states[:-1]):
        session.undo()
        assert session.state.tobytes() == before
    assert session.log() == log
    play_on(session, 4)  # the Emperor moves, dice fall
    assert not session.can_undo
    with pytest.raises(TurnError, match="your own decisions"):
        session.undo()


def test_a_turn_that_has_passed_on_is_not_undone() -> None:
    session = play_to(fresh(None, None), DISC)
    play_on(session, 1)
    assert session.player == 1
    assert not session.can_undo


def test_an_agents_decision_is_not_undone() -> None:
    session = play_to(fresh("greedy", None), PLACE)
    session.ask_agent()
    assert session.player == 0
    assert not session.can_undo


def test_what_is_undone_and_played_again_brings_the_same_dice() -> None:
    session = play_to(fresh(None, "greedy"), PLACE)
    once = play_on(session, 20).events
    again = play_to(fresh(None, "greedy"), PLACE)
    play_on(again, 2)
    again.undo()
    again.undo()
    assert play_on(again, 20).events == once


@pytest.mark.parametrize("crown_choice", CROWN_CHOICES)
@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_game_of_whims_undone_and_taken_up_is_its_record(players: int, crown_choice: str) -> None:
    """Random decisions, many taken back, and now and then a restart."""
    draw = random.Random(players)
    seats = [None, "greedy", None, "random"][:players]
    session = fresh(*seats, seed=players, crown_choice=crown_choice, max_rounds=12)
    undone = restarts = 0
    while not session.over:
        if session.can_undo and draw.random() < 0.3:
            earlier = session.events[:-1]
            session.undo()
            assert session.events == earlier
            undone += 1
        elif draw.random() < 0.1:
            again = taken_up(session)
            assert again.state.tobytes() == session.state.tobytes()
            assert (again.record(), again.log()) == (session.record(), session.log())
            assert again.can_undo == session.can_undo
            session = again
            restarts += 1
        steps = {step.action: step for step in session.steps()}
        if session.agent is not None:
            action = session.ask_agent()
        else:
            action = draw.choice(session.legal()).action
            session.play(action)
        if step := steps.get(action):
            assert ("the game ends" in step.text) == session.over
    assert min(undone, restarts) > 3
    record = session.record()
    assert replay(record) == []
    actions = [event["action"] for event in session.events if "action" in event]
    start = engine.new_games(session.rules, 1, seed=players, roll=False)
    assert make_record(start, actions)["events"] == session.events, "undone dice fall alike"
    seen = Replay(json.loads(record_line(record)))
    assert seen.log == session.log()
    assert all(
        line.text == move_text(seen.states[k], event["action"])
        for k, (line, event) in enumerate(zip(seen.log, session.events, strict=True))
        if "action" in event
    )
    game = start_of(record)
    for state, event in zip(seen.states, [*session.events, None], strict=True):
        assert state.tobytes() == game.tobytes()
        if event and "roll" in event:
            chance.apply_roll(game, event["roll"])
        elif event:
            engine.step(game, np.array([event["action"]]), roll=False)
    assert seen.states["phase"][-1] == OVER


# ------------------------------------------------------------------------------------ previews


@pytest.mark.parametrize("players", [2, 3, 4])
def test_results_of_steps_and_regions_are_what_then_happens(players: int) -> None:
    session = fresh(*["greedy"] * players, seed=players)
    teams, said = session.team_names(), set[str]()
    while not session.over:
        regions = regions_of(session.state, teams)
        steps = session.steps()
        assert [step.action for step in steps] == (
            [d.action for d in session.legal()] if session.state["phase"] == MOVE else []
        )
        for step in steps:
            after = single(session.state)
            engine.step(after, np.array([step.action]), roll=False)
            assert step.owner == after["region_owner"][0, after["emperor"][0]]
            assert ("merge into" in step.text) == (after["regions"] < session.state["regions"])[0]
            region = regions[step.region]
            strongest = [t for t, s in enumerate(region.strengths) if s == max(region.strengths)]
            if max(region.strengths) == 0 or len(strongest) > 1:
                assert not step.changes
                assert step.text.startswith("nothing changes")
            else:
                assert step.owner == strongest[0]
                assert region.result.startswith(teams[step.owner])
            assert region.territories == region_text(session.state, step.region)
            said.add(re.sub("|".join(teams), "X", region.result))
        session.ask_agent()
    assert said >= {"X would build a castle", "X would keep it"}


def test_results_speak_of_castles_by_name() -> None:
    texts = []
    for seed in range(4):
        session = fresh("greedy", "random", seed=seed)
        while not session.over:
            texts += [step.text for step in emperor_steps(session.state, ("Anna", "Bert"))]
            session.ask_agent()
    said = " | ".join(texts)
    assert "Anna builds a castle, 1 against 0; now 1 castle" in said
    assert re.search(r"Anna takes (a castle|[2-9] castles) from Bert, \d+ against \d+; now", said)
    assert re.search(r"Anna keeps the region, \d+ against \d+", said)
    assert re.search(r"nothing changes, tied at \d+", said)
    assert "nothing changes, nobody controls a clan there" in said
    assert re.search(r"; the regions merge into \d+-\d+", said)
    assert re.search(r"the game ends, (Anna|Bert) won", said)


def test_placements_say_what_they_come_to() -> None:
    session = fresh(None, "greedy", seed=2)
    kinds = set()
    while not session.over:
        names, teams, state = session.names, session.team_names(), session.state
        found = placements(state, names, teams)
        assert list(found) == (
            [d.action for d in session.legal()] if state["phase"] == PLACE else []
        )
        legal = session.legal()
        action = legal[0 if len(session.events) % 2 else 7 % len(legal)].action
        if session.agent is not None:
            session.ask_agent()
            continue
        session.play(action)
        if action not in found or state["phase"] != PLACE:
            continue
        _, _, clan, destination = action_parts(action)
        after = session.state
        if destination:
            assert found[action] == regions_of(after, teams)[destination - 1]
            assert isinstance(found[action], Region)
        else:
            mine, theirs = after["courts"][:2, clan]
            text = found[action]
            assert f"at court: {mine} for {names[0]}, {theirs} for {names[1]}; " in text
            old, new = state["control"][clan], after["control"][clan]
            kinds.add((old != new, new == NOBODY))
            assert ("takes control" in text) == (old != new)
    assert kinds >= {(True, False), (False, False)}


def test_the_log_tells_in_words_what_came_of_a_decision() -> None:
    session = fresh("greedy", "greedy", seed=1)
    while not session.over:
        session.ask_agent()
    lines = session.log()
    assert [line.round for line in lines] == sorted(line.round for line in lines)
    rolls = [line for line in lines if line.text.startswith("rolls ")]
    assert all(line.words.replace(",", "") == line.text for line in rolls)
    controls = [", gaining control of " in line.words for line in lines]
    assert controls == [line.text.endswith("court!") for line in lines]
    moves = [line for line in lines if line.text.startswith("E+")]
    assert all(line.words.startswith("moves the Emperor ") for line in moves)
    verbs = {line.words.split()[0] for line in lines}
    assert verbs == {"rolls", "plays", "places", "moves", "chooses"}
    assert moves[-1].words.endswith(f"the game ends, {session.team_names()[0]} won") == (
        session.outcome().startswith(session.team_names()[0])  # type: ignore[union-attr]
    )


def test_partners_are_plural() -> None:
    session = fresh(*["greedy"] * 4, seed=3)
    texts = []
    while not session.over:
        names = ("Ann and Bob", "Cy and Dan")
        texts += [step.text for step in emperor_steps(session.state, names)]
        session.ask_agent()
    said = " | ".join(texts)
    assert "Ann and Bob build a castle" in said
    assert "Cy and Dan keep the region" in said


def test_actions_are_named_alike_everywhere() -> None:
    session = fresh("greedy", "greedy", seed=1)
    first = {}
    while not session.over:
        for decision in session.legal():
            kind = action_parts(decision.action).kind
            label = action_label(session.state, decision.action)
            words = action_words(session.state, decision.action)
            assert label in words
            first.setdefault(kind, words)
        action = session.ask_agent()
        line = next(line for line in reversed(session.log()) if not line.text.startswith("rolls"))
        assert session.last is not None
        assert line.words.startswith(third_person(action_words(session.last[0], action)))
    assert first["disc"] == "play disc 1"
    assert first["place"].startswith("place a ") and first["place"].endswith(" paladin at court")
    assert first["move"].startswith("move the Emperor 1 step to ")
    assert first["crown"] == "choose red for the crown"


def test_a_record_is_played_once_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    record = play_on(fresh("greedy", "greedy", max_rounds=2)).record()
    steps, step = [], engine.step
    monkeypatch.setattr(engine, "step", lambda *a, **k: (steps.append(1), step(*a, **k)))
    seen = Replay(record)
    assert len(steps) == len(seen.decisions)


@pytest.mark.parametrize(
    ("castles", "winners", "sentence"),
    [
        ((11, 4), 1, "Ann won with 11 castles."),
        ((3, 9), 2, "Bob won with 9 castles to 3; fewer than 4 regions are left."),
        (
            (7, 7),
            3,
            "Ann and Bob share the win with 7 castles each; fewer than 4 regions are left.",
        ),
    ],
)
def test_the_outcome_says_who_won_and_why(castles: Any, winners: int, sentence: str) -> None:
    session = fresh("greedy", "greedy", seed=1)
    while not session.over:
        session.ask_agent()
    state = session.state.copy()
    state["castles"][:2], state["winners"] = castles, winners
    assert outcome(state, ("Ann", "Bob")) == sentence


# ------------------------------------------------------------------------------------ agents


class Spy(Agent):
    """Notes the generators that it is shown."""

    def __init__(self) -> None:
        self.shown: list[int] = []

    def act(self, states, generators):  # type: ignore[no-untyped-def]
        self.shown += states["generator"].tolist()
        return np.array([engine.legal_actions(state)[0] for state in states])


def test_agents_cannot_foresee_the_dice() -> None:
    spy = Spy()
    session = Session.new(Rules(), [spy, spy], seed=5)
    real = set()
    while len(session.events) < 60:
        real.add(int(session.state["generator"]))
        session.ask_agent()
        session.hint(spy)
    assert not real & set(spy.shown)
    assert len(set(spy.shown)) == len(spy.shown)


def test_an_agent_that_breaks_the_rules_is_named_and_the_game_is_as_it_was() -> None:
    class Cheat(Agent):
        name = "cheat"

        def act(self, states, generators):  # type: ignore[no-untyped-def]
            return np.array([94])

    session = Session.new(Rules(), [Cheat(), Cheat()], seed=5)
    before = session.state.tobytes()
    with pytest.raises(ValueError, match="agent 'cheat' chose action 94"):
        session.ask_agent()
    assert session.state.tobytes() == before


@pytest.mark.parametrize("spec", ["random", "greedy", "planner", "ppo", "mcts:sims=20"])
def test_a_hint_says_what_the_adviser_thinks_and_changes_nothing(spec: str) -> None:
    session = play_to(fresh(None, "greedy"), PLACE)
    before, legal = session.state.tobytes(), [decision.action for decision in session.legal()]
    hint, again = (session.hint(bots.make(spec)) for _ in range(2))
    assert (hint.agent, hint.choice) == (spec, again.choice)
    assert hint.choice in legal
    assert hint.probabilities is not None
    assert hint.probabilities[legal].sum() == pytest.approx(1)
    assert (hint.values is None) == (spec in ("random", "greedy"))
    assert session.state.tobytes() == before


def test_an_adviser_without_an_opinion_says_its_choice() -> None:
    session = play_to(fresh(None, "greedy"), PLACE)
    hint = session.hint(Spy())
    assert hint[1:] == (session.legal()[0].action, None, None)


# ------------------------------------------------------------------------------------ news


def test_news_is_what_the_others_did_since_ones_own_turn() -> None:
    session = fresh(None, "greedy", "greedy", seed=2)
    seen = []
    while not session.over and session.state["round"] < 5:
        if session.agent is None:
            action = session.legal()[0].action
            seen.append((action_parts(action).kind, set(session.news)))
            session.play(action)
        else:
            session.ask_agent()
    assert {session.events[index]["player"] for _, news in seen for index in news} == {1, 2}
    moves = 0
    for (kind, news), (_, later) in itertools.pairwise(seen):
        if kind == "move":
            moves += 1
            assert not news & later
        else:
            assert news <= later
    assert moves >= 3
    assert fresh("greedy", "greedy").news == [], "nobody looks on"
