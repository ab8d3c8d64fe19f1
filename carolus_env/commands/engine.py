"""Let an agent answer positions, one JSON object a line, for programs in any language.

    carolus engine planner
    carolus engine search:2p,seconds=1

Requests come on the standard input and answers go to the standard output. docs/write_a_bot.md
has the messages.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from carolus_env import bots, engine
from carolus_env.engine.chance import branches, new_streams
from carolus_env.engine.rules import PHASE_NAMES, Rules
from carolus_env.evaluation.games import ArenaError, warm_up
from carolus_env.integrations import external as protocol
from carolus_env.notation import from_text
from carolus_env.system import failures, untrusted
from carolus_env.system.command import DONE, command, parse
from carolus_env.system.options import REQUIRED, option


@dataclass(frozen=True)
class EngineOptions:
    """The options of the command."""

    agent: str = option(
        REQUIRED, "who answers (docs/bots.md)", kind=str, positional=True, metavar="AGENT"
    )


@command("carolus engine")
def main(arguments: Sequence[str], program: str) -> int:
    """Answer until the input ends; returns the exit code."""
    options = parse(EngineOptions, arguments, program, __doc__).options
    output = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # where an agent's own words go
        agent = bots.make(options.agent)
        for players in (2, 3, 4):  # a model is for one of them
            with contextlib.suppress(ArenaError):  # other errors come again when it is asked
                warm_up([agent], Rules(players))
                break
        serve(agent, sys.stdin.buffer, output.buffer)
    return DONE


def serve(agent: bots.Agent, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer each line until the input ends."""
    while data := requests.readline(protocol.LONGEST):
        answers.write(protocol.message_line(_answer(agent, data)))
        answers.flush()


def _answer(agent: bots.Agent, data: bytes) -> dict[str, Any]:
    """Return the message that answers a line."""
    message: dict[str, Any] = {}
    try:
        message = protocol.read_message(data, "greeting", "request")
        if "protocol" in message:
            return {**protocol.GREETING, "name": agent.name}
        return _decision(agent, message)
    except Exception as error:  # a user's agent can fail in any way
        text = str(error) if isinstance(error, ValueError) else failures.message(error)
        request = message.get("id")
        with contextlib.suppress(untrusted.DataError):  # of one that is otherwise wrong
            message = untrusted.check(untrusted.parse_json(data), dict, "a message")
            request = int(untrusted.get(message, "id", int))
        return {"id": request, "error": text}


def _decision(agent: bots.Agent, request: dict[str, Any]) -> dict[str, Any]:
    """Return an answer; the same agent here would decide the same, and draw as many numbers."""
    game = from_text(request["position"])
    if not engine.legal_masks(game).any():
        phase = PHASE_NAMES[int(game["phase"][0])]
        raise ValueError(f"the position waits for no decision: its phase is {phase}")
    stream = np.array([request["seed"]], np.uint64) if "seed" in request else new_streams(None, 1)
    game["generator"] = branches(stream, 0)
    values = bots.opinion(agent, game).values if request.get("analyse") else None
    action = int(agent.act(game, stream)[0])
    answer = {"id": request["id"], "action": action, "seed": int(stream[0])}
    return answer if values is None else {**answer, "values": values[0].tolist()}
