"""Signatures of the bots: one hash over what each decides in fixed positions.

    python tests/signatures.py               # after a bot was changed on purpose: hash anew
    python tests/signatures.py --positions   # choose other positions, then hash

A change that is to leave play alone must leave `SIGNATURES` alone. The positions, 200 each of 2, 3
and 4 players, are lines of the notation in `POSITIONS`. None of them is one in which a bot's
decision hangs on the last bits of a float: there another processor could decide otherwise. So a
position is chosen only if slightly different weights lead to the same decisions.
"""

import argparse
import gzip
import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import numpy as np

from carolus_env import bots, engine
from carolus_env.bots import Agent, MctsBot, PlannerBot
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import CrownChoice, Partners, Rules
from carolus_env.engine.state import States
from carolus_env.notation import from_text, to_line
from carolus_env.planning.heuristic import all_weights

BOTS = (
    "random",
    "greedy",
    "greedy:errors=0.5",
    "planner",
    "planner:errors=0.33",
    "planner:plans=one",
    "mcts:sims=24",
)
EACH = 200  # positions of each number of players
SEED = 20_261_122
SIGNATURES = Path(__file__).with_name("signatures.json")
POSITIONS = Path(__file__).with_name("golden") / "decisions.txt.gz"


def positions() -> dict[int, States]:
    """The fixed positions by number of players."""
    lines = gzip.decompress(POSITIONS.read_bytes()).decode().splitlines()
    states = np.concatenate([from_text(line) for line in lines])
    return {players: states[states["players"] == players].copy() for players in (2, 3, 4)}


def decisions(agent: Agent, states: States) -> list[int]:
    """What an agent decides in each position, with streams that belong to the positions."""
    return agent.act(states, new_streams(SEED, len(states))).tolist()


def signature(agent: Agent, fixed: dict[int, States]) -> str:
    """A hash over an agent's decisions in all fixed positions."""
    chosen = {players: decisions(agent, states) for players, states in fixed.items()}
    return hashlib.sha256(json.dumps(chosen).encode()).hexdigest()[:16]


_NUDGE = 1e-8  # of weights in float64, whose last bit is 1e-16


def _nudged(spec: str, seed: int) -> Agent:
    """The bot with every weight multiplied by almost 1."""
    random = np.random.default_rng(seed)
    agent = bots.make(spec)
    weights = all_weights() * random.uniform(1 - _NUDGE, 1 + _NUDGE, all_weights().shape)
    if isinstance(agent, PlannerBot):
        return PlannerBot(agent.options, weights=weights)
    if isinstance(agent, MctsBot):
        return MctsBot(agent.options, weights=weights)
    return agent


def _played(players: int) -> States:
    """Positions of games between unlike bots, every option of the rules among them."""
    result = []
    options = itertools.product(
        get_args(CrownChoice), get_args(Partners)[: 2 if players == 4 else 1]
    )
    for number, (crown_choice, partners) in enumerate(options):
        rules = Rules(players, crown_choice, partners)
        games = engine.new_games(rules, 24, seed=SEED + 1000 * number)
        streams = new_streams(SEED + 1000 * number, 24)
        seated = [bots.make(spec) for spec in ("planner", "greedy", "ppo", "random")]
        while len(rows := np.flatnonzero(~engine.is_over(games))):
            result.append(games[rows].copy())
            actions = np.empty(len(rows), np.int64)
            for k, agent in enumerate(seated):  # all seats of a game by one bot, a quarter each
                its = rows % len(seated) == k
                if its.any():
                    drawn = streams[rows[its]]
                    actions[its] = agent.act(games[rows[its]], drawn)
                    streams[rows[its]] = drawn
            engine.step(games, actions, rows=rows)
    states = np.concatenate(result)
    order = np.random.default_rng(SEED).permutation(len(states))[: 2 * EACH]
    return states[np.sort(order)]


def choose() -> Iterator[str]:
    """Lines for `POSITIONS`: positions in which every bot decides alike under any nudge."""
    for players in (2, 3, 4):
        states = _played(players)
        sure = np.ones(len(states), bool)
        for spec in BOTS:
            usual = np.array(decisions(bots.make(spec), states))
            for seed in range(4):
                nudged = decisions(_nudged(spec, seed), states)
                sure &= usual == nudged
        print(f"{players} players: {sure.sum()} of {len(states)} positions are sure")
        rows = np.flatnonzero(sure)
        if len(rows) < EACH:
            raise SystemExit(
                f"{players} players: {EACH} positions are needed, {len(rows)} are sure"
            )
        for row in rows[np.linspace(0, len(rows) - 1, EACH).astype(int)]:
            yield to_line(states[row])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--positions", action="store_true", help="choose other positions first")
    if parser.parse_args().positions:
        text = "".join(f"{line}\n" for line in choose())
        POSITIONS.write_bytes(gzip.compress(text.encode(), mtime=0))
    fixed = positions()
    result = {spec: signature(bots.make(spec), fixed) for spec in BOTS}
    before = json.loads(SIGNATURES.read_text()) if SIGNATURES.exists() else {}
    for spec, hashed in result.items():
        print(f"{spec:20} {hashed}{'' if before.get(spec) == hashed else '  new'}")
    SIGNATURES.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
