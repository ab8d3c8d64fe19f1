"""Language models: words, turns in the notation, the harness, the agent `llm` and a stub server.

A scripted model answers prompts by their text alone: it reads what is asked, and its reserve.
"""

import dataclasses
import itertools
import json
import pickle
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import strategies
from positions import figure_5, figure_6, paladins, position

import carolus_env as ce
from carolus_env import bots, engine, evaluation
from carolus_env.bots import AgentError
from carolus_env.engine import chance
from carolus_env.engine.rules import CLAN_NAMES, CROWN_CHOICE, DISC, PLACE
from carolus_env.integrations import language, llm
from carolus_env.integrations.language import generate_prompt, observe, parse_response, read_turn
from carolus_env.notation import NotationError, turn_text

KINDS = strategies.ALL_KINDS[:5]
SHORT = [dataclasses.replace(rules, max_rounds=4) for rules in KINDS]
"""Of games between models that never win."""


def moves_for(prompt):
    """A legal whole turn, for a prompt that asks for one: paladins to court, the Emperor a step."""
    asked = prompt[prompt.rindex("\nNow ") :]
    discs = re.search(r"One of (d[1-5](?:, d[1-5])*)", asked)
    if discs:
        return discs[1].split(", ")[0]
    seat = re.search(r"You are player (\d)", prompt)[1]
    moves = []
    reserve = dict(counts(re.search(rf"Reserves:\n(?:.*\n)*?player {seat}: (.*)", prompt)[1]))
    if crowns := re.search(r"the clan of your (?:(\d) )?crown", asked):
        clans = re.search(r"can become (.*?)\.", asked)[1].split(", ")
        left = counts(re.search(r"\nsupply: (.*)", prompt)[1])
        courts = re.search(r"Courts .*:\n((?:player .*\n)+)", prompt)[1].splitlines()
        for clan in clans:  # when the supply holds none, all courts return as many as one of them
            returned = len(courts) * min(counts(court).get(clan, 0) for court in courts)
            left[clan] = left.get(clan, 0) + returned
        for _ in range(int(crowns[1] or 1)):
            clan = max(clans, key=left.get)
            left[clan] -= 1
            reserve[clan] = reserve.get(clan, 0) + 1
            moves.append(f"crown={clan}")
    if paladins := re.search(r"play (\d) paladin", asked):
        held = [clan for clan, number in reserve.items() for _ in range(number)]
        moves += [f"{clan}>court" for clan in held[: int(paladins[1])]]
    if "move the Emperor" in asked:
        moves.append("E+1")
    return ", ".join(moves)


def counts(text):
    """``{"red": 2}`` of ``2 red, 1 blue* and 2 crowns to decide``."""
    result = re.findall(r"(\d+) (red|pink|blue|yellow|green)", text)
    return {clan: int(number) for number, clan in result}


def answer(move):
    """What a model says around its move."""
    return f"I think {{this}} is best.\n```json\n{json.dumps({'move': move})}\n```\nThank you."


def random_turn(state, stream):
    """What a player decides in a row, at random."""
    game, actions = np.array([state]), []
    while not actions or language.goes_on(game, state):
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
def test_full_turns_read_back_as_the_actions_that_they_were_written_from(rules):
    stream, phases = ce.new_streams(3, 1), set()
    for state, played in itertools.islice(positions(rules, 2), 60):
        for actions in (played, random_turn(state, stream)[0]):
            text = turn_text(state, actions)
            alike = [list(run) for _, run in itertools.groupby(actions)]
            assert read_turn(state, text) == actions
            assert len(text.split(", ")) <= len(alike) + 4
            without = re.sub(r"!|#| at [\d-]+| [ABC] (builds|takes).*", "", text)
            assert read_turn(state, without.upper().replace(",", ";\n")) == actions
            assert len(text) < language.LONGEST_TURN / 2
        phases.add(int(state["phase"]))
    assert phases >= {DISC, PLACE, CROWN_CHOICE}  # and MOVE, with an empty reserve


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "there is no move in the answer: play 3 paladins from your reserve, then move"),
        ("E+1", "move 'E+1': expected a paladin such as 'red>court', 'blue>7' or '2 blue>7-9'"),
        ("3 red>court, E+1", "move '3 red>court': expected a number from 1 to 2, got 3"),
        ("2 red>court, 2 yellow>7, E+1", "'2 yellow>7': expected a number from 1 to 1, got 2"),
        ("2 red>court, yellow>7", "the turn is not complete: then move the Emperor"),
        (
            "2 red>court",
            "not complete: then play a paladin (1 left in this turn",
        ),
        ("2 red>court, yellow>7, yellow>7", "move 'yellow>7': expected a move such as 'E+2'"),
        ("2 red>court, yellow>7, E+5", "may not play that now; legal now: E+1, E+2, E+3"),
        ("2 red>court, yellow>7, E+1, E+1", "'E+1' is one move too many for this turn"),
        ("2 red>court, yellow>17, E+1", "there is no region 17"),
        ("my move is red", "expected a paladin such as"),
        ("x" * 1000, "got 1000 characters"),
    ],
)
def test_a_turn_that_is_refused_says_which_move_and_what_is_legal(text, why):
    game = figure_6()
    before = game.tobytes()
    with pytest.raises(NotationError, match=re.escape(why)):
        read_turn(game[0], text)
    assert game.tobytes() == before


def test_refused_discs_and_crowns_say_what_is_legal():
    game = ce.Game(ce.Rules(3), seed=296)
    while game.phase != DISC:
        game.play(game.legal_actions[0])
    opening = game.states.copy()
    game.play("d2")
    courts, nothing = [paladins(red=37), paladins(blue=1)], [paladins(), paladins()]
    dry = position(courts=courts, reserves=nothing, phase="crown", crowns=[1, 0])
    for states, text, why in (
        (opening, "d9", "may not play that now; legal now: d1, d2"),
        (game.states, "d2", "may not play that now; legal now: d1, d3"),
        (game.states, "d1, d3", "'d3' is one move too many"),
        (game.states, "E+1", "expected a disc such as 'd3'; legal now: d1"),
        (dry, "crown=red", "may not play that now; legal now: crown=pink"),
        (dry, "crown=blue, crown=blue", "'crown=blue' is one move too many"),
    ):
        with pytest.raises(NotationError, match=why):
            read_turn(states[0], text)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_rules_have_the_numbers_of_that_game(players):
    rules = ce.Rules(players)
    text = language.rules_text(rules)
    for part in (
        *(f"for {players} players", f"A team with {rules.castles_to_win} castles"),
        *(f"Play {rules.dice} paladins", f"Roll {rules.dice} dice", "After round 100"),
        "you choose its clan at once",
    ):
        assert part in text
    assert len(text) < 4_000 and text.isascii()
    other = ce.Rules(players, crown_choice="deferred", max_rounds=None, partners="adjacent")
    changed = language.rules_text(other)
    assert "After round" not in changed and "at the start of your next turn" in changed
    assert ("artner" in text) == ("players 0 and 2 are team A" in text) == (players == 4)
    assert ("players 0 and 1 are team A" in changed) == (players == 4)


def test_a_position_in_words_says_what_the_figure_shows():
    text = language.position_text(figure_5()[0])
    assert "You are player 0, team A. Round 12." in text
    assert "player 0: 7 red*, 8 pink*, 6 blue, 5 yellow, 3 green" in text
    assert "player 1: 6 red, 5 pink, 8 blue*, 6 yellow*, 5 green*" in text
    assert "player 0: 2 red, 2 pink, 3 yellow\n" in text
    # C of figure 6: black has 9 there, 3 of them yellow; white 3
    line = "+2 region 3-5: 2 red, 1 pink, 1 blue, 3 yellow, 2 green; 3 castles of B; strength A3 B9"
    assert line in language.position_text(figure_6()[0])
    asked = language.request_text(figure_6()[0], turns=True)
    assert "Now play 3 paladins from your reserve, then move the Emperor 1 to 3 steps." in asked


@pytest.mark.parametrize("rules", KINDS)
@pytest.mark.parametrize("answers", language.ANSWERS)
def test_no_prompt_is_longer_than_its_limit_and_the_last_turns_that_fit_remain(rules, answers):
    lengths, history, refused = [], [], "prose " * 5_000
    for state, actions in itertools.islice(positions(rules, 2, seed=20), 0, None, 5):
        history += [f"player 0: {turn_text(state, actions)}" * 3]
        for again in ((), (refused,), (refused, "green>court " * 500)):
            prompt = generate_prompt(observe(state, answers), history, *again)
            assert prompt.isascii()
            lengths.append(len(prompt))
    assert 6_000 < max(lengths) <= language.LONGEST_PROMPT == 12_000
    observation = observe(figure_6()[0], answers)
    prompt = generate_prompt(observation, [f"player 1: turn {k} {'x' * 90}" for k in range(100)])
    remaining = [int(k) for k in re.findall(r"player 1: turn (\d+)", prompt)]
    assert remaining == list(range(100 - len(remaining), 100)) and len(remaining) > 20
    assert "THE LAST TURNS" not in generate_prompt(observation)


@pytest.mark.parametrize("rules", SHORT)
@pytest.mark.parametrize("answers", language.ANSWERS)
def test_a_model_that_only_reads_plays_full_games(rules, answers):
    game, count, actions = ce.Game(rules, seed=4), 0, 0
    while not game.over:
        observation = observe(game.states[0], answers)
        prompt = generate_prompt(observation)
        if answers == "turn":
            move = moves_for(prompt)
        else:
            [listed] = re.findall(r" are:\n(.*)\n", prompt)
            legal = dict(zip(game.legal_actions, game.legal_moves, strict=True))
            assert language.get_legal_moves(observation) == legal
            assert listed.split(", ") == list(legal.values())
            move = listed.split(", ")[count % len(legal)]
            if count % 2:  # what it is without the key
                del observation["answers"]
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
        language.get_legal_moves({"observationString": "nonsense"})
    engine.forfeit(other)
    over = observe(other[0])
    assert over["isTerminal"] and language.get_legal_moves(over) == {}
    assert parse_response(answer("d1"), over).error == "no decision is due"
    waiting = ce.new_games(ce.Rules(), 1, seed=1, roll=False)[0]
    for write in (language.position_text, lambda state: language.request_text(state, turns=True)):
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
    assert read_turn(figure_6()[0], GOOD) == list(parsed.actions)
    assert parsed.legal_action == "2 red>court, yellow>7, E+1 B takes 2 forming 0-5"


@pytest.mark.parametrize(
    ("response", "raw", "why"),
    [
        (answer("2 red>court"), "2 red>court", "one decision at a time"),
        *((text, None, '"move"') for text in ("", "[" * 100_000)),
        ('{"move": "E+1"', None, "Expecting ',' delimiter"),
        *((f'{{"move": {given}}}', None, "must be a text") for given in ("7", '" "')),
        ('{"move": "E+1"}', "E+1", "expected a paladin such as"),
    ],
)
def test_a_response_without_a_legal_move_is_a_described_failure(response, raw, why):
    observation = observe(figure_6()[0], "decision" if raw == "2 red>court" else "turn")
    parsed = parse_response(response, observation)
    assert parsed.legal_action is None and parsed.actions == ()
    assert parsed.raw_action == raw
    assert why in parsed.error
    again = generate_prompt(observation, (), response, parsed.raw_action)
    assert again.startswith(generate_prompt(observation))
    added = again.removeprefix(generate_prompt(observation))
    assert why in added
    assert (f'the move "{raw}". It is not legal' in added) == (raw is not None)


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
    monkeypatch.setattr(llm, "FIRST_WAIT", 0.05)


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
    agent = llm.make_llm(f"url={stub.url},model=some/model:7b,{options}")
    agent.name = "llm:spec"
    return agent


def first_turn():
    """A game that waits for the paladins of a turn."""
    game = ce.Game(ce.Rules(2), seed=296)
    game.play("d2, d3")
    return game


@pytest.mark.parametrize("players", [2, 3, 4])
def test_an_answer_is_a_full_turn_and_is_asked_for_once(serve, players):
    stub = serve(well)
    agent, rules = make(stub), ce.Rules(players, max_rounds=3)
    tables = [[0] + [1] * (players - 1), [1] * (players - 1) + [0]]
    pair = [agent, bots.make("random")]
    results, actions = evaluation.play_and_record(tables, pair, rules, seed=5)
    assert results["shares"].sum() == len(results)
    assert agent.requests == len(stub.prompts)
    mine = results["decisions"][np.array(tables) == 0].sum()
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
        assert agent.requests == len(stub.prompts) == step - forced
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
    assert agent.requests == 2


def test_an_illegal_answer_is_asked_for_again_with_what_was_wrong(serve):
    bad, game = ["I do not know.", '{"move": "E+1"}', '{"move": 5}'], first_turn()
    stub = serve(lambda prompt, number: bad[number] if number < 3 else well(prompt, number))
    assert make(stub, "tries=4").act_one(game.states[0]) in game.legal_actions
    first, *later = stub.prompts
    wrong = ("I do not know.", "expected a paladin such as", "must be a text")
    for prompt, said in zip(later, wrong, strict=True):
        assert prompt.startswith(first) and said in prompt.removeprefix(first)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ('{"move": "E+1"}', "expected a paladin such as"),
        (b"not JSON", "not JSON"),
        (b'{"choices": []}', r"choices\[0\].message"),
        (b'{"choices": [{"message": {"content": 5}}]}', "choices"),
        ((500, b"oh"), "HTTP 500 Internal Server Error: oh"),
        ((503, b'{"error": {"message": "busy"}}'), "HTTP 503 Service Unavailable: .*busy"),
        ((429, b""), "HTTP 429 Too Many Requests"),
        ((400, b'{"error": {"message": "no such model"}}'), "HTTP 400 .*no such model"),
        ((302, b""), "HTTP 302 Found"),
    ],
)
def test_after_its_tries_or_one_refusal_the_agent_is_at_fault(serve, monkeypatch, reply, why):
    """No redirect is followed, and no proxy used."""
    proxy, stub = serve(well), serve(lambda prompt, number: reply)
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    with pytest.raises(AgentError, match=why) as caught:
        make(stub, "tries=3").act_one(first_turn().states[0])
    asked = 1 if reply[0] in (400, 302) else 3
    assert [path for path, *_ in stub.requests] == ["/v1/chat/completions"] * asked
    assert not proxy.requests
    assert caught.value.agent == "llm:spec"
    assert "gave no legal move as player" in caught.value.reason


def test_an_endpoint_that_is_not_there_is_asked_again_after_longer_and_longer(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    agent, waits = llm.make_llm(f"url=http://127.0.0.1:{port}/v1,model=m"), []
    monkeypatch.setattr(llm.time, "sleep", waits.append)
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
    monkeypatch.setattr(llm, "_LARGEST", 1000)
    options = llm.LanguageOptions(url=serve(lambda prompt, number: "x" * 1000).url, model="m")
    with pytest.raises(llm.ChatError, match="1,000"):
        llm.Chat(options).ask("hello")


def test_random_moves_are_played_only_if_the_spec_says_so_and_are_counted(serve):
    stub = serve(lambda prompt, number: "no")
    agent = make(stub, "failed=random,tries=2")
    with pytest.warns(UserWarning, match="a random action is played"):
        results = evaluation.play_games([[0, 1]], [agent, bots.make("random")], RULES, seed=1)
    assert agent.failures * 2 == agent.requests == len(stub.prompts) > 10
    assert results["shares"].sum() == len(results)


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
    texts += [json.dumps(cup.summary(), default=str)]
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
        llm.make_llm(options)
    assert not leaks(f"{caught.value} {caught.value!r}") and caught.value.__cause__ is None
