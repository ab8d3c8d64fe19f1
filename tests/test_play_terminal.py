"""The game in a terminal: whole games by typing, and what cannot be done is said."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from carolus_env import bots
from carolus_env.bots import Agent
from carolus_env.drawing.text import board_text
from carolus_env.engine.rules import PLACE, Rules
from carolus_env.notation import game_text, move_text, to_line
from carolus_env.play import __main__ as command
from carolus_env.play import terminal
from carolus_env.play.roster import Roster
from carolus_env.play.session import Session
from carolus_env.play.terminal import COMMANDS, Terminal, first_record, new_session, taken_up
from carolus_env.records import RecordError, start_of
from carolus_env.replay import replay


class Typist:
    """Lines to be typed, one after the other; ``said`` is all that was shown."""

    def __init__(self, *lines):
        self.lines, self.said = list(lines), ""

    def ask(self, prompt):
        self.show(prompt)
        if not self.lines:
            raise EOFError
        line = self.lines.pop(0)
        line = line() if callable(line) else line
        self.show(line + "\n")
        return line

    def show(self, text):
        self.said += text


def a_session(people=1, players=2, seed=3):
    specs = ["greedy"] * (players - people)
    return new_session(Rules(players), Roster(), specs, people, seed)


def typed(*lines, session=None, roster=None):
    """The terminal after these lines, and what it said."""
    typist = Typist(*lines)
    game = Terminal(session or a_session(), roster or Roster(), typist.ask, typist.show)
    game.run()
    return game, typist.said


def answers(*lines, session=None):
    """What was said to the last line alone."""
    _, said = typed(*lines, session=session)
    return said.rpartition(f"> {lines[-1]}\n")[2].rpartition("\n")[0]


# ------------------------------------------------------------------------------------ playing


@pytest.mark.parametrize(("people", "players"), [(1, 2), (2, 3), (4, 4)])
def test_a_whole_game_is_played_by_typing(people, players):
    typist = Typist()
    session = a_session(people, players, seed=5)
    game = Terminal(session, Roster(), typist.ask, typist.show)

    def choose():
        if not session.over:
            typist.lines.append(choose)
        legal = [decision.action for decision in session.legal()]
        return move_text(session.state, legal[len(legal) // 2]) if legal else "quit"

    typist.lines.append(choose)
    game.run()
    assert session.over
    assert replay(session.record()) == []
    assert session.outcome() in typist.said
    assert board_text(session.state) in typist.said
    assert max(map(len, typist.said.splitlines())) <= 80
    assert "legal now" not in typist.said


def test_several_moves_are_typed_in_a_line_or_none_of_them_is_played():
    game, _ = typed("d3", "2 r>court, y>7, e+1")
    own = [line.text for line in game.session.log() if line.seat == 0]
    assert own[1:6] == ["d3", "red>court", "red>court!", "yellow>7", "E+1 at 2"]
    game, said = typed("d3", "red>court, d4")
    assert "move 'd4': expected a paladin" in said
    assert game.session.state["placements_left"] == 3


def test_the_board_is_shown_when_another_decision_is_due():
    _, said = typed("d3", "red>court")
    assert said.count("discs in playing order") == 2  # for the disc, and for the first paladin
    assert answers("d3", "board").count("discs in playing order") == 1


def test_what_others_did_is_told_turn_by_turn():
    game, said = typed("d3")
    told = game_text(start_of(game.session.record()), game.session.record()["events"])
    for seat, name in enumerate(("you", "greedy")):
        for text in re.findall(rf"^  {seat} [AB]  (.*)$", told, re.MULTILINE):
            first = text.split(",")[0]
            assert f"{seat} {'AB'[seat]} {name}  {first}" in said


def test_agents_alone_play_to_the_end():
    game, said = typed(session=a_session(people=0))
    assert game.session.over
    assert said.endswith(f"{game.session.outcome()}\ngame over> ")


# ------------------------------------------------------------------------------------ commands


def test_legal_moves_are_listed_with_what_the_emperor_would_do():
    assert answers("?") == "  d1, d2, d3, d4, d5"
    said = answers("d3", "?")
    assert "> court, " in said and "reserve: 2 red, 1 pink" in said
    assert re.search(r"If the Emperor moved now:\n  E\+1 .*: .*\n", said)
    assert said.count("E+") == 3
    moving = answers("d3", "3 y>court", "?")
    assert moving.count("E+") == 3
    assert "court" not in moving and "reserve" not in moving


def test_previews_are_what_then_happens():
    game, said = typed("d3", "3 y>court", "?")
    preview = re.search(r"  (E\+2[^:]*): ", said)[1]
    assert move_text(game.session.state, 11) == preview


def test_a_hint_is_a_legal_move_and_what_the_bot_expects():
    said = answers("hint")
    assert re.match(r"planner would play d[1-5]\n", said)
    assert "expected share of the win: you " in said
    said = answers("d3", "hint greedy")
    assert said.startswith("greedy would play ")
    assert re.search(r"probabilities: \S+ \d+%", said)
    assert "'deep' is not offered here; offered are" in " ".join(answers("hint deep").split())
    assert "sims must be" in answers("hint mcts:sims=0")


def test_undo_takes_back_until_dice_fall():
    game, said = typed("d3", "red>court", "undo", "undo")
    assert game.session.state["placements_left"] == 3
    assert "you can undo only your own decisions of this turn" in " ".join(said.split())


def test_the_log_tells_the_game():
    everything = answers("d3", "log").splitlines()
    assert "0 A you  rolls" in everything[0]
    assert len(answers("d3", "log 1").splitlines()) < len(everything)
    assert answers("d3", "log 999999").splitlines() == everything
    assert "log needs a number of turns, got 'x'" in answers("log x")


def test_a_game_is_saved_and_taken_up(tmp_path):
    file = tmp_path / "game.jsonl"
    game, said = typed("d3", "red>court", f"save {file}", "pink>court", f"save {file}", "quit")
    assert " ".join(said.split()).count(f"saved as {file}") == 2
    again = taken_up(first_record(file), Roster())
    assert again.record() == game.session.record()
    assert to_line(again.state) == to_line(game.session.state)
    for session in (game.session, again):
        session.play(int(session.legal()[0].action))


def test_a_file_of_somebody_else_is_not_written_over(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("precious")
    assert "exists already" in " ".join(answers(f"save {file}").split())
    assert file.read_text() == "precious"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("save", "name a file: save FILE"),
        ("save no/such/folder/game.jsonl", "No such file"),
        ("save a\0b", "name a file"),
        ("castle", "expected a disc such as 'd3'; legal now: d1, d2, d3, d4, d5"),
        ("d6", "player 0 may not play that now"),
    ],
)
def test_what_cannot_be_done_is_said_and_the_game_goes_on(line, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    game, shown = typed(line, "d3")
    assert said in " ".join(shown.split())
    assert game.session.state["phase"] == PLACE


def test_a_record_that_is_none_is_not_taken_up(tmp_path):
    record = a_session().record()
    for wrong, said in (
        ({"seed": -1}, "seed must be"),
        ({"agents": ["evil.py:Bot", None]}, "is not offered here"),
    ):
        with pytest.raises(ValueError, match=said):
            taken_up({**record, **wrong}, Roster())
    file = tmp_path / "empty.jsonl"
    file.write_text("")
    with pytest.raises(RecordError, match="there is no game record in it"):
        first_record(file)


def test_quitting_an_unsaved_game_asks_once():
    _, said = typed("d3", "quit", "quit", "d1")
    assert said.count("The game is not saved") == 1
    assert said.endswith("> quit\n")
    _, said = typed("d3", "quit", "?", "quit", "quit")
    assert said.count("The game is not saved") == 2, "what was done since counts"


def test_a_game_undone_and_played_otherwise_is_not_saved(tmp_path):
    _, said = typed(
        "d3", "red>court", f"save {tmp_path / 'one.jsonl'}", "undo", "pink>court", "quit"
    )
    assert "The game is not saved" in said


def test_help_names_every_command():
    said = answers("help")
    for form in COMMANDS.values():
        assert form.usage in said
    assert set(terminal._METHODS) == set(COMMANDS)


def test_when_the_game_is_over_nothing_more_is_played():
    session = a_session(people=0)
    said = answers("d3", session=session)
    assert "the game is over, 'd3' cannot be played" in said
    assert session.outcome() in answers("?", session=session)
    assert "the game is over" in answers("hint", session=session)


class Broken(Agent):
    name = "broken"

    def __init__(self):
        self.calls = 0

    def act(self, states, generators):
        self.calls += 1
        if self.calls == 1:
            raise ZeroDivisionError("by nought")
        return bots.make("greedy").act(states, generators)


def test_a_bot_that_fails_is_named_and_can_be_asked_again():
    session = Session.new(Rules(), [Broken(), None], seed=3)
    _, said = typed("", session=session)
    assert "broken failed with ZeroDivisionError: by nought" in said
    assert session.player == 1


def test_colours_are_only_for_terminals():
    typist = Typist("quit")
    Terminal(a_session(), Roster(), typist.ask, typist.show, colour=True).run()
    assert "\x1b[" in typist.said
    assert "\x1b[" not in typed()[1]


# ------------------------------------------------------------------------------------ beginnings


def test_people_sit_first_and_the_last_bot_as_often_as_needed():
    session = new_session(Rules(4), Roster(), ["random", "greedy"], 1, 1)
    assert [agent and agent.name for agent in session.agents] == [
        None,
        "random",
        "greedy",
        "greedy",
    ]
    assert session.names == ("you", "random", "greedy 3", "greedy 4")
    assert new_session(Rules(3), Roster(), [], 2, 1).names == ("player 0", "player 1", "planner")
    with pytest.raises(ValueError, match="people must be from 0 to 2, got 3"):
        new_session(Rules(2), Roster(), [], 3, 1)
    with pytest.raises(ValueError, match="there are 2 bots for 1 seat: greedy, random"):
        new_session(Rules(2), Roster(), ["greedy", "random"], 1, 1)


def main(monkeypatch, capsys, lines, *arguments):
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    status = command.main(["--terminal", *arguments])
    return status, capsys.readouterr()


def test_the_command_plays_what_is_piped_in(monkeypatch, capsys, tmp_path):
    file = tmp_path / "game.jsonl.gz"
    arguments = "--seed", "3", "--bot", "greedy", "--players", "3", "--crown-choice", "deferred"
    lines = f"d3\nlog\nsave {file}\nquit\n"
    status, printed = main(monkeypatch, capsys, lines, *arguments)
    assert status == 0 and printed.err == ""
    assert "0 A you: disc> d3\n" in printed.out
    assert first_record(file)["agents"] == [None, "greedy", "greedy"]
    status, printed = main(monkeypatch, capsys, "quit\n", str(file))
    assert status == 0
    assert "0 A you: crown> quit\n" in printed.out
    assert taken_up(first_record(file), Roster()).rules == Rules(3, "deferred")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--players", "5"], "players must be a whole number from 2 to 4, got 5"),
        (["--people", "3"], "people must be from 0 to 2, got 3"),
        (["--bot", "deep"], "unknown agent 'deep'"),
        (["--seed", "-1"], "seed must be"),
        (["a.jsonl", "b.jsonl"], "the terminal plays one FILE, got 2"),
        (["no-such.jsonl"], "no-such.jsonl: No such file"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(monkeypatch, capsys, arguments, said):
    status, printed = main(monkeypatch, capsys, "", *arguments)
    assert status == 2
    assert said in printed.err


def test_it_runs_as_a_program_without_a_terminal():
    done = subprocess.run(
        [sys.executable, "-m", "carolus_env.play", "--terminal", "--people", "0", "--seed", "1"],
        cwd=Path(__file__).parent.parent,
        input="",
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(r"^planner [12] won with \d+ castles", done.stdout, re.MULTILINE)
    assert "\x1b" not in done.stdout
