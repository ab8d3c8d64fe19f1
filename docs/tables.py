"""Rewrite the tables in docs/: ``python docs/tables.py [--check]``.

A table is placed between ``<!-- table: NAME -->`` and ``<!-- end -->``. It comes from the code, or
from benchmarks/results.json.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent.parent))

import carolus_env as ce
from benchmarks import (
    carolusbench,
    curves,
    gpu,
    peers,
    search,
    startup,
    strength,
    throughput,
)
from benchmarks.results import load, markdown
from carolus_env import notation
from carolus_env.bots import (
    GreedyOptions,
    MctsOptions,
    PlannerOptions,
    SearchOptions,
    ValueOptions,
)
from carolus_env.bots.network import TYPES, PpoOptions
from carolus_env.engine import observation, rules, state
from carolus_env.evaluation import bench, ladder
from carolus_env.evaluation.schedules import seatings_of
from carolus_env.integrations import external
from carolus_env.networks.files import FOLDER
from carolus_env.records import arrays, make_record
from carolus_env.system.options import declared

DOCS = Path(__file__).parent
PAGES = (DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")))


PEERS = ("rollout_u8", "playout", "single", "aec")


def fenced(lines: Iterable[str]) -> str:
    """Return lines as a block of code."""
    return "\n".join(["```", *lines, "```"]) + "\n"


def actions_table() -> str:
    """Return the action numbers, from `rules.ACTION_GROUPS`."""
    lines = []
    for group in rules.ACTION_GROUPS:
        numbers = f"{group.first} + k, up to {group.first + group.size - 1}"
        lines.append([numbers, rules.PHASE_NAMES[group.phase], group.meaning])
    return markdown(["actions", "phase", "meaning"], lines)


def fields_text() -> str:
    """Return the names, shapes and meanings of a record's fields, from `state.FIELDS`."""
    lines = []
    for field in state.FIELDS:
        shape = "x".join(map(str, field.shape))
        lines.append(f"{field.name:18} {shape:5} {field.meaning}")
    return fenced(lines)


def messages_table() -> str:
    """Return the keys of the messages between a program and a bot, from `external.MESSAGES`."""
    lines = []
    for message, keys in external.MESSAGES.items():
        cells = [f"`{key.name}{'?' * key.optional}`: {key.meaning}" for key in keys]
        lines.append([message, "; ".join(cells)])
    return markdown(["message", "keys"], lines)


def options(kind: type) -> str:
    """Return a list of options: the default of each, what is allowed, its meaning."""
    return "".join(
        f"- `{name}` ({entry.default}; {entry.describe()}): {entry.about}\n"
        for name, entry in declared(kind).items()
    )


def observation_text() -> str:
    """Return the blocks of an observation."""
    lines = [f"{'block':16} {'shape':18} {'scale':9} meaning"]
    for blocks in zip(*(observation.layout(players) for players in (2, 3, 4)), strict=True):
        sizes = zip(*(entry.shape for entry in blocks), strict=True)
        shape = " x ".join(map(size_name, sizes))
        scale = numbers_by_players(entry.scale for entry in blocks)
        lines.append(f"{blocks[0].name:16} {shape:18} {scale:9} {blocks[0].meaning}")
    return fenced(lines)


def size_name(sizes: tuple[int, ...]) -> str:
    """Return a dimension of 2, 3 and 4 players by name if it is their number or their teams'."""
    return {(2, 3, 4): "players", (2, 3, 2): "teams"}.get(sizes, str(sizes[0]))


def numbers_by_players(numbers: Iterable[float]) -> str:
    """Return one number if all are the same, else one for each number of players."""
    texts = [f"{number:g}" for number in numbers]
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)


def bench_table() -> str:
    """Return the contents of CarolusBench."""
    lines = []
    for players, deals in bench.DEALS.items():
        games = deals * len(seatings_of(rules.Rules(players)))
        decisions = len(bench.suite(players).half(bench.HALF))
        suite = f"`{bench.SUITES[players]}`"
        lines.append([str(players), str(deals), str(games), suite, str(decisions)])
    head = ["players", "deals with each rung", "games with each", "suite", "decisions"]
    return markdown(head, lines)


def ladder_table() -> str:
    """Return the rungs without errors."""
    rungs = {players: ladder.rungs(players) for players in (2, 3, 4)}
    elos: dict[str, dict[int, float]] = {}
    for players, each in rungs.items():
        for rung in reversed(each):
            if "errors" not in rung.spec:
                name = rung.spec.replace(f":{players}p", "")
                elos.setdefault(name.replace(",", ":", 1), {})[players] = rung.elo
    lines = [
        [f"Elo of `{name}`", *(f"{elo[n]:.0f}" if n in elo else "-" for n in rungs)]
        for name, elo in elos.items()
    ]
    lines.append(["number of rungs", *(str(len(each)) for each in rungs.values())])
    return markdown(["", *(f"{players} players" for players in rungs)], lines)


def some_game() -> ce.engine.state.States:
    """Return a game of three greedy players in its sixth round."""
    games, streams = ce.new_games(ce.Rules(players=3), seed=11), ce.new_streams(11, 1)
    greedy = ce.make("greedy")
    while games["round"][0] < 6 or games["phase"][0] != rules.PLACE:
        ce.step(games, greedy.act(games, streams))
    return games


def played(players: int, seed: int) -> tuple[ce.engine.state.States, list[dict]]:
    """Return a whole game of greedy players: its start, and the events of its record."""
    start = ce.new_games(ce.Rules(players), seed=seed, roll=False)
    game, streams, greedy, actions = start.copy(), ce.new_streams(seed, 1), ce.make("greedy"), []
    ce.roll(game)
    while not ce.is_over(game)[0]:
        actions += greedy.act(game, streams).tolist()
        ce.step(game, np.array(actions[-1:]))
    return start, make_record(start, actions)["events"]


MOVES = (
    ("disc 3", r"d3"),
    ("a crown becomes a paladin of that clan", r"crown=\w+"),
    ("a paladin to the player's court", r"\w+>court"),
    ("the same, and the player takes control of the clan", r"\w+>court!"),
    ("a paladin to the region of territory 7", r"\w+>7"),
    ("to a merged region, named by its first and last territory, clockwise", r"\w+>\d+-\d+"),
    ("several equal moves in a row", r"\d \w+>.*"),
    ("the Emperor two steps; he stops there and nothing changes", r"E\+2 at .*"),
    ("team B, which is the strongest there, builds a castle", r"E\+\d B builds \d+"),
    ("team B replaces every castle there", r"E\+\d B takes [\d-]+"),
    (
        "the same, and the region becomes part of 8-12",
        r"E\+\d B takes 11 forming 8-12",
    ),
    ("`#`: the game is over", r"E.*#"),
    ("the dice, in a game's text", r"rolls (\w+ ){2}crown"),
)


def moves_text() -> str:
    """Return examples of decisions, each as it came in games of greedy players."""
    texts = []
    for seed in range(20):
        for turn in notation.turn_texts(*played(2, seed)):
            texts += turn.text.split(", ")
    lines = []
    for meaning, pattern in MOVES:
        example = next(text for text in texts if re.fullmatch(pattern, text))
        lines.append(f"{example:28} {meaning}")
    return fenced(lines)


def position_fields() -> str:
    """Return the fields of a position's text, from `notation.positions.FIELDS`."""
    return fenced(
        f"{form.name:10} {form.example:24} {form.meaning}" for form in notation.positions.FIELDS
    )


def position_line() -> str:
    """Return a position as a line."""
    return f"```\n{notation.to_line(some_game()[0])}\n```\n"


def shipped_table() -> str:
    """Return the provenance of the shipped models of 2, 3 and 4 players, from their files."""
    lines = []
    for kind in ("ppo", "value", "decisions"):
        abouts = [TYPES[kind].load(FOLDER / f"{kind}_{n}p.safetensors").about for n in (2, 3, 4)]
        unit = "decisions" if kind == "decisions" else "games"
        learnt = "; ".join(f"{about[unit]:,}" for about in abouts)
        minutes = "; ".join(f"{about['cpu_seconds'] / 60:.0f}" for about in abouts)
        lines.append([f"`{kind}`", f"{learnt} {unit}", minutes, f"`{abouts[0]['command']}`"])
    head = ["model", "learnt from, with 2; 3; 4 players", "CPU-minutes", "command for 2 players"]
    return markdown(head, lines)


def peers_table() -> str:
    """Return the comparisons with other environments that play alike."""
    return peers.table([row for row in load("peers") if row["ours"] in PEERS])


def search_table() -> str:
    """Return what the search wins against `value`; the picture has the other agents."""
    return search.table([row for row in load("search") if row["agent"].startswith("search")])


def strength_table() -> str:
    """Return the matches that were played with 2, 3 and 4 players."""
    rows = load("strength")
    pairs = [tuple(spec.partition(":")[0] for spec in row["pair"]) for row in rows]
    kept = [row for row, pair in zip(rows, pairs, strict=True) if pairs.count(pair) == 3]
    return strength.table(kept)


def throughput_table() -> str:
    """Return the decisions a second of all modes without observations as floats."""
    rows = load("throughput")
    return throughput.table([row for row in rows if not row["mode"].endswith("f32")])


TABLES: dict[str, Callable[[], str]] = {
    "actions": actions_table,
    "bench": bench_table,
    "arrays": arrays.arrays_table,
    "carolusbench": lambda: carolusbench.table(load("carolusbench")),
    "fields": fields_text,
    "curves": lambda: curves.table(load("curves")),
    "gpu": lambda: gpu.table(load("gpu")),
    "peers": peers_table,
    "startup": lambda: startup.table(load("startup")),
    "search": search_table,
    "agents": lambda: strength.summary(load("strength"), load("times")),
    "strength": strength_table,
    "throughput": throughput_table,
    "shipped": shipped_table,
    "ladder": ladder_table,
    "ladder hash": lambda: f"Hash of the ladder: `{ladder.digest()}`.\n",
    "engine messages": messages_table,
    "moves": moves_text,
    "observation": observation_text,
    "observation version": lambda: f"Layout version {observation.VERSION}.\n",
    "options greedy": lambda: options(GreedyOptions),
    "options mcts": lambda: options(MctsOptions),
    "options planner": lambda: options(PlannerOptions),
    "options ppo": lambda: options(PpoOptions),
    "options rules": lambda: options(rules.Rules),
    "options search": lambda: options(SearchOptions),
    "options value": lambda: options(ValueOptions),
    "position fields": position_fields,
    "position in text": position_line,
}


def filled(text: str) -> str:
    """Return the page with every table as the code has it now."""

    def table(match: re.Match[str]) -> str:
        name = match.group(1)
        return f"<!-- table: {name} -->\n\n{TABLES[name]()}\n<!-- end -->"

    return re.sub(r"<!-- table: ([^>]+) -->\n.*?<!-- end -->", table, text, flags=re.DOTALL)


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` only say which are not up to date."""
    stale = []
    for page in PAGES:
        text = page.read_text()
        if (fresh := filled(text)) != text:
            stale.append(page.name)
            if "--check" not in arguments:
                page.write_text(fresh)
    print(f"changed: {', '.join(stale) or 'nothing'}")
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
