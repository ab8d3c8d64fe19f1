"""A game with people and agents: the record is the game, for saving, undoing and going on."""

import json
import random
import re
from typing import get_args

import numpy as np
import pytest
from strategies import Watcher

from carolus_env import bots, engine
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import DISC, MOVE, NOBODY, PLACE, CrownChoice, Rules, action_parts
from carolus_env.engine.state import single
from carolus_env.notation import descriptions, region_text
from carolus_env.play.session import Replay, Session, hint
from carolus_env.records import make_record, record_line, replay


def fresh(*specs, seed=7, **rules):
    """A new game; None in ``specs`` is a person."""
    agents = [None if spec is None else bots.make(spec) for spec in specs]
    return Session.new(Rules(players=len(specs), **rules), agents, seed=seed)


def taken_up(session, events=None):
    """The same game by way of JSON, as after a restart, with agents of its own."""
    record = json.loads(json.dumps(session.record()))
    if events is not None:
        record |= {"events": record["events"][:events], "result": None}
    return Session.resumed(record, bots.make)


def play_on(session, decisions=None):
    """People play the middle one of their legal actions."""
    while not session.over and decisions != 0:
        if session.agent is None:
            legal = session.legal()
            session.play(legal[len(legal) // 2])
        else:
            session.ask_agent()
        decisions = None if decisions is None else decisions - 1
    return session


def play_to(session, phase, seat=0):
    while (session.player, session.state["phase"]) != (seat, phase):
        play_on(session, 1)
    return session


def steps_of(session):
    return descriptions.emperor_steps(session.state, session.team_names())


def test_no_two_seats_have_the_same_name_and_partners_are_named_together():
    assert fresh("random", None, "random").names == ("random 1", "Player 2", "random 3")
    three = Session.new(Rules(3), [None] * 3, names=["Ada", "Ada", "Ada 2"])
    assert three.names == ("Ada 1", "Ada 3", "Ada 2")
    assert taken_up(three).names == three.names
    four = fresh(None, "greedy", None, "random", partners="adjacent")
    assert four.team_names() == ["Player 1 and greedy", "Player 3 and random"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"names": ["A"]}, "names must be 2"),
        ({"names": ["A", "B\x1b[31m"]}, r"names\[1\]"),
        ({"seed": 2**64}, "seed"),
        ({"seed": True}, "seed"),
        ({"rules": Rules(players=3)}, "agents must be 3"),
    ],
)
def test_impossible_seats_and_seeds_are_refused(change, named):
    with pytest.raises(ValueError, match=named):
        Session.new(change.pop("rules", Rules()), [None, None], **change)


@pytest.mark.parametrize("spec", ["random", "mcts:sims=20", "planner"])
def test_a_game_taken_up_goes_on_as_it_would_have_gone_on(spec):
    full = play_on(fresh(spec, "greedy", max_rounds=3))
    events = len(full.events)
    for cut in range(5, events, 7):  # in mid-turn too, where the agent has planned all of it
        assert play_on(taken_up(full, cut)).events == full.events, cut


def test_other_decisions_are_not_undone():
    for seats, phase, decisions in (
        ((None, "greedy"), PLACE, 4),  # the Emperor moves, dice fall
        ((None, None), DISC, 1),  # another person's turn
        (("greedy", None), PLACE, 1),  # an agent's turn
    ):
        session = play_on(play_to(fresh(*seats), phase), decisions)
        assert not session.can_undo
    whole = play_to(fresh("greedy", None), PLACE)
    begun = len(whole.events)
    session = taken_up(play_on(whole, 1), begun + 1)  # within an agent's turn
    assert (session.player, session.events[-1]["player"]) == (0, 0)
    assert not session.can_undo


@pytest.mark.parametrize("crown_choice", get_args(CrownChoice))
@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_game_of_whims_undone_and_taken_up_is_its_record(players, crown_choice):
    """Random decisions, many taken back, and now and then a restart."""
    draw = random.Random(players)
    seats = [None, "greedy", None, "random"][:players]
    session = fresh(*seats, seed=players, crown_choice=crown_choice, max_rounds=12)
    undone = restarts = 0
    while not session.over:
        if session.can_undo and draw.random() < 0.3:
            earlier = session.events[:-1]
            session = taken_up(session, len(earlier))
            assert session.events == earlier
            undone += 1
        elif draw.random() < 0.2:
            before, session = session, taken_up(session)
            assert session.state.tobytes() == before.state.tobytes()
            assert (session.record(), session.log()) == (before.record(), before.log())
            assert session.can_undo == before.can_undo
            restarts += 1
        steps = steps_of(session)
        if session.agent is not None:
            session.ask_agent()
        else:
            action = draw.choice(session.legal())
            session.play(action)
            ends = [step.text for step in steps if step.action == action]
            assert not ends or ("the game ends" in ends[0]) == session.over
    assert min(undone, restarts) > 2
    record = session.record()
    assert replay(record) == []
    actions = [event["action"] for event in session.events if "action" in event]
    start = engine.new_games(session.rules, 1, seed=players, roll=False)
    assert make_record(start, actions)["events"] == session.events, "undone dice fall alike"
    seen = Replay(json.loads(record_line(record)))
    assert seen.log() == session.log()
    assert seen.outcome() == session.outcome()


@pytest.mark.parametrize("players", [2, 3, 4])
def test_actions_steps_and_regions_are_described_as_what_then_happens(players):
    session = fresh(*[None] * players, seed=players)
    greedy, stream = bots.make("greedy"), new_streams(players, 1)
    teams, said, first = session.team_names(), set[str](), dict[str, str]()
    while not session.over:
        regions, steps = descriptions.regions_of(session.state, teams), steps_of(session)
        legal = session.legal()
        assert [step.action for step in steps] == (legal if session.state["phase"] == MOVE else [])
        for action in legal:
            text = descriptions.action_words(session.state, action)
            assert descriptions.action_label(session.state, action) in text
            first.setdefault(action_parts(action).kind, text)
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
                assert region.result.startswith("nothing would change, ")
            else:
                assert step.owner == strongest[0]
                assert region.result.startswith(teams[step.owner])
            assert region.territories == region_text(session.state, step.region)
            said.add(re.sub("|".join(teams), "X", region.result).partition(",")[0])
        before, action = session.state, greedy.act_one(session.state, stream)
        session.play(action)
        text = descriptions.action_words(before, action)
        line = next(line for line in session.log()[::-1] if not line.text.startswith("rolls"))
        assert line.words.startswith(text.replace(" ", "s ", 1))
        assert (" and gains control of " in line.words) == line.text.endswith("court!")
    assert said >= {"X would build a castle", "X would keep the region"}
    assert first["disc"] == "play disc 1" and first["crown"] == "take red for a crown"
    assert first["place"].startswith("place a ") and first["place"].endswith(" paladin at court")
    assert first["move"].startswith("move the Emperor 1 step to ")
    rounds = [line.round for line in session.log()]
    assert rounds == sorted(rounds)


def test_results_speak_of_castles_by_name():
    texts, teams = [], ("Anna", "Bob and Cy")
    for seed in range(4):
        for state in play_on(fresh("greedy", "random", seed=seed)).states:
            texts += [step.text for step in descriptions.emperor_steps(state, teams)]
    said = " | ".join(texts)
    for text in (
        r"Anna builds a castle, 1 against 0; now 1 castle",
        r"Bob and Cy build a castle",
        r"Anna takes (a castle|[2-9] castles) from Bob and Cy, \d+ against \d+; now",
        r"Bob and Cy keep the region, \d+ against \d+",
        r"nothing changes, tied at \d+",
        r"nothing changes, nobody controls a clan there",
        r"; the regions merge into \d+-\d+",
        r"the game ends, (Anna|Bob and Cy) won",
    ):
        assert re.search(text, said), text


def test_placements_say_what_they_come_to():
    session = fresh(None, "greedy", seed=2)
    kinds = set()
    while not session.over:
        teams, before = session.team_names(), session.state
        result = descriptions.placements(before, session.names, teams)
        legal = session.legal()
        assert list(result) == (legal if before["phase"] == PLACE else [])
        if session.agent is not None:
            session.ask_agent()
            continue
        action = legal[0 if len(session.events) % 2 else 7 % len(legal)]
        session.play(action)
        if action not in result:
            continue
        _, _, clan, destination = action_parts(action)
        after, text = session.state, result[action]
        if destination:
            assert text == descriptions.regions_of(after, teams)[destination - 1]
        else:
            mine, theirs = after["courts"][:2, clan]
            assert f"at court: {mine} for Player 1, {theirs} for greedy; " in text
            old, new = before["control"][clan], after["control"][clan]
            kinds.add((old != new, new == NOBODY))
            assert ("takes control" in text) == (old != new)
            assert ("nobody controls" in text) == (new == NOBODY)
    assert kinds >= {(True, False), (False, False)}


@pytest.mark.parametrize(
    ("castles", "winners", "sentence"),
    [
        ((11, 4), 1, "Ann won with 11 castles."),
        ((3, 9), 2, "Bob won with 9 castles to 3; fewer than 4 regions are left."),
        ((7, 7), 3, "Ann and Bob share the win with 7 castles each; fewer than 4 regions are "),
    ],
)
def test_the_outcome_says_who_won_and_why(castles, winners, sentence):
    state = play_on(fresh("greedy", "greedy", seed=1)).state.copy()
    state["castles"][:2], state["winners"] = castles, winners
    assert descriptions.outcome(state, ("Ann", "Bob")).startswith(sentence)


def test_agents_cannot_foresee_the_dice_and_one_that_breaks_the_rules_is_named():
    spy = Watcher()
    session = Session.new(Rules(), [spy, spy], seed=5)
    real = set()
    while len(session.events) < 60:
        real.add(int(session.state["generator"]))
        choice, at = session.legal()[0], len(session.events)
        assert hint(spy, session.state, at)[1:] == (choice, None, None), "it has no opinion"
        session.ask_agent()
        assert session.events[at]["action"] == choice
    shown = spy.shown("generator")
    assert not real & set(shown)
    assert len(set(shown)) == len(shown)
    cheat = bots.RandomBot()
    cheat.act = lambda states, generators: np.array([94])
    session = Session.new(Rules(), [cheat] * 2, seed=5)
    before = session.state.tobytes()
    with pytest.raises(ValueError, match="agent 'random' chose action 94"):
        session.ask_agent()
    assert session.state.tobytes() == before


@pytest.mark.parametrize("spec", ["random", "greedy", "planner", "ppo", "mcts:sims=20"])
def test_a_hint_says_what_the_adviser_thinks_and_changes_nothing(spec):
    session = play_to(fresh(None, "greedy"), PLACE)
    before, legal = session.state.tobytes(), session.legal()
    result, again = (hint(bots.make(spec), session.state) for _ in range(2))
    assert (result.agent, result.choice) == (spec, again.choice)
    assert result.choice in legal
    assert result.probabilities[legal].sum() == pytest.approx(1)
    assert (result.values is None) == (spec in ("random", "greedy"))
    assert session.state.tobytes() == before


def test_news_is_what_the_others_did_since_ones_own_turn():
    session = fresh(None, "greedy", "greedy", seed=2)
    moves, kind, news = 0, "", set[int]()
    while not session.over and session.state["round"] < 5:
        if session.agent is not None:
            session.ask_agent()
            continue
        later = set(session.news)
        assert not news & later if kind == "move" else news <= later
        assert all(session.events[index]["player"] for index in later)
        action = session.legal()[0]
        kind, news = action_parts(action).kind, later
        moves += kind == "move" and bool(news)
        session.play(action)
    assert moves >= 3
    assert fresh("greedy", "greedy").news == [], "nobody looks on"
