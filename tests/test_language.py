"""Language models: words, whole turns in the notation, the harness, the text environment."""

from __future__ import annotations

import dataclasses
import itertools
import re

import numpy as np
import pytest
import strategies
from positions import figure_5, figure_6, paladins, position
from scripted_model import answer, moves_for

import carolus_env as ce
from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.rules import CROWN_CHOICE, DISC, PLACE
from carolus_env.integrations.language import harness, turns, words
from carolus_env.integrations.language.harness import generate_prompt, observe, parse_response
from carolus_env.notation import NotationError, turn_text

KINDS = strategies.ALL_KINDS[:5]
SHORT = [dataclasses.replace(rules, max_rounds=4) for rules in KINDS]
"""Of games between models that never win."""


def random_turn(state, stream):
    """What a player decides in a row, at random."""
    game, actions = np.array([state]), []
    while not actions or turns.goes_on(game, state):
        actions.append(int(engine.random_actions(game, stream)[0]))
        engine.step(game, np.array(actions[-1:]), roll=False)
    return actions, game


def positions(rules, games, seed=1):
    """Every position of random games in which a turn begins, and the turn that was played."""
    for number in range(games):
        game, stream = ce.new_games(rules, 1, seed=seed + number), ce.new_streams(number, 1)
        while not engine.is_over(game)[0]:
            before = engine.copy(game)[0]
            actions, game = random_turn(before, stream)
            yield before, actions
            while chance.roll_due(game)[0]:
                chance.roll(game)


@pytest.mark.parametrize("rules", KINDS)
def test_whole_turns_read_back_as_the_actions_that_they_were_written_from(rules):
    stream, phases = ce.new_streams(3, 1), set()
    for state, played in itertools.islice(positions(rules, 2), 60):
        for actions in (played, random_turn(state, stream)[0]):
            text = turn_text(state, actions)
            alike = [list(run) for _, run in itertools.groupby(actions)]
            assert turns.read_turn(state, text) == actions
            assert len(text.split(", ")) <= len(alike) + 4
            without = re.sub(r"!|#| at [\d-]+| [ABC] (builds|takes).*", "", text)
            assert turns.read_turn(state, without.upper().replace(",", ";\n")) == actions
            assert len(text) < turns.LONGEST / 2
        phases.add(int(state["phase"]))
    assert phases >= {DISC, PLACE, CROWN_CHOICE}  # and MOVE, with an empty reserve


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "there is no move in the answer; 3 paladins still to be played"),
        ("E+1", "the paladins come first, 3 paladins still to be played"),
        ("3 red>court, E+1", "your reserve holds 2 red"),
        ("2 red>court, 2 yellow>7, E+1", "1 paladin of this turn is left"),
        ("2 red>court, yellow>7", "the turn is not complete: the Emperor's move is missing"),
        ("2 red>court", "not complete: 1 paladin still to be played, and then the Emperor's"),
        ("2 red>court, yellow>7, yellow>7", "all paladins of this turn are played"),
        ("2 red>court, yellow>7, E+5", "you played disc 3, so the Emperor moves 1 to 3 steps"),
        ("2 red>court, yellow>7, E+1, E+1", "'E+1' is one move too many: a turn ends with"),
        ("2 red>court, yellow>17, E+1", "there is no region 17"),
        ("my move is red", "expected a paladin such as"),
        ("x" * 1000, "got 1000 characters"),
    ],
)
def test_a_turn_that_is_refused_says_why_in_the_words_of_the_game(text, why):
    game = figure_6()
    before = game.tobytes()
    with pytest.raises(NotationError, match=re.escape(why)):
        turns.read_turn(game[0], text)
    assert game.tobytes() == before


def test_refused_discs_and_crowns_say_why():
    game = ce.Game(ce.Rules(3), seed=296)
    while game.phase != DISC:
        game.play(game.legal_actions[0])
    first, opening = game.player, game.states.copy()
    game.play("d2")
    courts, nothing = [paladins(red=37), paladins(blue=1)], [paladins(), paladins()]
    dry = position(courts=courts, reserves=nothing, phase="crown", crowns=[1, 0])
    for states, text, why in (
        (opening, "d9", "disc 9 is not in your hand; legal now: d1, d2"),
        (game.states, "d2", f"player {first} has played 2 this round"),
        (game.states, "d1, d3", "one move too many: one disc is played"),
        (game.states, "E+1", "a disc is to be played now"),
        (dry, "crown=red", "neither the supply nor every court holds a red"),
        (dry, "E+1", "the crowns come first"),
        (dry, "crown=blue, crown=blue", "all crowns are decided"),
    ):
        with pytest.raises(NotationError, match=why):
            turns.read_turn(states[0], text)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_rules_have_the_numbers_of_that_game(players):
    rules = ce.Rules(players)
    text = words.rules_text(rules)
    for part in (
        *(f"for {players} players", f"A team with {rules.castles_to_win} castles"),
        *(f"Play {rules.dice} paladins", f"Roll {rules.dice} dice", "After round 100"),
        "you choose its clan at once",
    ):
        assert part in text
    assert len(text) < 4_000 and text.isascii()
    other = ce.Rules(players, crown_choice="deferred", max_rounds=None, partners="adjacent")
    changed = words.rules_text(other)
    assert "After round" not in changed and "at the start of your next turn" in changed
    assert ("artner" in text) == ("players 0 and 2 are team A" in text) == (players == 4)
    assert ("players 0 and 1 are team A" in changed) == (players == 4)


def test_a_position_in_words_says_what_the_figure_shows():
    text = words.position_text(figure_5()[0])
    assert "You are player 0, team A. Round 12." in text
    assert "player 0: 7 red*, 8 pink*, 6 blue, 5 yellow, 3 green" in text
    assert "player 1: 6 red, 5 pink, 8 blue*, 6 yellow*, 5 green*" in text
    assert "player 0: 2 red, 2 pink, 3 yellow\n" in text
    # C of figure 6: black has 9 there, 3 of them yellow; white 3
    line = "+2 region 3-5: 2 red, 1 pink, 1 blue, 3 yellow, 2 green; 3 castles of B; strength A3 B9"
    assert line in words.position_text(figure_6()[0])
    asked = words.request_text(figure_6()[0], turns=True)
    assert "Now play 3 paladins from your reserve, then move the Emperor 1 to 3 steps." in asked


@pytest.mark.parametrize("rules", KINDS)
@pytest.mark.parametrize("answers", harness.ANSWERS)
def test_no_prompt_is_longer_than_its_limit_and_the_last_turns_that_fit_are_kept(rules, answers):
    lengths, history, refused = [], [], "prose " * 5_000
    for state, actions in itertools.islice(positions(rules, 2, seed=20), 0, None, 5):
        history += [f"player 0: {turn_text(state, actions)}" * 3]
        for again in ((), (refused,), (refused, "green>court " * 500)):
            prompt = generate_prompt(observe(state, answers), history, *again)
            assert prompt.isascii()
            lengths.append(len(prompt))
    assert 6_000 < max(lengths) <= harness.LONGEST_PROMPT == 12_000
    observation = observe(figure_6()[0], answers)
    prompt = generate_prompt(observation, [f"player 1: turn {k} {'x' * 90}" for k in range(100)])
    kept = [int(k) for k in re.findall(r"player 1: turn (\d+)", prompt)]
    assert kept == list(range(100 - len(kept), 100)) and len(kept) > 20
    assert "THE LAST TURNS" not in generate_prompt(observation)


@pytest.mark.parametrize("rules", SHORT)
@pytest.mark.parametrize("answers", harness.ANSWERS)
def test_a_model_that_only_reads_plays_whole_games(rules, answers):
    game, count, actions = ce.Game(rules, seed=4), 0, 0
    while not game.over:
        observation = observe(game.states[0], answers)
        prompt = generate_prompt(observation)
        if answers == "turn":
            move = moves_for(prompt)
        else:
            [listed] = re.findall(r" are:\n(.*)\n", prompt)
            legal = dict(zip(game.legal_actions, game.legal_moves, strict=True))
            assert harness.get_legal_moves(observation) == legal
            assert listed.split(", ") == list(legal.values())
            move = listed.split(", ")[count % len(legal)]
        parsed = parse_response(answer(move), observation)
        text = turn_text(game.states[0], parsed.actions)
        assert parsed == (parsed.actions, text, move, "")
        for action in parsed.actions:
            game.play(action)
        count, actions = count + 1, actions + len(parsed.actions)
    assert (actions > 1.5 * count) == (answers == "turn")


def test_an_observation_does_not_tell_the_dice_to_come():
    one, other = ce.Game(seed=1).states, ce.Game(seed=1).states
    other["generator"] += 1
    assert observe(one[0]) == observe(other[0])
    assert observe(one[0])["playerId"] == int(one["player"][0])
    assert not observe(one[0])["isTerminal"]
    with pytest.raises(ValueError, match=r"answers .*'x'"):
        observe(one[0], "x")
    with pytest.raises(ce.PositionError):
        harness.get_legal_moves({"observationString": "nonsense"})
    engine.forfeit(other)
    over = observe(other[0])
    assert over["isTerminal"] and harness.get_legal_moves(over) == {}
    assert parse_response(answer("d1"), over).error == "no decision is due"
    waiting = ce.new_games(ce.Rules(), 1, seed=1, roll=False)[0]
    for write in (words.position_text, lambda state: words.request_text(state, turns=True)):
        with pytest.raises(ValueError, match="no decision is due"):
            write(waiting)


GOOD = "2 red>court, yellow>7, E+1"


@pytest.mark.parametrize(
    "response",
    [
        f'```json\n{{"move": "{GOOD}"}}\n```',
        f'<think>perhaps {{"move": "d1"}}, or {{x}}</think> So {{"why": 1, "move": "{GOOD}"}}!',
        '{"move": ["2 red>court", "yellow>7", "E+1"]}',
        '{"a": ' * 3_000 + f'1 {{"move": "{GOOD}"}}',
        f'{{"move": "{GOOD}", "score": NaN, "text": "\\u2603"}}' + " thanks" * 1_000,
    ],
)
def test_prose_fences_and_thoughts_do_not_matter(response):
    parsed = parse_response(response, observe(figure_6()[0]))
    assert turns.read_turn(figure_6()[0], GOOD) == list(parsed.actions)
    assert parsed.legal_action == "2 red>court, yellow>7, E+1 B takes 2 forming 0-5"


@pytest.mark.parametrize(
    ("response", "raw", "why"),
    [
        *((text, None, '"move"') for text in ("", "[" * 100_000)),
        ('{"move": "E+1"', None, "Expecting ',' delimiter"),
        *((f'{{"move": {given}}}', None, "must be a text") for given in ("7", '" "')),
        ('{"move": "E+1"}', "E+1", "the paladins come first"),
    ],
)
def test_a_response_without_a_legal_move_is_a_described_failure(response, raw, why):
    observation = observe(figure_6()[0])
    parsed = parse_response(response, observation)
    assert parsed.legal_action is None and parsed.actions == ()
    assert parsed.raw_action == raw
    assert why in parsed.error
    again = generate_prompt(observation, (), response, parsed.raw_action)
    assert again.startswith(generate_prompt(observation))
    told = again.removeprefix(generate_prompt(observation))
    assert why in told
    assert ('the move "E+1". It is not legal' in told) == (raw is not None)


def test_one_decision_is_one_decision():
    observation = observe(figure_6()[0], "decision")
    assert "one decision at a time" in parse_response(answer("2 red>court"), observation).error
    for _ in range(2):
        assert parse_response(answer("red>court"), observation).actions == (15,)
        observation.pop("answers", None)
