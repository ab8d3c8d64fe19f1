"""``exe`` asks a program, in any language, that speaks the protocol of docs/engine.md.

    exe:./their_bot
    exe:python3 bot.py --level 2,seconds=1

The program starts with the first decision and ends with the agent: its input is closed, and what is
left of its process group is killed after `GRACE`. Where this process is killed, a guard does it.
"""

from __future__ import annotations

import contextlib
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
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots import Agent, AgentError, Opinion
from carolus_env.bots.options import BotOptions, parse
from carolus_env.engine.rules import ACTIONS
from carolus_env.engine.state import States
from carolus_env.engine.streams import random_bits
from carolus_env.integrations import engine_protocol as protocol
from carolus_env.integrations.engine_protocol import LONGEST, ProtocolError
from carolus_env.system import cancellation
from carolus_env.system.options import option
from carolus_env.system.untrusted import shown

NAME: Final = "exe"
GRACE: Final = 1.0
"""Seconds from the end of a program's input until it is killed."""

_POLL: Final = 0.05  # seconds between two chances to be stopped
# Leads the process group, and waits for the end of its input, which this process holds open.
_GUARD: Final = f"import os, sys, time; sys.stdin.read(); time.sleep({GRACE}); os.killpg(0, 9)"


@dataclass(frozen=True)
class ExternalOptions(BotOptions):
    """Options of `ExternalAgent`; see docs/engine.md."""

    bot = NAME

    seconds: float = option(60.0, "seconds for a decision", among=(0.01, 86_400.0))
    start: float = option(60.0, "seconds for the answer to the greeting", among=(0.01, 86_400.0))


class Program:
    """A program that answers each line with a line, in a process group of its own.

    Args:
        command: the program and its arguments.
        folder: the program's working folder.

    Raises:
        ProtocolError: when it cannot be started.
    """

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
        self._process, self._received = process, b""
        self._input, self._output = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._input, False)
        self._close = weakref.finalize(self, _end, guard, process)

    def kill(self) -> None:
        """End the program at once."""
        self._process.kill()
        self._close()

    def ask(self, message: Mapping[str, Any], expected: str, seconds: float) -> dict[str, Any]:
        """Send a message and return the next one.

        Args:
            message: the message to send.
            expected: the kind of answer, see `engine_protocol.MESSAGES`.
            seconds: maximum time to wait.

        Raises:
            ProtocolError: when none comes in time, or another than expected.
            Stopped: when the work was stopped.
        """
        end, data = time.monotonic() + seconds, protocol.line(message)
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            selector.register(self._input, selectors.EVENT_WRITE)
            while b"\n" not in self._received:
                cancellation.current().check()
                if (remaining := end - time.monotonic()) <= 0:
                    raise ProtocolError(f"gave no answer within {seconds:g} s{self._half()}")
                for key, _ in selector.select(min(remaining, _POLL)):
                    if key.fd == self._output:
                        self._receive()
                    elif not (data := self._sent(data)):
                        selector.unregister(self._input)
        answer, _, self._received = self._received.partition(b"\n")
        return protocol.read(answer, expected)

    def _sent(self, data: bytes) -> bytes:
        """Send as much as the pipe takes, and return the rest."""
        try:
            return data[os.write(self._input, data) :]
        except BrokenPipeError:  # its output explains why
            return b""

    def _receive(self) -> None:
        if not (data := os.read(self._output, LONGEST)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
            code = self._process.returncode
            how = "closed its output" if code is None else f"ended with exit code {code}"
            raise ProtocolError(f"{how}{self._half()}")
        self._received += data
        if len(self._received) > LONGEST:
            raise ProtocolError(f"sent more than {LONGEST:,} bytes at once")

    def _half(self) -> str:
        data = self._received
        return f" after half a line, {protocol.quoted(data)}" if data else ""


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

    Args:
        command: the program and its arguments.
        options: the program's time limits.
        folder: the program's working folder; None: the current one.
        name: the agent's name.
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
        self._program: Program | None = None
        self._number, self._lock = 0, threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.command, self.options, self.folder, self.name)

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """See `Agent.act`.

        Raises:
            AgentError: when the program fails, is late, breaks the protocol or answers an illegal
                action; with the position and what it sent.
        """
        answers = [self._ask(states, generators, row, False) for row in range(len(states))]
        return np.array([action for action, _ in answers], np.int64)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Return the program's choices, and its values if it gives them for all games."""
        answers = [self._ask(states, generators, row, True) for row in range(len(states))]
        probabilities = np.zeros((len(states), ACTIONS))
        probabilities[np.arange(len(states)), [action for action, _ in answers]] = 1
        values: Any = [values for _, values in answers]
        return Opinion(probabilities, None if None in values else values)

    def _ask(
        self, states: States, generators: npt.NDArray[np.uint64], row: int, analyse: bool
    ) -> tuple[int, list[float] | None]:
        """Ask the program for its action in one game, and the teams' values if it gives some."""
        seconds, more = self.options.seconds, {"seed": int(generators[row]), "analyse": analyse}
        with self._lock:
            self._number += 1
            request = protocol.request(self._number, states[row], seconds=seconds, **more)
            try:
                if self._program is None:
                    self._program = Program(self.command, self.folder)
                    self._program.ask(protocol.GREETING, "its answer", self.options.start)
                answer = self._program.ask(request, "answer", seconds)
                action = protocol.action_of(answer, request, states[row])
            except BaseException as error:
                if self._program is not None:
                    self._program.kill()
                    self._program = None
                if not isinstance(error, ProtocolError):
                    raise
                where = f"in position {request['position']!r}"
                raise AgentError(self.name, f"the program {error}; {where}") from None
        bits = random_bits(generators[row : row + 1].copy())
        generators[row] = answer.get("seed", bits[0])
        return action, answer.get("values")


def make_external(argument: str) -> Agent:
    """Make the agent of ``exe:ARGUMENT``: a command as in a shell, then options after commas.

    Raises:
        AgentError: for a program that does not exist, or wrong options.
    """
    if sys.platform == "win32":
        raise AgentError(NAME, "needs a POSIX system")
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
