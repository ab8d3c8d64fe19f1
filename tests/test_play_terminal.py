"""The game in a terminal: whole games by typing, and what cannot be done is said."""

import io
import os
import re
import sys
from pathlib import Path

import pytest

from carolus_env import bots
from carolus_env.commands import play as command
from carolus_env.drawing.text import board_text
from carolus_env.engine.rules import PLACE, Rules
from carolus_env.notation import game_text, move_text, to_line
from carolus_env.play.session import Roster, Session
from carolus_env.play.terminal import COMMANDS, Terminal, first_record, new_session, taken_up
from carolus_env.records import replay, start_of


def typed(*lines, session=None, colour=False):
    """The game after these lines, and what the terminal said."""
    return after(iter(lines), session or a_session(), colour)


def after(lines, session, colour=False):
    """The same with lines that may be made when they are asked for."""
    said = []

    def ask(prompt):
        said.append(prompt)
        for line in lines:
            said.append(line + "\n")
            return line
        raise EOFError

    terminal = Terminal(session, Roster(), ask, said.append, colour=colour)
    terminal.run()
    return terminal.session, "".join(said)


def a_session(people=1, players=2, seed=3):
    specs = ["greedy"] * (players - people)
    return new_session(Rules(players), Roster(), specs, people, seed)


def answers(*lines, session=None):
    """What was said to the last line alone."""
    _, said = typed(*lines, session=session)
    return said.rpartition(f"> {lines[-1]}\n")[2].rpartition("\n")[0]


@pytest.mark.parametrize(("people", "players"), [(1, 2), (2, 3), (4, 4)])
def test_a_full_game_is_played_by_typing(people, players):
    session = a_session(people, players, seed=5)

    def middle_moves():
        while not session.over:
            legal = session.legal()
            yield move_text(session.state, legal[len(legal) // 2])

    _, said = after(middle_moves(), session)
    assert session.over
    assert replay(session.record()) == []
    assert session.outcome() in said
    assert board_text(session.state) in said
    assert max(map(len, said.splitlines())) <= 80
    assert "legal now" not in said


def test_several_moves_are_typed_in_a_line_or_none_of_them_is_played():
    game, _ = typed("d3", "2 r>court, y>7, e+1")
    own = [line.text for line in game.log() if line.seat == 0]
    assert own[1:6] == ["d3", "red>court", "red>court!", "yellow>7", "E+1 at 2"]
    game, said = typed("d3", "red>court, d4")
    assert "move 'd4': expected a paladin" in said
    assert game.state["placements_left"] == 3


def test_the_board_and_what_others_did_are_shown_when_another_decision_is_due():
    _, said = typed("d3", "red>court")
    assert said.count("discs in playing order") == 2  # for the disc, and for the first paladin
    assert answers("d3", "board").count("discs in playing order") == 1
    game, said = typed("d3")
    listing = game_text(start_of(game.record()), game.record()["events"])
    for seat, name in enumerate(("you", "greedy")):
        for text in re.findall(rf"^  {seat} [AB]  (.*)$", listing, re.MULTILINE):
            first = text.split(",")[0]
            assert f"{seat} {'AB'[seat]} {name}  {first}" in said


def test_legal_moves_are_listed_with_what_the_emperor_would_do_and_hints_are_among_them():
    assert answers("?") == "  d1, d2, d3, d4, d5"
    said = answers("d3", "?")
    assert "> court, " in said and "reserve: 2 red, 1 pink" in said
    assert re.search(r"If the Emperor moved now:\n  E\+1 .*: .*\n", said)
    assert said.count("E+") == 3
    game, _ = typed("d3", "3 y>court")
    moving = answers("d3", "3 y>court", "?")
    assert moving.count("E+") == 3
    assert f"  {move_text(game.state, 11)}: " in moving
    assert "court" not in moving and "reserve" not in moving
    said = answers("hint")
    assert re.match(r"planner would play d[1-5]\n", said)
    assert "expected share of the win: you " in said
    said = answers("d3", "hint greedy")
    assert said.startswith("greedy would play ")
    assert re.search(r"probabilities: \S+ \d+%", said)
    assert "'deep' is not offered here; offered are" in " ".join(answers("hint deep").split())
    assert "sims must be" in answers("hint mcts:sims=0")


def test_undo_takes_back_until_dice_fall_and_the_log_has_the_game():
    game, said = typed("d3", "red>court", "undo", "undo")
    assert game.state["placements_left"] == 3
    assert "you can undo only your own decisions" in " ".join(said.split())
    _, said = typed("d3", "red>court", "undo", "pink>court")
    assert "0 A you  pink>court" in said, "what is played after it is told"
    everything, last = answers("d3", "log"), answers("d3", "log 1")
    assert everything == answers("d3", "log 999999")
    assert "0 A you  rolls" in everything.splitlines()[0]
    assert everything.endswith(last) and len(last) < len(everything)
    assert "log needs a number of turns, got 'x'" in answers("log x")


def test_a_game_is_saved_and_taken_up(tmp_path):
    file = tmp_path / "game.jsonl"
    game, said = typed("d3", "red>court", f"save {file}", "pink>court", f"save {file}", "quit")
    assert " ".join(said.split()).count(f"saved as {file}") == 2
    again = taken_up(first_record(file), Roster())
    assert again.record() == game.record()
    assert to_line(again.state) == to_line(game.state)
    over = a_session(people=0)
    typed(session=over)
    finished = {**over.record(), "agents": ["my_bot.py:Mine", "value:mine"]}
    assert taken_up(finished, Roster()).outcome() == over.outcome(), "nobody is to move"
    for wrong, named in (({"seed": -1}, "seed"), ({"agents": ["evil.py:Bot", None]}, "offered")):
        with pytest.raises(ValueError, match=named):
            taken_up({**game.record(), **wrong}, Roster())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("save", "name a file: save FILE"),
        ("save no/such/folder/game.jsonl", "No such file"),
        ("save a\0b", "name a file"),
        ("save ~no-such-user/game.jsonl", "home directory"),
        ("save mine.txt", "exists already"),
        ("castle", "expected a disc such as 'd3'; legal now: d1, d2, d3, d4, d5"),
        ("d6", "player 0 may not play that now"),
    ],
)
def test_what_cannot_be_done_is_said_and_the_game_goes_on(line, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.txt").write_text("precious")
    game, shown = typed(line, "d3")
    assert said in " ".join(shown.split())
    assert game.state["phase"] == PLACE
    assert Path("mine.txt").read_text() == "precious"


def test_a_game_is_saved_in_the_folder_that_a_tilde_stands_for(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    game, _ = typed("d3", "save ~/mine.jsonl", "quit")
    assert first_record(tmp_path / "mine.jsonl")["events"] == game.events
    assert "exists already" in answers("save ~/mine.jsonl")


def test_quitting_an_unsaved_game_asks_once(tmp_path):
    warning = "The game is not saved"
    _, said = typed("d3", "quit", "quit", "d1")
    assert said.count(warning) == 1
    assert said.endswith("> quit\n")
    _, said = typed("d3", "quit", "?", "quit", "quit")
    assert said.count(warning) == 2, "what was done since counts"
    save = f"save {tmp_path / 'one.jsonl'}"
    assert warning in typed("d3", "red>court", save, "undo", "pink>court", "quit")[1]
    assert warning not in typed("d3", f"save {tmp_path / 'two.jsonl'}", "quit")[1]


def test_help_names_every_command_and_colours_are_only_for_terminals():
    said = answers("help")
    assert all(usage in said for usage in COMMANDS)
    for word in ("?", "hint", "undo", "board", "log", "save", "help"):
        assert "expected a" not in answers(word), "it is a command, not a move"
    assert "\x1b[" in typed("quit", colour=True)[1]
    assert "\x1b[" not in said


def test_when_the_game_is_over_nothing_more_is_played():
    session = a_session(people=0)
    _, said = typed("d3", "?", "hint", session=session)
    assert session.over
    assert "the game is over, 'd3' cannot be played" in said
    assert said.count(session.outcome()) == 2, "with the board, and when the moves are asked for"
    assert said.endswith("the game is over\ngame over> ")


def test_a_bot_that_fails_is_named_and_can_be_asked_again():
    failures = [SystemExit(3), ZeroDivisionError("by nought")]

    class Broken(bots.RandomBot):
        def act(self, states, generators):
            if failures:
                raise failures.pop()
            return super().act(states, generators)

    session = Session.new(Rules(), [Broken(), None], seed=3)
    _, said = typed("", session=session)
    assert "Broken failed with ZeroDivisionError: by nought" in said
    assert "Broken failed with SystemExit: 3" in said
    typed("", session=session)
    assert session.player == 1


WRONG = {
    "--terminal --players 5": "players 2 4 5",
    "--terminal --people 3": "people 0 2 3",
    "--terminal --seed -1": "seed -1",
    "--terminal a.jsonl b.jsonl": "one FILE 2",
    f"--terminal {os.devnull}": "no game record",
    "--terminal --bot greedy --bot random": "2 bots 1 seat greedy random",
    "missing.jsonl": "missing.jsonl: No such file",
    "--lost greedy": "--lost needs a FILE",
    "--port 70000": "--port must be from 0 to 65,535",
    "--bot nobody": "unknown agent 'nobody'",
    "--terminal --port 80": "--terminal does not use --port",
    "--people 2 --max-rounds 9": "the page does not use --people, --max-rounds",
    "--terminal broken.jsonl --seed 1": "--terminal with a FILE does not use --seed",
    "--terminal --partners adjacent": "--partners needs --players 4",
    "broken.jsonl": "broken.jsonl: line 1: not JSON",
}


@pytest.mark.parametrize("words", WRONG)
def test_the_command_says_what_is_wrong(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("broken.jsonl").write_text("?\n")
    no_browser = [] if "--terminal" in words else ["--no-open"]
    assert command.main([*words.split(), *no_browser]) == 2
    error = capsys.readouterr().err
    assert all(word in error for word in WRONG[words].split()), error


def test_people_sit_first_and_the_last_bot_as_often_as_needed():
    session = new_session(Rules(4), Roster(), ["random", "greedy"], 1, 1)
    bots = [agent.name for agent in session.agents[1:]]
    assert (session.agents[0], bots) == (None, ["random", "greedy", "greedy"])
    assert session.names == ("you", "random", "greedy 3", "greedy 4")
    assert new_session(Rules(3), Roster(), [], 2, 1).names == ("player 0", "player 1", "planner")


def test_the_command_plays_what_is_piped_in(monkeypatch, capsys, tmp_path):
    file = tmp_path / "game.jsonl.gz"
    new = "--seed 3 --bot greedy --players 3 --crown-choice deferred".split()  # noqa: SIM905
    for words, lines, said in (
        (new, f"d3\nlog\nsave {file}\nquit\n", "0 A you: disc> d3\n"),
        ([str(file)], "quit\n", "0 A you: crown> quit\n"),
    ):
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        assert command.main(["--terminal", *words]) == 0
        printed = capsys.readouterr()
        assert said in printed.out and printed.err == ""
    assert first_record(file)["agents"] == [None, "greedy", "greedy"]
    assert taken_up(first_record(file), Roster()).rules == Rules(3, "deferred")


def test_bytes_that_are_no_text_are_no_move_and_the_game_goes_on(monkeypatch, capsys):
    lines = io.BytesIO("d3, \u00fc\nsave w\u00f6lf.jsonl\nboard\nquit\nquit\n".encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(lines, encoding="ascii"))
    assert command.main(["--terminal", "--seed", "3"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "" and "name a file: save FILE" in printed.out
    assert printed.out.endswith("disc> quit\n")
