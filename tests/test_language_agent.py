"""The agent ``llm``: a stub server answers well, badly, late or not at all."""

from __future__ import annotations

import json
import pickle
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scripted_model import answer, moves_for

import carolus_env as ce
from carolus_env import bots, engine, evaluation
from carolus_env.bots import AgentError
from carolus_env.engine.rules import CLAN_NAMES
from carolus_env.integrations.language import agent as language
from carolus_env.integrations.language.chat import Chat, ChatError

SECRET = "sk-Very+Secret/0123456789=="
RULES = ce.Rules(2, max_rounds=3)


class Stub:
    """An endpoint on this machine; ``reply(prompt, number)`` gives what it answers: a text (the
    model's), bytes (the body), a pair with the status before it, or None: nothing comes.
    """

    def __init__(self, reply):
        self.prompts, self.requests = [], []
        self.at_once = self.most_at_once = 0
        stub, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                [message] = body["messages"]
                with lock:
                    number = len(stub.prompts)
                    stub.requests.append((self.path, dict(self.headers), body))
                    stub.prompts.append(message["content"])
                    stub.at_once += 1
                    stub.most_at_once = max(stub.most_at_once, stub.at_once)
                try:
                    self.answer(reply(message["content"], number))
                except OSError:  # the client has given up
                    self.close_connection = True
                with lock:
                    stub.at_once -= 1

            def answer(self, given):
                if given is None:
                    return stub.closing.wait(20)
                status, data = given if isinstance(given, tuple) else (200, given)
                if isinstance(data, str):
                    data = json.dumps({"choices": [{"message": {"content": data}}]}).encode()
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", stub.url + "/elsewhere")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                size = 64 if stub.drips else len(data) + 1
                for k in range(0, len(data), size):
                    self.wfile.write(data[k : k + size])
                    stub.closing.wait(0.05 if stub.drips else 0)
                return None

            def log_message(self, *args):
                pass

        self.drips, self.closing = False, threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.01,)).start()


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(language, "FIRST_WAIT", 0.05)


@pytest.fixture
def serve():
    stubs = []

    def start(reply):
        stubs.append(Stub(reply))
        return stubs[-1]

    yield start
    for stub in stubs:
        stub.closing.set()
        stub.server.shutdown()
        stub.server.server_close()


def well(prompt, number):
    return answer(moves_for(prompt))


def make(stub, options=""):
    agent = language.make_llm(f"url={stub.url},model=some/model:7b,{options}")
    agent.name = "llm:spec"
    return agent


def first_turn():
    """A game that waits for the paladins of a turn."""
    game = ce.Game(ce.Rules(2), seed=296)
    game.play("d2, d3")
    return game


@pytest.mark.parametrize("players", [2, 3, 4])
def test_an_answer_is_a_whole_turn_and_is_asked_for_once(serve, players):
    stub = serve(well)
    agent, rules = make(stub), ce.Rules(players, max_rounds=3)
    tables = [[0] + [1] * (players - 1), [1] * (players - 1) + [0]]
    pair = [agent, bots.make("random")]
    results, actions = evaluation.play_and_record(tables, pair, rules, seed=5)
    assert results.returns.sum() == 0
    assert agent.asked == len(stub.prompts)
    mine = results.decisions[np.array(tables) == 0].sum()
    turns = sum("Now play" in prompt for prompt in stub.prompts)
    assert turns <= 2 * 2 * 3 < mine / 1.5  # a disc and a turn a round, of each game
    _, again = evaluation.play_and_record(tables, [make(stub), bots.make("random")], rules, seed=5)
    assert [game.tolist() for game in again] == [game.tolist() for game in actions]


def test_the_request_is_that_of_a_chat(serve, monkeypatch):
    monkeypatch.setenv("STUB_KEY", SECRET)
    stub = serve(well)
    game = first_turn()
    agent = make(stub, "key=STUB_KEY,temperature=0.5,max_tokens=99")
    action = agent.act_one(game.states[0])
    assert action in game.legal_actions
    [(path, headers, body)] = stub.requests
    assert path == "/v1/chat/completions"
    del body["messages"]
    assert body == {"model": "some/model:7b", "temperature": 0.5, "max_tokens": 99}
    assert bots.make(f"llm:url={stub.url},model=m").act_one(game.states[0]) == action
    assert headers["Authorization"] == f"Bearer {SECRET}"
    make(stub).act_one(game.states[0])
    _, headers, body = stub.requests[-1]
    assert body.keys() == {"model", "messages"} and "Authorization" not in headers


def test_one_decision_at_a_time_unless_it_is_forced(serve):
    listed = r" are:\n(.*?)[,\n]"
    stub = serve(lambda prompt, number: answer(re.search(listed, prompt)[1]))
    agent, game, forced = make(stub, "answers=decision"), first_turn(), 0
    for step in range(1, 99):
        assert agent.act_one(game.states[0]) == game.legal_actions[0]
        forced += len(game.legal_actions) == 1
        assert agent.asked == len(stub.prompts) == step - forced
        if forced:
            return
        game.play(game.legal_actions[0])
    pytest.fail("no decision was forced")


def test_games_are_asked_for_at_the_same_time(serve):
    games = ce.new_games(ce.Rules(2), 8, seed=1)
    for number in (4, 1):
        meet = threading.Barrier(number)  # nobody is answered before so many have asked
        stub = serve(lambda prompt, k, meet=meet: (meet.wait(20), well(prompt, k))[1])
        make(stub, f"parallel={number}").act(games, ce.new_streams(1, 8))
        assert stub.most_at_once == number


def test_equal_positions_of_different_games_do_not_mix(serve):
    """Two turns that begin alike: their later decisions are due in equal positions."""
    state = first_turn().states
    reserve = state["reserves"][0, int(state["player"][0])]
    names = [name for name, n in zip(CLAN_NAMES, reserve, strict=True) if n]
    common = CLAN_NAMES[int(reserve.argmax())]
    one, other = [name for name in names if name != common][:2]
    answers = [f"{common}>7, {common}>7, {name}>court, E+1" for name in (one, other)]
    stub = serve(lambda prompt, number: answer(answers[number]))
    games, streams = ce.pick(state, np.array([0, 0])), ce.new_streams(4, 2)
    agent = make(stub, "parallel=1")
    for _ in range(3):
        engine.step(games, agent.act(games, streams), roll=False)
    assert [CLAN_NAMES[court.argmax()] for court in games["courts"].sum(axis=1)] == [one, other]
    assert agent.asked == 2


def test_an_illegal_answer_is_asked_for_again_with_what_was_wrong(serve):
    bad, game = ["I do not know.", '{"move": "E+1"}', '{"move": 5}'], first_turn()
    stub = serve(lambda prompt, number: bad[number] if number < 3 else well(prompt, number))
    assert make(stub, "tries=4").act_one(game.states[0]) in game.legal_actions
    first, *later = stub.prompts
    wrong = ("I do not know.", "the paladins come first, 3 paladins still", "must be a text")
    for prompt, said in zip(later, wrong, strict=True):
        assert prompt.startswith(first) and said in prompt.removeprefix(first)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ('{"move": "E+1"}', "the paladins come first"),
        (b"not JSON", "not JSON"),
        (b'{"choices": []}', r"choices\[0\].message"),
        (b'{"choices": [{"message": {"content": 5}}]}', "choices"),
        ((500, b"oh"), "HTTP 500 Internal Server Error: oh"),
        ((503, b'{"error": {"message": "busy"}}'), "HTTP 503 Service Unavailable: busy"),
        ((429, b""), "HTTP 429 Too Many Requests"),
    ],
)
def test_after_its_tries_the_agent_is_at_fault(serve, reply, why):
    stub = serve(lambda prompt, number: reply)
    agent = make(stub, "tries=3")
    with pytest.raises(AgentError, match=why) as caught:
        agent.act_one(first_turn().states[0])
    assert len(stub.prompts) == 3
    assert caught.value.agent == "llm:spec"
    assert "gave no legal move as player" in caught.value.reason


@pytest.mark.parametrize(("status", "why"), [(400, "400 .*: no such model"), (302, "redirects")])
def test_no_refusal_is_repeated_redirect_followed_or_proxy_used(serve, monkeypatch, status, why):
    proxy = serve(well)
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    stub = serve(lambda prompt, number: (status, b'{"error": {"message": "no such model"}}'))
    with pytest.raises(AgentError, match=why):
        make(stub, "tries=5").act_one(first_turn().states[0])
    assert [path for path, *_ in stub.requests] == ["/v1/chat/completions"]
    assert not proxy.requests


def test_an_endpoint_that_is_not_there_is_asked_again_after_longer_and_longer(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    agent, waits = language.make_llm(f"url=http://127.0.0.1:{port}/v1,model=m"), []
    monkeypatch.setattr(language.time, "sleep", waits.append)
    with pytest.raises(AgentError, match=r"no answer from the endpoint .*ConnectionRefused"):
        agent.act_one(first_turn().states[0])
    assert waits == [0.05, 0.1]


@pytest.mark.parametrize("drips", [False, True])
def test_an_answer_must_come_in_time_and_has_a_largest_size(serve, drips, monkeypatch):
    stub = serve(lambda prompt, number: "x" * 10_000 if drips else None)
    stub.drips = drips
    with pytest.raises(AgentError, match=r" 0.3 s"):
        make(stub, "timeout=0.3,tries=2").act_one(first_turn().states[0])
    assert len(stub.prompts) == 2
    monkeypatch.setattr("carolus_env.integrations.language.chat._LARGEST", 1000)
    with pytest.raises(ChatError, match="1,000"):
        Chat(serve(lambda prompt, number: "x" * 1000).url, "m").ask("hello")


def test_random_moves_are_played_only_if_the_spec_says_so_and_are_counted(serve):
    stub = serve(lambda prompt, number: "no")
    agent = make(stub, "failed=random,tries=2")
    with pytest.warns(UserWarning, match="a random action is played"):
        results = evaluation.play_games([[0, 1]], [agent, bots.make("random")], RULES, seed=1)
    assert agent.failures * 2 == agent.asked == len(stub.prompts) > 10
    assert results.returns.sum() == 0


def leaks(text):
    """Whether a text holds the key, or a recognisable part of it."""
    return any(SECRET[k : k + 8] in text for k in range(len(SECRET) - 7))


def test_the_key_appears_nowhere(serve, monkeypatch, tmp_path, capfd):
    """Not in errors, results, records, pickles or files, even if the server repeats it."""
    monkeypatch.setenv("STUB_KEY", SECRET)

    def parrot(prompt, number):
        if number % 3 == 0:
            return f"My key is {SECRET}" + "." * 480
        if number % 3 == 1:
            return json.dumps({"move": f"{SECRET}>court"})
        return well(prompt, number)

    stub = serve(parrot)
    agent = make(stub, "key=STUB_KEY,parallel=1")
    opponent = bots.make("random")
    plan = evaluation.Plan(RULES, ("llm:spec", "random"), deals=1, seed=3)
    cup = evaluation.Tournament(plan, [agent, opponent])
    cup.run(file=tmp_path / "games.jsonl", records=tmp_path / "records.jsonl")
    assert len(stub.prompts) > 6
    assert not any(leaks(prompt) for prompt in stub.prompts)
    texts = [repr(agent), repr(agent._chat), repr(vars(agent)), str(pickle.dumps(agent))]
    texts += [path.read_text() for path in tmp_path.iterdir()]
    texts += [json.dumps(cup.summary(rated=False), default=str)]
    for reply in (
        SECRET,
        json.dumps({"move": SECRET}),
        (401, json.dumps({"error": {"message": f"wrong key {SECRET}"}}).encode()),
        (500, f"{'x' * 280} {SECRET} {SECRET}".encode()),
        SECRET.encode(),
    ):
        stub = serve(lambda prompt, number, reply=reply: reply)
        agent = make(stub, "key=STUB_KEY,tries=2")
        with pytest.raises(AgentError) as caught:
            agent.act_one(first_turn().states[0])
        assert stub.requests[0][1]["Authorization"] == f"Bearer {SECRET}"
        with pytest.raises(evaluation.ArenaError) as stopped:
            evaluation.play_games([[0, 1]], [agent, opponent], RULES, seed=1)
        texts += [str(caught.value), repr(caught.value), stopped.value.traceback]
    texts += capfd.readouterr()
    assert not any(leaks(text) for text in texts)
    assert leaks(f"a {SECRET[3:]}")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (f"url=http://h/v1,model=m,key={SECRET}", "key"),
        ("url=http://h/v1,model=m,key=NO_SUCH_VARIABLE", "not set"),
        ("url=http://h/v1,model=m,key=BROKEN_KEY", "characters"),
        (f"url=http://me:{SECRET[:14]}@h/v1,model=m", "password"),
        (f"url=http://h/v1?key={SECRET},model=m", "query"),
        (f"url={SECRET},model=m", "url"),
        (f"url=http://h/v1,model=m,{SECRET[:-2]}", "key=value"),
        (f"url=http://h/v1,model=m,tries={SECRET}", "tries"),
        ("url=http://h/v1", "model"),
        ("url=http://h/v1,model=m,temperature=-0.5", "temperature"),
    ],
)
def test_errors_about_options_name_them_and_repeat_no_key(options, why, monkeypatch):
    monkeypatch.setenv("BROKEN_KEY", f"{SECRET}\nX-Other: 1")
    with pytest.raises(AgentError, match=why) as caught:
        language.make_llm(options)
    assert not leaks(f"{caught.value} {caught.value!r}") and caught.value.__cause__ is None
