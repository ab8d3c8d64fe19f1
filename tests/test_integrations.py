"""Networks of other libraries as agents; `make integrations` tries them."""

import ast
import re
import runpy
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from integrations import LIBRARIES

import carolus_env as ce
from carolus_env import evaluation
from carolus_env.bots import AgentError, make
from carolus_env.integrations.agents import DecisionAgent, TurnAgent

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "integrations.md").read_text()


def test_the_page_names_every_library_with_its_version_and_example():
    for name, library in LIBRARIES.items():
        requirement = library.requires.split()[0]
        assert f"`{requirement}`" in PAGE, name
        if example := library.example.partition(":")[0]:
            assert f"(../examples/{example})" in PAGE
            assert ast.get_docstring(ast.parse((ROOT / "examples" / example).read_text()))


def test_snippets_parse_and_those_that_need_no_other_library_run(tmp_path):
    others = (
        "torchrl",
        "tianshou",
        "agilerl",
        "skrl",
        "pufferlib",
        "ray",
        "pyspiel",
        "sb3_contrib",
    )
    ran = 0
    for number, snippet in enumerate(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)):
        ast.parse(snippet)
        if any(re.search(rf"^\s*(from|import) {name}\b", snippet, re.M) for name in others):
            continue
        path = tmp_path / f"snippet_{number}.py"
        path.write_text(snippet)
        runpy.run_path(str(path))
        if "class Mine" in snippet:
            assert plays(make(f"{path}:Mine")) > 0.5
        ran += 1
    assert ran == 2


def plays(agent, players=2):
    result = evaluation.play_pairing((agent, make("random")), ce.Rules(players), 20, seed=1)
    return result.win_rate[0]


class First(TurnAgent):
    """Always the first candidate: in a turn what `planner` plays."""

    def choose(self, rows, masks):
        assert rows.dtype == np.float32 and rows.shape[:2] == masks.shape
        assert (rows[..., 0] == masks).all() and masks.any(axis=1).all()
        return masks.argmax(axis=1)


class Last(First):
    def choose(self, rows, masks):
        return masks.sum(axis=1) - 1


class LegalFirst(DecisionAgent):
    def choose(self, observations, masks):
        assert observations.dtype == self.dtype
        return masks.argmax(axis=1)

    def __init__(self, players, dtype):
        super().__init__(players, dtype)
        self.dtype = np.dtype(dtype)


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("kind", [First, Last])
def test_a_turn_agent_plays_the_candidates_that_the_environment_lists(players, kind):
    """Games of one learner in the environment, and of the agent, are the same."""
    agent = kind(players)
    env = gymnasium.make("CarolusMagnusTurns-v0", players=players, opponents=agent, seat=0)
    obs, info = env.reset(seed=3)
    over = False
    while not over:
        chosen = agent.choose(obs[None], info["action_mask"][None].astype(bool))[0]
        obs, _, terminated, truncated, info = env.step(chosen)
        over = terminated or truncated
    ended = env.unwrapped._vector.games.states.copy()
    games, streams = ce.new_games(ce.Rules(players), 1, seed=3), ce.new_streams(3, 1)
    while not ce.is_over(games)[0]:
        ce.step(games, agent.act(games, streams))
    for field in ("reason", "courts", "castles", "round", "region_owner"):
        assert (games[field] == ended[field]).all(), field


@pytest.mark.parametrize("kind", [First, Last])
def test_a_turn_is_carried_out_as_it_was_chosen_whoever_plays_beside_and_without_the_dice(kind):
    many, alone = kind(2), kind(2)
    games, streams = ce.new_games(ce.Rules(), 30, seed=5), ce.new_streams(5, 30)
    one, stream = ce.new_games(ce.Rules(), 1, seed=5), ce.new_streams(5, 1)
    for _ in range(80):
        rows = np.flatnonzero(~ce.is_over(games))
        actions = many.act(games[rows], streams[rows])
        hidden = one.copy()
        hidden["generator"] = 0
        assert rows[0] == 0 and actions[0] == alone.act(one, stream) == alone.act(hidden, stream)
        ce.step(games, actions, rows=rows)
        ce.step(one, actions[:1])


def test_wrong_answers_and_other_games_are_refused():
    for dtype in ("float32", "uint8"):  # it is shown what the environments show
        assert 0 <= plays(LegalFirst(3, dtype), players=3) <= 1
    games, streams = ce.new_games(ce.Rules(3), 2, seed=1), ce.new_streams(1, 2)
    for agent in (First(2), LegalFirst(2, "uint8")):
        with pytest.raises(AgentError, match=r"plays games of 2 players, got \[3\]"):
            agent.act(games, streams)
    agent = First(3)
    for answer, reason in (
        (np.array([0, 99]), "index from 0 to 4, got 99"),
        (np.array([-1, 0]), "index from 0 to 4, got -1"),
        (np.array([0.0, 1.0]), "2 integers"),
        (np.array([0]), "2 integers"),
    ):
        agent.choose = lambda rows, masks, answer=answer: answer
        with pytest.raises(AgentError, match=reason):
            agent.act(games, streams)
    with pytest.raises(ValueError, match="players"):
        First(5)
    with pytest.raises(ValueError, match="float64"):
        LegalFirst(2, "float64")
