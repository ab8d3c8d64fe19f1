"""CarolusBench: one agent, measured by a protocol that never changes (`evaluate.py --bench`)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from carolus_env import arena
from carolus_env.analysis.suite.measure import ALL, measure
from carolus_env.arena.protocol import BENCH_V1, BENCH_V2, score
from carolus_env.bots import Agent
from carolus_env.system.files import write_json

VERSIONS: Final = ("v1", "v2")
NEWEST: Final = VERSIONS[-1]
GAMES_FILE: Final = "games.jsonl"
RESULT_FILE: Final = "bench.json"


class Played(NamedTuple):
    """A tournament of the protocol."""

    code: int
    """The exit code; not 0: it was not completed."""
    summary: dict[str, Any]
    cup: arena.Tournament | None = None


Play = Callable[[argparse.Namespace, arena.Plan], Played]
"""Play a plan with the options of the command, print its tables, write its files."""


def version(text: str) -> str:
    """The version after ``--bench``, for the parser."""
    if text not in VERSIONS:
        raise argparse.ArgumentTypeError(
            f"the version is {' or '.join(VERSIONS)}, got {text!r} (name the agent before --bench)"
        )
    return text


def run(options: argparse.Namespace, agent: Agent, play: Play) -> int:
    """Measure one agent, for one number of players after the other; returns the exit code.

    Args:
        options: of the command: ``bench``, ``agents``, ``players``, ``out``, ``resume``, ``quiet``.
        agent: the one that ``agents`` names.
        play: see `Play`.

    Raises:
        ValueError: for a number of players that the protocol does not have, other contents of the
            package than the protocol's, or a folder to be resumed that holds something else.
        OSError: when the result cannot be written.
    """
    protocol = BENCH_V1 if options.bench == "v1" else BENCH_V2
    one_of = _first if options.bench == "v1" else _second
    found: dict[int, dict[str, Any]] = {}
    for players in protocol.deals if options.players is None else [options.players]:
        out = options.out and options.out / f"{players}p"
        of_players = argparse.Namespace(**{**vars(options), "players": players, "out": out})
        code, result = one_of(of_players, agent, play)
        if code:
            return code
        found[players] = result
    for players, result in found.items():
        print(f"{protocol.name}, {players} players: {_text(result)}")
    if options.out:
        name = {"protocol": protocol.name, "agent": options.agents[0]}
        if options.bench == "v1":
            scores = {players: result["score"] for players, result in found.items()}
            write_json(options.out / RESULT_FILE, {**name, "scores": scores})
        else:
            write_json(
                options.out / RESULT_FILE, {**name, "ladder": BENCH_V2.ladder, "players": found}
            )
    return 0


def _first(options: argparse.Namespace, agent: Agent, play: Play) -> tuple[int, dict[str, Any]]:
    plan = BENCH_V1.plan(options.agents[0], options.players)
    played = play(_fixed(options, plan), plan)
    return played.code, {} if played.code else {"score": score(played.summary)}


def _second(options: argparse.Namespace, agent: Agent, play: Play) -> tuple[int, dict[str, Any]]:
    players = options.players
    suite = BENCH_V2.suite(players)  # before anything is played
    games = options.out and options.out / GAMES_FILE
    if options.resume and games.exists():
        opponents = arena.read_games(games).plan.agents[1:]
    else:
        opponents = BENCH_V2.opponents(agent, players)
    plan = BENCH_V2.plan(options.agents[0], players, opponents)
    played = play(_fixed(options, plan), plan)
    if played.code or played.cup is None:
        return played.code, {}
    rating = BENCH_V2.place(plan, played.cup.results)
    losses = measure(suite, agent, BENCH_V2.half).summary()
    return 0, {
        "elo": rating.elo,
        "elo_ci95": [rating.low, rating.high],
        "opponents": list(opponents),
        "suite": suite.digest,
        "loss": {kind: list(loss) for kind, loss in losses.items()},
    }


def _fixed(options: argparse.Namespace, plan: arena.Plan) -> argparse.Namespace:
    """The options as if the plan had been asked for by them."""
    fixed = {"agents": list(plan.agents), "deals": plan.deals}
    return argparse.Namespace(**{**vars(options), **fixed})


def _text(result: Mapping[str, Any]) -> str:
    if "score" in result:
        return f"score {100 * result['score']:.1f} %"
    (low, high), (mean, below, above) = result["elo_ci95"], result["loss"][ALL][:3]
    return (
        f"{result['elo']:+.0f} Elo ({low:+.0f} to {high:+.0f}), a decision loses "
        f"{100 * mean:.1f} % ({100 * below:.1f} - {100 * above:.1f}) of a win"
    )
