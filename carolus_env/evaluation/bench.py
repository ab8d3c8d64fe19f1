"""CarolusBench: a fixed protocol, to compare agents across papers; docs/bench.md.

It rates an agent on the ladder by games against the rungs near it, and measures the regret of its
decisions on the suite. A protocol never changes: with another ladder, suite, deals or rules it gets
another version. A test pins the rungs' decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from carolus_env.bots import Agent
from carolus_env.bots.registry import fingerprint
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import journal, ladder
from carolus_env.evaluation.games import Results
from carolus_env.evaluation.rollouts import value_function
from carolus_env.evaluation.schedules import Plan
from carolus_env.evaluation.suite import Suite, measure, shipped
from carolus_env.system import untrusted
from carolus_env.system.files import locked, write_json

NAME: Final = "CarolusBench 1"  # in papers, with its version
LADDER: Final = "db6064c51e65"  # hash of the ladder (`ladder.digest`)
SUITES: Final = {2: "a5d78e01a9a6", 3: "57a809bb49f3", 4: "48e9440e5473"}  # hash by players
NETWORKS: Final = {2: "d671b8111ca0", 3: "1dfff2e6b55e", 4: "794e0e15cdac"}
"""Hash of the value network by which choices that the suite does not list are rolled out."""
HALF: Final = "report"  # of the suite's decisions
RUNGS: Final = 4  # that the agent meets: those nearest to a rough rating
GUESS_GAMES: Final = 24  # against each rung that is asked for the rough rating
GUESS_SEED: Final = 21_261_123  # of the first deal of these games
DEALS: Final = {2: 125, 3: 42, 4: 125}  # against each rung by players, each in all seatings
SEED: Final = 20_261_123  # of the first deal


def suite(players: int) -> Suite:
    """Return the suite of positions, after checking that the package has the protocol's content."""
    positions = shipped(players)
    network = value_function("value", players)
    for what, expected, got in (
        ("ladder", LADDER, ladder.digest()),
        (f"suite of {players} players", SUITES[players], positions.digest),
        (f"value network of {players} players", NETWORKS[players], network.version),
    ):
        if expected != got:
            raise ValueError(f"{NAME} has the {what} with hash {expected}, got {got}")
    return positions


def opponents(agent: Agent, players: int) -> tuple[str, ...]:
    """Return the rungs that an agent meets, the weakest first, after a few games that place it."""
    elo = ladder.guess(agent, Rules(players), GUESS_GAMES, GUESS_SEED)
    met = ladder.nearest(players, elo, RUNGS)
    return tuple(rung.spec for rung in sorted(met, key=lambda rung: rung.elo))


def plan(agent: str, players: int, rungs: Sequence[str]) -> Plan:
    """Return the tournament of ``agent``, a spec or another name, against the rungs it meets."""
    return Plan(Rules(players), (agent, *rungs), "field", DEALS[players], SEED)


def rating(played: Plan, results: Results) -> dict[str, Any]:
    """Rate the agent by the games of its tournament."""
    rungs = played.agents[1:]
    tables = results["table"]
    met = {spec: results[(tables == k).any(axis=1)] for k, spec in enumerate(rungs, 1)}
    elo, *ends, bound = ladder.place(played.rules, met).values()
    return {"elo": elo, "elo_ci95": ends, "elo_bound": bound, "opponents": list(rungs)}


def regret(agent: Agent, players: int) -> dict[str, Any]:
    """Measure the agent's decisions in the suite."""
    positions = suite(players)
    result = measure(positions, agent, HALF).summary()
    return {"suite": positions.digest, "regret": {kind: list(row) for kind, row in result.items()}}


def read(path: Path, agent: Agent) -> dict[str, Any]:
    """Return what `write` wrote for this agent; one that has changed since is refused."""
    try:
        parsed = untrusted.parse_json(path.read_bytes())
        content: dict[str, Any] = untrusted.check(parsed, dict, "it")
        untrusted.expect(content, protocol=NAME, agent=agent.name, ladder=LADDER)
        untrusted.get(content, "left_out", dict)
        parts = untrusted.get(content, "players", dict)
        untrusted.only(parts, map(str, DEALS), "players")
        for players in parts:
            part = untrusted.get(parts, players, dict, "players")
            sources = untrusted.get(part, "sources", dict, f"players.{players}")
            now = fingerprint(agent, int(players))
            if changed := journal.changes([agent.name], [sources], [now]):
                raise ValueError(f"of {', and '.join(changed[0].split(': ', 1))}")
    except ValueError as error:
        raise journal.ResultsFileError(path, None, str(error)) from None
    return content


def write(
    path: Path, agent: Agent, players: Mapping[str, Any], left_out: Mapping[str, str]
) -> None:
    """Add numbers of players to the file of an agent's results, see `read`; the others stay."""
    with locked(path):
        old = read(path, agent) if path.exists() else {"players": {}, "left_out": {}}
        for number, part in players.items():
            about = {"seed": SEED, "sources": fingerprint(agent, int(number))}
            old["players"][number] = {**about, **part}
        old["left_out"].update(left_out)
        write_json(path, {"protocol": NAME, "agent": agent.name, "ladder": LADDER, **old})
