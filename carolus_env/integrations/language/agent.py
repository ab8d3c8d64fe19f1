"""``llm`` asks a language model at an OpenAI-compatible chat endpoint.

    llm:url=http://localhost:8000/v1,model=NAME
    llm:url=https://api.example.com/v1,model=NAME,key=EXAMPLE_API_KEY,answers=decision

One answer is a whole turn; its later decisions are stored until they are needed. Where only one
action is legal nothing is asked.
"""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, AgentError
from carolus_env.bots.agent import Remembered
from carolus_env.bots.options import BotOptions, parse
from carolus_env.engine.rules import PHASE_NAMES
from carolus_env.engine.state import States, single
from carolus_env.integrations.language.chat import Chat, ChatError
from carolus_env.integrations.language.harness import (
    ANSWERS,
    generate_prompt,
    observe,
    parse_response,
)
from carolus_env.system.options import option

NAME: Final = "llm"
FAILED: Final = ("error", "random")

FIRST_WAIT: Final = 1.0
"""Seconds before another request where the endpoint failed; twice as many each time."""


@dataclass(frozen=True)
class LanguageOptions(BotOptions):
    """Options of `LanguageAgent`; see docs/language.md."""

    bot = NAME

    url: str = option("", "of the endpoint, without /chat/completions", what="a URL")
    model: str = option("", "name of the model at the endpoint", what="a name")
    key: str = option(
        "",
        "environment variable that holds the key; empty: no key is sent",
        what="the name of a variable",
    )
    answers: str = option(
        "turn", "what one answer decides: a whole turn, or one decision", among=ANSWERS
    )
    tries: int = option(3, "requests for one answer, failed ones included", among=(1, 100))
    timeout: float = option(120.0, "seconds for one request", among=(0.01, 86_400.0))
    temperature: float = option(
        -1.0, "of the model's samples; -1: the endpoint's own", among=(-1.0, 100.0)
    )
    max_tokens: int = option(
        0, "most tokens of an answer; 0: the endpoint's own", among=(0, 10_000_000)
    )
    parallel: int = option(8, "requests at the same time, of different games", among=(1, 1_000))
    failed: str = option(
        "error",
        "when all tries fail: error, which ends the tournament; random: any legal action is "
        "played, with a warning",
        among=FAILED,
    )


class LanguageAgent(Agent):
    """A language model as a player.

    Args:
        options: the endpoint, the model and the form of requests.

    Attributes:
        requests: requests so far.
        failures: answers that were given up so far, with ``failed="random"``.

    Raises:
        AgentError: for a wrong URL or key; its text repeats neither.
    """

    def __init__(self, options: LanguageOptions) -> None:
        self.options, self.name = options, NAME
        if not -1.0 < options.temperature < 0:
            temperature = None if options.temperature == -1 else options.temperature
        else:
            raise AgentError(NAME, "option temperature must be -1, or from 0 on")
        try:
            self._chat = Chat(
                options.url,
                options.model,
                options.key,
                temperature,
                options.max_tokens or None,
                options.timeout,
            )
        except ValueError as error:
            raise AgentError(NAME, f"option {error}") from None
        self.requests = self.failures = 0
        self._remembered = Remembered()

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """See `Agent.act`.

        Raises:
            AgentError: with ``failed="error"``, when all tries for an answer fail.
        """
        plans = self._remembered.rests(states, generators)
        waiting = []
        for row in range(len(states)):
            legal = engine.legal_actions(states[row])
            if len(legal) == 1:
                plans[row] = plans[row] or legal.tolist()
            elif not plans[row]:
                waiting.append(row)
        if waiting:
            for row, plan in zip(waiting, self._answers(states, generators, waiting), strict=True):
                plans[row] = plan
        return self._remembered.keep(states, generators, plans)

    def _answers(
        self, states: States, generators: npt.NDArray[np.uint64], rows: list[int]
    ) -> list[list[int]]:
        """Ask for several games at the same time; returns the actions of each answer."""
        pool = ThreadPoolExecutor(min(self.options.parallel, len(rows)))
        try:
            answers = list(pool.map(self._ask, (single(states[row]) for row in rows)))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        plans = []
        for row, (actions, requests, error) in zip(rows, answers, strict=True):
            self.requests += requests
            stream = generators[row : row + 1]
            plans.append(list(actions) or [self._given_up(states[row], stream, error)])
        return plans

    def _ask(self, game: States) -> tuple[tuple[int, ...], int, str]:
        """Ask for an answer; return its actions, the number of requests, and the error."""
        observation = observe(game[0], self.options.answers)
        response = action = None
        wait, error = FIRST_WAIT, ""
        for request in range(1, self.options.tries + 1):
            prompt = generate_prompt(observation, (), response, action)
            try:
                response = self._chat.ask(prompt)
            except ChatError as failed:
                error = str(failed)
                if not failed.again:
                    return (), request, error
                if request < self.options.tries:
                    time.sleep(wait)
                    wait *= 2
                continue
            parsed = parse_response(response, observation)
            if parsed.actions:
                return parsed.actions, request, ""
            action, error = parsed.raw_action, parsed.error
        return (), self.options.tries, error

    def _given_up(self, state: np.void, generator: npt.NDArray[np.uint64], error: str) -> int:
        seat, phase = int(state["player"]), PHASE_NAMES[int(state["phase"])]
        reason = (
            f"gave no legal move as player {seat} in round {state['round']}, phase {phase}, after "
            f"at most {self.options.tries} tries; the last failed with: {error}"
        )
        if self.options.failed == "error":
            raise AgentError(self.name, reason)
        self.failures += 1
        warnings.warn(f"agent {self.name!r} {reason}; a random action is played", stacklevel=3)
        return int(engine.random_actions(single(state), generator)[0])


def make_llm(argument: str) -> Agent:
    """Make the agent of ``llm:ARGUMENT``: options separated by commas, not quoted in errors.

    Raises:
        AgentError: for unknown or malformed options, or impossible values.
    """
    names = [field.name for field in fields(LanguageOptions)]
    for part in filter(None, argument.split(",")):
        name, equals, _ = part.partition("=")
        if not equals or name.strip() not in names:  # it could be an API key
            raise AgentError(NAME, f"options are key=value of {', '.join(names)}, got another")
    try:
        options = parse(NAME, LanguageOptions, argument)
    except AgentError as error:
        raise AgentError(NAME, error.reason.partition(", got ")[0]) from None
    return LanguageAgent(options)
