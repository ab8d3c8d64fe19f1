"""examples/language_model.py plays against a scripted endpoint."""

import json
import runpy
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import carolus_env as ce
from carolus_env import bots, evaluation
from carolus_env.bots import AgentError
from carolus_env.integrations.external import request_for
from carolus_env.notation import NotationError

EXAMPLE = Path(__file__).parent.parent / "examples" / "language_model.py"
SECRET = "sk-very-secret"

model = runpy.run_path(str(EXAMPLE))


def moves_of(prompt):
    """The moves that a prompt lists, before its last paragraph."""
    return prompt.split("\n\n")[-2].split(", ")


@pytest.mark.parametrize("rules", [ce.Rules(2), ce.Rules(3, "deferred", max_rounds=None)])
def test_the_prompt_has_the_rules_of_the_game_and_what_was_wrong(rules):
    games = ce.new_games(rules, 1, seed=1)
    asked, chats = request_for(1, games[0]), []
    said = ["E+1", '{"move": "E+1"}', '{"move": "d1, d2"}']

    def ask(chat):
        chats.append([message["content"] for message in chat])
        last = moves_of(chat[0]["content"])[-1]
        return said.pop(0) if said else f'{{"move": "x"}} or {{"a": 1, "move":"{last}"}}'

    assert model["choose"](asked, ask, 4) == asked["legal"][-1]
    [prompt], *later = chats
    assert moves_of(prompt) == asked["moves"] and str(ce.Game(state=games)) in prompt
    for part in (f"{rules.castles_to_win} castles wins", f"plays {rules.dice} paladins"):
        assert part in prompt
    assert ("After round 100" in prompt) == (rules.max_rounds == 100)
    assert ("the start of the next turn" in prompt) == (rules.crown_choice == "deferred")
    wrong = ("there is no", "move 'E\\+1'", "move 'd1, d2'")
    for (first, _, again), reason in zip(later, wrong, strict=True):
        assert first == prompt and reason.replace("\\", "") in again
    said += ["no"] * 2
    with pytest.raises(NotationError, match="there is no"):
        model["choose"](asked, ask, 2)


@pytest.fixture
def endpoint(monkeypatch):
    """An endpoint on this machine that plays the last move of a list; ``status`` is its answer's.

    ``asked`` has the path, the key and the model of each request.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append((self.path, self.headers["Authorization"], body["model"]))
            text = json.dumps({"move": moves_of(body["messages"][0]["content"])[-1]})
            self.send_response(server.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(json.dumps({"choices": [{"message": {"content": text}}]}).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.status = [], 200
    threading.Thread(target=server.serve_forever, args=(0.01,)).start()
    monkeypatch.setenv("STUB_KEY", SECRET)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # where nothing listens
    yield server
    server.shutdown()
    server.server_close()


def test_a_model_at_an_endpoint_plays_and_neither_redirects_nor_errors_get_the_key(endpoint):
    url = f"http://127.0.0.1:{endpoint.server_port}/v1/"
    agent = bots.make(f"exe:{sys.executable} {EXAMPLE} {url} tiny --key STUB_KEY --tries 2")
    pair = [agent, bots.make("random")]
    results, _ = evaluation.play_games([[0, 1]], pair, ce.Rules(2, max_rounds=1), seed=5)
    assert results["shares"].tolist() == [[0.5, 0.5]] and len(endpoint.asked) > 5
    assert set(endpoint.asked) == {("/v1/chat/completions", f"Bearer {SECRET}", "tiny")}
    endpoint.asked, endpoint.status = [], 302
    with pytest.raises(AgentError, match="HTTPError: HTTP Error 302: Found") as caught:
        agent.act(ce.new_games(ce.Rules(2), 1, seed=1), ce.new_streams(1, 1))
    assert [path for path, *_ in endpoint.asked] == ["/v1/chat/completions"] * 2
    assert SECRET not in str(caught.value)
