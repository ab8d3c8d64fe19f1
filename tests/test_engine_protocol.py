"""Bots in other languages: the protocol, ``exe:PROGRAM``, ``carolus engine`` and the bot in C."""

import gc
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from string import Template

import numpy as np
import pytest

import carolus_env as ce
from carolus_env import bots, evaluation
from carolus_env.bots import AgentError
from carolus_env.commands import positions
from carolus_env.integrations import external
from carolus_env.integrations import external as protocol
from carolus_env.notation import read_move
from carolus_env.system.cancellation import Stop, Stopped

ROOT = Path(__file__).parent.parent
PYTHON = f"exe:{sys.executable}"

STUB = Template("""
import json, os, signal, sys
def say(**message):
    print(json.dumps(message), flush=True)
def half(text):
    print(text, end="", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "protocol" in asked:
        $greeting
    else:
        $answer
$end
""")
WELCOME = "say(**asked, name='stub')"
FIRST = "say(id=asked['id'], action=asked['legal'][0], comment='an unknown key')"
CHILD = "import subprocess; subprocess.Popen(['sleep', '99'])"
DEAF = "print('deaf', file=sys.stderr, flush=True)\nwhile True: signal.pause()"


@pytest.fixture
def stub(tmp_path):
    """Return a function that writes a program in Python, and makes its agent."""

    def make(answer=FIRST, options="", *, greeting=WELCOME, end=""):
        file = tmp_path / "stub.py"
        file.write_text(STUB.substitute(greeting=greeting, answer=answer, end=end))
        return bots.make(f"{PYTHON} {file}{options}")

    return make


def placing():
    """A game that waits for a paladin."""
    game = ce.Game(ce.Rules(2), seed=296)
    game.play("d2, d3")
    return game.states


def act(agent, states=None):
    states = placing() if states is None else states
    return agent.act(states, ce.new_streams(1, len(states))).tolist()


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_request_has_the_moves_and_hides_the_dice(players):
    games, streams = ce.new_games(ce.Rules(players), 1, seed=3), ce.new_streams(3, 1)
    given = {"seconds": 1.0, "seed": 5, "analyse": False}
    while not ce.is_over(games)[0]:
        asked = protocol.request_for(1, games[0], **given)
        assert asked["legal"] == ce.legal_actions(games[0]).tolist()
        assert [[action] for action in asked["legal"]] == [
            read_move(games[0], move) for move in asked["moves"]
        ]
        assert asked.keys() == {key.name for key in protocol.MESSAGES["request"]}
        assert protocol.read_message(protocol.message_line(asked), "request") == asked
        other = games.copy()
        other["generator"] += 1
        assert protocol.request_for(1, other[0], **given) == asked
        ce.step(games, ce.random_actions(games, streams))


def test_the_page_shows_messages_as_they_are():
    page = (ROOT / "docs" / "write_a_bot.md").read_text()
    block = page.partition("## In any language")[2].split("```")[3].replace("\n   ", " ").strip()
    kinds = list(protocol.MESSAGES)[:-1]
    for kind, line in zip(kinds, block.splitlines(), strict=True):
        assert protocol.read_message(line[2:].encode(), kind) == json.loads(line[2:])
    limits = external.ExternalOptions()
    assert f"`seconds` ({limits.seconds:g})" in page and f"`start` ({limits.start:g})" in page
    assert f"at most {protocol.LONGEST:,} bytes" in page


def test_our_engine_goes_on_after_an_error_and_rolls_ahead_by_the_seed():
    asked = protocol.request_for(7, placing()[0])
    lines = [
        protocol.GREETING,
        asked,
        {"protocol": "chess", "version": 1},
        {"id": 1},
        {"id": 2, "position": "2 | 3"},
        {"id": 3, "position": ce.notation.to_line(ce.new_games(ce.Rules(), 1, roll=False)[0])},
        {**asked, "seed": -1},
        {**asked, "seed": 9, "analyse": True},
    ]
    lines += [{"id": 5, "position": 3}, {"id": "5", "position": 3}]  # an id that can be read or not
    requests = io.BytesIO(b"[]\n" + b"".join(map(protocol.message_line, lines)) + b"nonsense")
    answers = io.BytesIO()
    positions.serve(bots.make("planner"), requests, answers)
    said = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert said[1] == {**protocol.GREETING, "name": "planner"}
    [best] = bots.make("planner").act(placing(), ce.new_streams(1, 1))
    assert (said[2]["id"], said[2]["action"]) == (7, best)
    assert (said[8]["seed"], len(said[8]["values"])) == (9, 2), "the planner draws nothing"
    for message, text in (
        (said[0], "a message must be an object"),
        (said[3], "the protocol must be carolus-engine, version 1"),
        (said[4], "position is missing"),
        (said[5], "position: turn is missing"),
        (said[6], "waits for no decision: its phase is roll"),
        (said[7], "seed must be from 0"),
        (said[-1], "sent 'nonsense': not JSON"),
    ):
        assert text in message["error"]
    ids = [message.get("id") for message in said]
    assert ids == [None, None, 7, None, 1, 2, 3, 7, 7, 5, None, None]
    rolled, agent = [], bots.RandomBot()
    agent.act = lambda states, _: rolled.append(states["generator"].tolist()) or np.array([15])
    requests = b"".join(protocol.message_line({**asked, "seed": seed}) for seed in (5, 6, 5))
    positions.serve(agent, io.BytesIO(requests), io.BytesIO())
    assert rolled[0] == rolled[2] != rolled[1]


def test_a_request_that_is_too_long_gets_one_answer():
    asked = protocol.message_line(protocol.request_for(7, placing()[0]))
    for length in (protocol.LONGEST - 1, protocol.LONGEST, 3 * protocol.LONGEST):
        answers = io.BytesIO()
        positions.serve(bots.RandomBot(), io.BytesIO(b"x" * length + b"\n" + asked), answers)
        wrong, right = map(json.loads, answers.getvalue().splitlines())
        assert "not JSON" in wrong["error"] and right["id"] == 7


def test_an_agent_that_prints_leaves_the_output_alone(tmp_path, monkeypatch, capsys):
    (tmp_path / "bot.py").write_text("def loud(*_):\n    print('LOUD')\n    raise KeyError(5)\n")
    given, output = protocol.message_line(protocol.request_for(1, placing()[0])), io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output))
    assert positions.engine([f"{tmp_path}/bot.py:loud"]) == 0
    assert json.loads(output.getvalue()) == {"id": 1, "error": "KeyError: 5 (bot.py, line 3)"}
    assert "LOUD" in capsys.readouterr().err
    assert positions.engine(["greddy"]) == 2
    assert "unknown agent 'greddy'" in capsys.readouterr().err


@pytest.mark.parametrize("spec", ["planner", "random", "mcts:sims=10"])
def test_an_engine_of_ours_plays_the_same_games_as_the_agent(spec):
    remote = bots.make(f"{PYTHON} -m carolus_env engine {spec}")
    played = []
    for agent in (bots.make(spec), remote):
        pair = [agent, bots.make("greedy")]
        for players, tables in ((2, [[0, 1], [1, 0], [0, 1]]), (3, [[0, 1, 1]])):
            _, actions = evaluation.play_games(tables, pair, ce.Rules(players), seed=3)
            played.append([game.tolist() for game in actions])
    assert played[:2] == played[2:]
    if spec == "planner":
        games = ce.new_games(ce.Rules(3), 4, seed=1)
        there, here = (bots.opinion(agent, games) for agent in (remote, bots.make(spec)))
        assert (there.probabilities == here.probabilities).all()
        assert (there.values == here.values).all()


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_bot_in_c_beats_random(tmp_path, monkeypatch):
    source = str(ROOT / "examples" / "engine_bot.c")
    subprocess.run(["cc", "-Wall", "-Werror", "-o", tmp_path / "bot", source], check=True)
    monkeypatch.chdir(tmp_path)
    pair = [bots.make("exe:./bot,seconds=5"), bots.make("random")]
    monkeypatch.chdir("/")  # a relative path is that of the folder where the agent was made
    for players in (2, 3, 4):
        match = evaluation.play_pairing(pair, ce.Rules(players), 30, seed=1)
        assert match.win_rate[0] > 0.9
    assert pair[0].name == "exe:./bot,seconds=5"


def test_a_program_may_answer_in_the_notation_and_give_values(stub):
    states = placing()
    text = "say(id=asked['id'], action=asked['moves'][3], values=[0.25, 0.75], seed=17)"
    agent, streams = stub(text), ce.new_streams(1, 1)
    action = ce.legal_actions(states[0])[3]
    assert agent.act(states, streams).tolist() == [action] and streams.tolist() == [17]
    opinion = bots.opinion(agent, states)
    assert opinion.probabilities[0, action] == 1
    assert opinion.values.tolist() == [[0.25, 0.75]]
    with pytest.raises(AgentError, match="values of its opinion must be numbers"):
        bots.opinion(stub(text.replace("0.25", "'x'")), states)
    assert stub().opinion(states, streams)[1] is None
    draws = ce.new_streams(1, 1)
    act_twice = [stub().act(states, draws).tolist() and int(draws[0]) for _ in range(2)]
    assert len({1, *act_twice}) == 3, "each decision has another seed"


ANSWERS = {
    "print('hello', flush=True)": "sent 'hello': not JSON: Expecting value, column 1",
    "print(flush=True)": "sent '': not JSON",
    "say(id=asked['id'])": "answered action None, no whole number and no text",
    "say(id='1', action=15)": r"sent '{.id.: .1., .action.: 15}': id must be a whole number",
    "say(id=asked['id'], action=0)": r"answered action 0; legal are \[15, 16,",
    "say(id=asked['id'], action=True)": "answered action True, no whole number and no text",
    "say(id=asked['id'], action=15.0)": r"answered action 15\.0, no whole number and no text",
    "say(id=asked['id'], action='E+1')": r"answered move 'E\+1': expected a paladin",
    "say(id=asked['id'], action='2 red>court')": "answered action '2 red>court'; legal",
    "say(id=9, action=15)": "answered id 9, expected 1",
    "say(id=asked['id'], action=15, seed='x')": "sent .*: seed must be a whole number",
    "say(id=asked['id'], error='lost\\x1b')": r"reports an error: 'lost\\x1b'",
    "print('x' * 70_000, flush=True)": "sent more than 65,536 bytes",
    "half('{'); sys.exit(3)": "ended with exit code 3 after half a line, '{'",
    "os.kill(os.getpid(), signal.SIGKILL)": "ended with exit code -9",
    "os.close(1); signal.pause()": "closed its output",
    "half('{'); signal.pause()": "gave no answer within 0.3 s after half a line, '{'",
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_wrong_answer_is_the_agents_fault_and_names_the_position(stub, monkeypatch, answer):
    monkeypatch.setattr(external, "GRACE", 0.2)
    options = ",seconds=0.3" if "0.3 s" in ANSWERS[answer] else ""
    agent, states = stub(answer, options), placing()
    with pytest.raises(AgentError, match=f"the program {ANSWERS[answer]}") as caught:
        act(agent, states)
    assert caught.value.agent == agent.name
    assert f"in position {ce.notation.to_line(states[0], generator=False)!r}" in str(caught.value)
    with pytest.raises(evaluation.ArenaError) as stopped:
        evaluation.play_games([[0, 1]], [agent, bots.make("random")], ce.Rules(2), seed=1)
    assert stopped.value.agent == agent.name


@pytest.mark.parametrize(
    ("greeting", "why"),
    [
        ("say(**{**asked, 'version': 2}, name='stub')", "the protocol must be .* version 1"),
        ("print(line, end='', flush=True)", "name is missing"),
        ("signal.pause()", "gave no answer within 0.2 s"),
        (None, "does not read its input"),  # and more is sent than a pipe holds
    ],
)
def test_a_program_must_answer_the_greeting(stub, monkeypatch, greeting, why):
    agent = stub(options=",start=0.2" if "0.2 s" in why else "", greeting=greeting)
    if greeting is None:
        monkeypatch.setattr(protocol, "message_line", lambda message: b" " * 2**20)
        agent = bots.make("exe:sleep 99,start=0.2")
    with pytest.raises(AgentError, match=why):
        act(agent)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("exe", "'' is no program"),
        ("exe:,seconds=1", "'' is no program"),
        ("exe:./none", "'./none' is no program here or on the PATH"),
        ("exe:bot.py", "a script follows its interpreter"),
        ("exe:'true", "No closing quotation"),
        ("exe:true,second=1", "has no option 'second'; did you mean seconds?"),
        ("exe:true,seconds=0", "seconds must be a number from 0.01"),
    ],
)
def test_a_wrong_spec_is_refused_at_once(spec, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.py").touch()
    with pytest.raises(AgentError, match=why):
        bots.make(spec)
    (tmp_path / "bot").write_text("not a program")
    (tmp_path / "bot").chmod(0o755)
    with pytest.raises(AgentError, match="the program cannot be started: Exec format error"):
        act(bots.make("exe:./bot"))
    agent = bots.make("exe:true #1 'mcts:sims=9,seconds=3' \"a b\",seconds=2,start=4")
    assert agent.command == ("true", "#1", "mcts:sims=9,seconds=3", "a b")
    assert (agent.options.seconds, agent.options.start) == (2, 4)


def living(group):
    """Return how many processes of a group are alive."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat="], check=True, stdout=subprocess.PIPE)
    rows = [row.split() for row in listed.stdout.decode().splitlines()]
    return sum(int(pgid) == group and stat[0] != "Z" for pgid, stat in rows)


def wait_for_the_end(group, seconds):
    end = time.monotonic() + seconds
    while living(group):
        assert time.monotonic() < end, "it outlives us"
        time.sleep(0.02)


def group_of(agent):
    return os.getpgid(agent._program.process.pid)


@pytest.mark.parametrize("end", ["", DEAF])
def test_a_program_ends_with_its_agent_also_a_deaf_one(stub, monkeypatch, end, capfd):
    monkeypatch.setattr(external, "GRACE", 5.0 if not end else 0.5)
    agent = stub(f"{CHILD}; {FIRST}", end=end)
    act(agent)
    group = group_of(agent)
    assert living(group) == 3, "the program, its child and the guard"
    started = time.monotonic()
    del agent
    gc.collect()
    wait_for_the_end(group, 4)
    assert time.monotonic() - started < 4
    assert ("deaf" in capfd.readouterr().err) == bool(end), "it had its time"


def test_a_program_ends_where_this_process_is_killed(stub):
    agent = stub(f"{CHILD}; {FIRST}", end=DEAF)
    code = (
        "import os, sys, pickle\nsys.path.insert(0, 'tests')\n"
        "import test_engine_protocol as tests\n"
        f"agent = pickle.loads({pickle.dumps(agent)!r})\n"
        "tests.act(agent)\nprint(tests.group_of(agent), flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    wait_for_the_end(int(killed.stdout), 20)
    assert killed.returncode == -9


def test_a_copy_has_a_program_of_its_own_which_a_stop_ends_and_the_next_decision_starts(stub):
    agent, stop = stub(options=",seconds=7"), Stop()
    with ThreadPoolExecutor(4) as pool:  # threads may share it
        answers = list(pool.map(lambda _: act(agent, placing().repeat(20)), range(4)))
    assert answers == [[15] * 20] * 4
    copy, group = pickle.loads(pickle.dumps(agent)), group_of(agent)
    assert (copy.name, copy.options, copy.folder) == (agent.name, agent.options, agent.folder)
    assert act(copy) == [15]
    assert group_of(copy) != group
    stop.set()
    with stop.watched(), pytest.raises(Stopped):
        act(agent)
    wait_for_the_end(group, 4)
    assert act(agent) == [15]
