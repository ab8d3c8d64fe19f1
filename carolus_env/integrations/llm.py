"""``llm`` asks a language model at an OpenAI-compatible chat endpoint.

    llm:url=http://localhost:8000/v1,model=NAME
    llm:url=https://api.example.com/v1,model=NAME,key=EXAMPLE_API_KEY,answers=decision

One answer is a whole turn; its later decisions are stored until they are needed. Where only one
action is legal nothing is asked.

Requests go to the URL that was named and nowhere else: no redirect is followed, no proxy used. The
key is read from the environment for each request and put into its header; it is kept nowhere, and
taken out of every text that comes back.
"""

from __future__ import annotations

import json
import os
import re
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, fields
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import Agent, AgentError
from carolus_env.bots.agent import Remembered
from carolus_env.bots.options import BotOptions, parse
from carolus_env.engine.rules import PHASE_NAMES
from carolus_env.engine.state import States, single
from carolus_env.integrations.language import ANSWERS, generate_prompt, observe, parse_response
from carolus_env.system.options import option
from carolus_env.system.untrusted import DataError, cut, parse_json

NAME: Final = "llm"
FAILED: Final = ("error", "random")

FIRST_WAIT: Final = 1.0
"""Seconds before another request where the endpoint failed; twice as many each time."""

_LARGEST: Final = 4 << 20  # bytes of an answer
_SHORTEST_SECRET: Final = 8  # characters; shorter keys occur in answers by chance
_TEMPORARY: Final = (408, 409, 425, 429)  # and those from 500 on


@dataclass(frozen=True)
class LanguageOptions(BotOptions):
    """Options of `LanguageAgent`; see docs/integrations.md."""

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


# ------------------------------------------------------------------------------------ the endpoint


class ChatError(RuntimeError):
    """A request that got no answer.

    Attributes:
        again: True: the same request may succeed later.
    """

    def __init__(self, text: str, again: bool = True) -> None:
        super().__init__(text)
        self.again = again


class Chat:
    """A model at an endpoint. Requests may be made from several threads.

    Args:
        options: the options that are about the endpoint and the model.

    Raises:
        ValueError: for a URL that is none or holds a password or a query, no model, or a ``key``
            that is not the name of a variable with a key. The text repeats neither.
    """

    def __init__(self, options: LanguageOptions) -> None:
        self._options = options
        url = options.url
        try:
            parts = urlsplit(url)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            good = False
        if not good or not (url.isascii() and url.isprintable() and " " not in url):
            raise ValueError("url must be that of an endpoint, such as http://localhost:8000/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError(
                "url must hold no user, password, query or fragment: it is written into results; "
                "the option key names an environment variable for the key"
            )
        if not options.model.strip():
            raise ValueError("model must be the name of a model at the endpoint")
        if not (options.temperature == -1 or options.temperature >= 0):
            raise ValueError("temperature must be -1, or from 0 on")
        self._url = parts
        self._secret()

    def _secret(self) -> str:
        """Return the key, never shown; empty where none is sent."""
        variable = self._options.key
        if not variable:
            return ""
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,99}", variable):
            raise ValueError(
                "key must be the name of an environment variable, in capital letters, such as "
                "OPENAI_API_KEY; it is not the key itself"
            )
        secret = os.environ.get(variable, "").strip()
        if not secret:
            raise ValueError("the environment variable that key names is empty or not set")
        if not secret.isascii() or not secret.isprintable() or " " in secret:
            raise ValueError(
                "the environment variable that key names holds characters that no key has"
            )
        return secret

    def ask(self, prompt: str) -> str:
        """Ask the model for its answer to a prompt; empty if it has none.

        Raises:
            ChatError: when none came in time, or the endpoint refuses, or does not answer as such
                endpoints do.
        """
        try:
            secret = self._secret()
        except ValueError as error:
            raise ChatError(str(error), again=False) from None
        try:
            content = self._content(prompt, secret)
        except ChatError as error:
            text = cut(str(error).replace(secret or "\0", "[key]"))
            raise ChatError(text, error.again) from None
        return content.replace(secret, "[key]") if len(secret) >= _SHORTEST_SECRET else content

    def _content(self, prompt: str, secret: str) -> str:
        """Return the text of the answer; errors may hold the key."""
        options = self._options
        body: dict[str, Any] = {
            "model": options.model,
            "messages": [{"role": "user", "content": prompt}],
        }
        if options.temperature >= 0:
            body["temperature"] = options.temperature
        if options.max_tokens:
            body["max_tokens"] = options.max_tokens
        data = self._exchange(json.dumps(body).encode(), secret)
        try:
            content = parse_json(data)["choices"][0]["message"].get("content") or ""
            if isinstance(content, list):  # a list of parts
                content = "".join(part.get("text") or "" for part in content)
        except DataError as error:
            raise ChatError(f"the endpoint's answer is {error}") from None
        except (LookupError, TypeError, AttributeError):
            raise ChatError("the endpoint's answer has no choices[0].message") from None
        if not isinstance(content, str):
            raise ChatError("the endpoint's answer has no text in choices[0].message.content")
        return content

    def _exchange(self, body: bytes, secret: str) -> bytes:
        """Send a request; returns the body of the answer."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        url, seconds = self._url, self._options.timeout
        end, data = time.monotonic() + seconds, b""
        connect = HTTPSConnection if url.scheme == "https" else HTTPConnection
        try:
            with closing(connect(url.hostname or "", url.port, timeout=seconds)) as connection:
                path = f"{url.path.rstrip('/')}/chat/completions"
                connection.request("POST", path, body, headers)
                answer = connection.getresponse()
                while len(data) <= _LARGEST and (more := answer.read1(_LARGEST)):
                    data += more
                    if time.monotonic() > end:  # the timeout is for each read
                        raise TimeoutError
        except TimeoutError:
            raise ChatError(f"no answer within {seconds:g} s") from None
        except (OSError, HTTPException, ValueError) as error:
            cause = f"{type(error).__name__}: {error}"
            raise ChatError(f"no answer from the endpoint ({cause})") from None
        if len(data) > _LARGEST:
            raise ChatError(f"the endpoint's answer is longer than {_LARGEST:,} bytes")
        if (status := answer.status) != 200:
            said = data[:1000].decode(errors="replace")
            again = status in _TEMPORARY or status >= 500
            raise ChatError(f"HTTP {status} {answer.reason}: {said}", again)
        return data


# ------------------------------------------------------------------------------------ the agent


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
        try:
            self._chat = Chat(options)
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
