"""``exe`` asks a program, in any language, that speaks the protocol of docs/write_a_bot.md.

Program and agent exchange JSON objects, one a line; both sides read them by `MESSAGES`. The program
starts with the first decision and ends with the agent: its input is closed, and what is left of its
process group is killed after `GRACE`. Where this process is killed, a guard does it.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine, notation
from carolus_env.bots import Agent, AgentError, Opinion
from carolus_env.bots.agent import BotOptions, parse
from carolus_env.engine.chance import random_bits
from carolus_env.engine.rules import ACTIONS
from carolus_env.engine.state import States, single
from carolus_env.notation.moves import event_text
from carolus_env.system import cancellation, untrusted
from carolus_env.system.options import option
from carolus_env.system.untrusted import shown

GREETING: Final = {"protocol": "carolus-engine", "version": 1}
LONGEST: Final = 1 << 16  # bytes of a line, at most


class Key(NamedTuple):
    """A key of a message, with the type of its value; ``object`` stands for int or str."""

    name: str
    kind: type
    meaning: str
    optional: bool = False


_GREETING: Final = [Key(name, type(value), f"`{value}`") for name, value in GREETING.items()]
MESSAGES: Final = {
    "greeting": _GREETING,
    "its answer": (*_GREETING, Key("name", str, "of the bot")),
    "request": (
        Key("id", int, "its number"),
        Key("position", str, "without the dice to come"),
        Key("player", int, "its seat", True),
        Key("legal", list, "the legal actions", True),
        Key("moves", list, "the same as text, with outcomes", True),
        Key("seconds", float, "time limit", True),
        Key("seed", int, "for random choices", True),
        Key("analyse", bool, "whether values are wanted", True),
    ),
    "answer": (
        Key("id", int, "the same"),
        Key("action", object, "number or text"),
        Key("values", list, "each team's win share", True),
        Key("seed", int, "the one for its next decision", True),
    ),
    "error": (
        Key("id", int, "the same, if it could be read", True),
        Key("error", str, "why there is no answer"),
    ),
}
"""The keys of each message. Unknown keys are ignored, and null is an absent value."""


class ProtocolError(ValueError):
    """A wrong message, or none; the text says what the other side did."""


def message_line(message: Mapping[str, Any]) -> bytes:
    """Return a message as it is sent."""
    return json.dumps(message).encode() + b"\n"


def read_message(data: bytes, *expected: str) -> dict[str, Any]:
    """Parse a message as the first expected kind whose keys it has."""
    try:
        message = untrusted.check(untrusted.parse_json(data), dict, "a message")
        message = {name: value for name, value in message.items() if value is not None}
        if "error" in message:
            raise ProtocolError(f"reports an error: {untrusted.cut(repr(message['error']))}")
        kind = next((kind for kind in expected if MESSAGES[kind][0].name in message), expected[-1])
        values: dict[str, Any] = {}
        for name, kind_of_value, _, optional in MESSAGES[kind]:
            if kind_of_value is object:  # see `action_of`
                values[name] = message.get(name)
            elif name in message or not optional:
                values[name] = untrusted.get(message, name, kind_of_value)
        if "protocol" in values and not values.items() >= GREETING.items():
            greeting = ", version ".join(map(str, GREETING.values()))
            raise untrusted.DataError(f"the protocol must be {greeting}")
        if "seed" in values:
            untrusted.integer(values, "seed", 0, 2**64 - 1)
    except untrusted.DataError as error:
        raise ProtocolError(f"sent {_quoted(data)}: {error}") from None
    return values


def _quoted(data: bytes) -> str:
    return untrusted.cut(repr(data.decode(errors="replace")))


def request_for(number: int, state: np.void, **more: Any) -> dict[str, Any]:
    """Return the request for a decision in ``states[i]``, with ``more`` of its optional keys."""
    legal = engine.legal_actions(state)
    after = np.repeat(single(state), len(legal))
    engine.step(after, legal, roll=False)
    played = zip(legal.tolist(), after, strict=True)
    return {
        "id": number,
        "position": notation.to_line(state, generator=False),
        "player": int(state["player"]),
        "legal": legal.tolist(),
        "moves": [event_text(state, {"action": action}, then) for action, then in played],
        **more,
    }


def action_of(answer: Mapping[str, Any], request: Mapping[str, Any], state: np.void) -> int:
    """Return the action number of an answer to a request."""
    action = answer["action"]
    if answer["id"] != request["id"]:
        raise ProtocolError(f"answered id {answer['id']}, expected {request['id']}")
    if isinstance(action, str):
        try:
            actions = notation.read_move(state, action)
        except notation.NotationError as error:
            raise ProtocolError(f"answered {error}") from None
        action = actions[0] if len(actions) == 1 else action
    if type(action) not in (int, str):
        raise ProtocolError(f"answered action {shown(action)}, no whole number and no text")
    if action not in request["legal"]:
        raise ProtocolError(f"answered action {shown(action)}; legal are {request['legal']}")
    return action


# ------------------------------------------------------------------------------------ agent

NAME: Final = "exe"
GRACE: Final = 1.0  # seconds from the end of a program's input until it is killed

_POLL: Final = 0.05  # seconds between two chances to be stopped
# Leads the process group, and waits for the end of its input, which this process holds open.
_GUARD: Final = f"import os, sys, time; sys.stdin.read(); time.sleep({GRACE}); os.killpg(0, 9)"


@dataclass(frozen=True)
class ExternalOptions(BotOptions):
    """Options of `ExternalAgent`; see docs/write_a_bot.md."""

    bot = NAME

    seconds: float = option(60.0, "seconds for a decision", among=(0.01, 86_400.0))
    start: float = option(60.0, "seconds for the answer to the greeting", among=(0.01, 86_400.0))


class _Program:
    """A program that answers each line with a line, in a process group of its own."""

    def __init__(self, command: Sequence[str], folder: str) -> None:
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        guard = subprocess.Popen(
            [sys.executable, "-ISc", _GUARD], stdin=pipe, stdout=null, stderr=null, process_group=0
        )
        try:
            process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, cwd=folder, bufsize=0, process_group=guard.pid
            )
        except OSError as error:
            _end(guard)
            raise ProtocolError(f"cannot be started: {error.strerror or error}") from None
        assert process.stdin is not None and process.stdout is not None
        self.process, self._received = process, b""
        self._input, self._output = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._input, False)
        self._close = weakref.finalize(self, _end, guard, process)

    def kill(self) -> None:
        self.process.kill()
        self._close()

    def ask(self, message: Mapping[str, Any], expected: str, seconds: float) -> dict[str, Any]:
        """Send a message, and return the next one: of the ``expected`` kind, within ``seconds``."""
        end, line, sent = time.monotonic() + seconds, message_line(message), 0
        with contextlib.suppress(BlockingIOError):  # the pipe is full of messages that it left
            try:
                sent = os.write(self._input, line)
            except BrokenPipeError:  # its output explains why
                sent = len(line)
        if sent < len(line):
            raise ProtocolError("does not read its input")
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            while b"\n" not in self._received:
                cancellation.current().check()
                if (remaining := end - time.monotonic()) <= 0:
                    raise ProtocolError(f"gave no answer within {seconds:g} s{self._half()}")
                if selector.select(min(remaining, _POLL)):
                    self._receive()
        answer, _, self._received = self._received.partition(b"\n")
        return read_message(answer, expected)

    def _receive(self) -> None:
        if not (data := os.read(self._output, LONGEST)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE)
            code = self.process.returncode
            how = "closed its output" if code is None else f"ended with exit code {code}"
            raise ProtocolError(f"{how}{self._half()}")
        self._received += data
        if len(self._received) > LONGEST:
            raise ProtocolError(f"sent more than {LONGEST:,} bytes at once")

    def _half(self) -> str:
        return f" after half a line, {_quoted(self._received)}" if self._received else ""


def _end(guard: subprocess.Popen[bytes], *programs: subprocess.Popen[bytes]) -> None:
    """Close a program's pipes; after `GRACE` kill it and what is left of its process group."""
    for process in programs:
        for pipe in filter(None, (process.stdin, process.stdout)):
            pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        process.kill()  # it may have left the group
        process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(guard.pid, signal.SIGKILL)
    guard.communicate()


class ExternalAgent(Agent):
    """A program as a player. Each process, and each copy of the agent, starts its own.

    ``command`` is the program and its arguments, ``folder`` its working folder; None: the current.
    """

    def __init__(
        self,
        command: Sequence[str],
        options: ExternalOptions | None = None,
        folder: str | None = None,
        name: str = NAME,
    ) -> None:
        self.command, self.name = tuple(command), name
        self.options, self.folder = options or ExternalOptions(), folder or str(Path.cwd())
        self._program: _Program | None = None
        self._number, self._lock = 0, threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.command, self.options, self.folder, self.name)

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """See `Agent.act`; a program that fails, is late or wrong is an `AgentError`."""
        answers = self._answers(states, generators, analyse=False)
        return np.array([answer["action"] for answer in answers], np.int64)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Return the program's choices, and its values if it gives them for all games."""
        answers = self._answers(states, generators, analyse=True)
        probabilities = np.zeros((len(states), ACTIONS))
        probabilities[np.arange(len(states)), [answer["action"] for answer in answers]] = 1
        values: Any = [answer.get("values") for answer in answers]
        return Opinion(probabilities, None if None in values else values)

    def _answers(
        self, states: States, generators: npt.NDArray[np.uint64], analyse: bool
    ) -> list[dict[str, Any]]:
        """Return the program's answer in each game, with the action as its number."""
        bits, answers = random_bits(generators.copy()), []
        for row, state in enumerate(states):
            with self._lock:
                answers.append(self._ask(state, int(generators[row]), analyse))
            generators[row] = answers[-1].get("seed", bits[row])
        return answers

    def _ask(self, state: np.void, seed: int, analyse: bool) -> dict[str, Any]:
        self._number += 1
        seconds = self.options.seconds
        request = request_for(self._number, state, seconds=seconds, seed=seed, analyse=analyse)
        try:
            if self._program is None:
                self._program = _Program(self.command, self.folder)
                self._program.ask(GREETING, "its answer", self.options.start)
            answer = self._program.ask(request, "answer", seconds)
            return answer | {"action": action_of(answer, request, state)}
        except BaseException as error:
            if self._program is not None:
                self._program.kill()
                self._program = None
            if not isinstance(error, ProtocolError):
                raise
            where = f"in position {request['position']!r}"
            raise AgentError(self.name, f"the program {error}; {where}") from None


def make_external(argument: str) -> Agent:
    """Make the agent of ``exe:ARGUMENT``: a command as in a shell, then options after commas."""
    words = shlex.shlex(argument, posix=True, punctuation_chars=",")
    words.whitespace_split, words.commenters = True, ""
    try:
        parts = [os.path.expanduser(word) for word in words]  # noqa: PTH111 - not all are paths
    except ValueError as error:
        raise AgentError(NAME, f"{error} in {argument!r}") from None
    end = parts.index(",") if "," in parts else len(parts)
    command, options = parts[:end], parse(NAME, ExternalOptions, "".join(parts[end:]))
    if not command or shutil.which(command[0]) is None:
        raise AgentError(
            NAME,
            f"{shown(command[0] if command else '')} is no program here or on the PATH; a script "
            "follows its interpreter, as in exe:python3 bot.py",
        )
    return ExternalAgent(command, options)
