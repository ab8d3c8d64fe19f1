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
    learners,
    peers,
    rendering,
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
from carolus_env.bots.models import FOLDER, TYPES
from carolus_env.bots.ppo import PpoOptions
from carolus_env.commands import COMMANDS
from carolus_env.engine import observation, rules, state
from carolus_env.envs import candidates
from carolus_env.evaluation import bench, ladder
from carolus_env.evaluation.seating import pairing
from carolus_env.integrations import external
from carolus_env.networks.tables import tables_text
from carolus_env.notation.vocabulary import counted
from carolus_env.planning import heuristic
from carolus_env.records import arrays, make_record
from carolus_env.system.options import options_table

DOCS = Path(__file__).parent
PAGES = (DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")))


ELO_OF_A_STEP = 170
"""Elo points between two players of whom one wins 72.5 %, see docs/rules.md."""


def actions_table() -> str:
    """Return the action numbers, from `rules.ACTION_GROUPS`."""
    lines = []
    for group in rules.ACTION_GROUPS:
        numbers = f"{group.first} + k, up to {group.first + group.size - 1}"
        lines.append([numbers, rules.PHASE_NAMES[group.phase], group.meaning])
    return markdown(["actions", "phase", "meaning"], lines)


def fields_table() -> str:
    """Return the layout of a game's record, from `state.FIELDS`."""
    lines = []
    for field in state.FIELDS:
        dtype = np.dtype(field.dtype).name
        shape = "x".join(map(str, field.shape)) or "-"
        bounds = f"{field.low} to {_power(field.high)}"
        lines.append([f"`{field.name}`", dtype, shape, bounds, field.meaning])
    return markdown(["field", "dtype", "shape", "range", "meaning"], lines)


def messages_table() -> str:
    """Return the keys of the messages between a program and a bot, from `external.MESSAGES`."""
    lines = []
    for message, keys in external.MESSAGES.items():
        cells = [f"`{key.name}{'?' * key.optional}`: {key.meaning}" for key in keys]
        lines.append([message, "; ".join(cells)])
    return markdown(["message", "keys"], lines)


def commands_table() -> str:
    """Return the commands of ``carolus``, from `COMMANDS`."""
    lines = [
        [f"`carolus {name}`", command.about, f"`{command.extra}`" if command.extra else "-"]
        for name, command in COMMANDS.items()
    ]
    return markdown(["command", "for", "extra"], lines)


def observation_table() -> str:
    """Return the blocks of an observation, and their entries by number of players."""
    numbers = (2, 3, 4)
    lines = []
    for blocks in zip(*map(observation.layout, numbers), strict=True):
        block = blocks[0]
        places = [observation.slices(players)[block.name] for players in numbers]
        entries = [f"{where.start}-{where.stop - 1}" for where in places]
        sizes = zip(*(entry.shape for entry in blocks), strict=True)
        high = numbers_by_players(entry.high for entry in blocks)
        scale = numbers_by_players(entry.scale for entry in blocks)
        lines.append(
            [
                f"`{block.name}`",
                *(entries if block.shape else [str(where.start) for where in places]),
                " x ".join(map(size_name, sizes)) or "-",
                high,
                f"/ {scale}",
                block.meaning,
            ]
        )
    head = ["block", *map(str, numbers), "shape", "up to", "scale", "meaning"]
    return markdown(head, lines)


def candidates_table() -> str:
    """Return the blocks of a candidate's row, from `candidates.layout`."""
    lines = []
    for blocks in zip(*map(candidates.layout, (2, 3, 4)), strict=True):
        block = blocks[0]
        sizes = [" x ".join(map(str, entry.shape)) or "1" for entry in blocks]
        lines.append([f"`{block.name}`", *sizes, f"{block.scale:.3g}", block.meaning])
    lines.append(["all", *(str(candidates.length(players)) for players in (2, 3, 4)), "", ""])
    return markdown(["block", "entries: 2 players", "3", "4", "times", ""], lines)


def size_name(sizes: tuple[int, ...]) -> str:
    """Return a dimension of 2, 3 and 4 players by name if it is their number or their teams'."""
    return {(2, 3, 4): "players", (2, 3, 2): "teams"}.get(sizes, str(sizes[0]))


def numbers_by_players(numbers: Iterable[float]) -> str:
    """Return one number if all are the same, else one for each number of players."""
    texts = [f"{number:g}" for number in numbers]
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)


def features_table() -> str:
    """Return the features of the planner's evaluation, from `heuristic.FEATURES`."""
    lines = [[f"`{feature.name}`", feature.meaning] for feature in heuristic.FEATURES]
    return markdown(["feature", "counted for each team"], lines)


def bench_table() -> str:
    """Return the contents of CarolusBench."""
    lines = []
    for players, deals in bench.DEALS.items():
        games = deals * len(pairing(rules.Rules(players)).seatings)
        decisions = len(bench.suite(players).half(bench.HALF))
        suite = f"`{bench.SUITES[players]}`"
        lines.append([str(players), str(deals), str(games), suite, str(decisions)])
    head = ["players", "deals with each rung", "games with each", "suite", "decisions"]
    return markdown(head, lines)


def citation() -> str:
    """Return an entry for BibTeX, from CITATION.cff."""
    text = (DOCS.parent / "CITATION.cff").read_text()
    cited = dict(re.findall(r"^([\w-]+): +\"?(.*?)\"?$", text, re.MULTILINE))
    authors = " and ".join(f"{{{name}}}" for name in re.findall(r"- name: (.*)", text))
    year = cited.get("date-released", "YEAR").partition("-")[0]
    fields = {
        "title": f"{{{cited['title']}}}",
        "author": authors,
        "year": year,
        "note": f"Version {cited['version']}, commit COMMIT, {bench.NAME}",
    }
    if "repository-code" in cited:
        fields["url"] = cited["repository-code"]
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join(["```bibtex", "@misc{carolus,", *lines, "}", "```", ""])


def ladder_table() -> str:
    """Return the rungs without errors, and what the ratings of each ladder are worth."""
    rungs = {players: ladder.rungs(players) for players in (2, 3, 4)}
    elos: dict[str, dict[int, float]] = {}
    for players, each in rungs.items():
        for rung in reversed(each):
            if "errors" not in rung.spec:
                name = rung.spec.replace(f":{players}p", "")
                elos.setdefault(name.replace(",", ":", 1), {})[players] = rung.elo
    lines = [
        [f"`{name}`", *(f"{elo[players]:.0f}" if players in elo else "-" for players in rungs)]
        for name, elo in elos.items()
    ]
    text = markdown(["Elo of", *(f"{players} players" for players in rungs)], lines)
    for players, each in rungs.items():
        worst = max(_pairs(players), key=lambda pair: abs(pair[2] - pair[3]))
        widest = max(rung.gap[2] - rung.gap[1] for rung in each[1:])
        text += (
            f"\n{players} players: {len(each)} rungs. The widest 95 % interval between neighbours "
            f"is {widest:.0f} points. The ratings fit worst that `{worst[0]}` wins "
            f"{100 * worst[2]:.0f} % against `{worst[1]}`; expected are {100 * worst[3]:.0f} %.\n"
        )
    return text


def _pairs(players: int) -> list[tuple[str, str, float, float]]:
    """Return all pairs that met: the upper rung, the lower one, its win rate and the expected."""
    result = ladder.rungs(players)
    return [
        (rung.spec, low.spec, wins, float(ladder.win_rate(players, np.array(rung.elo - low.elo))))
        for k, rung in enumerate(result)
        for low, wins in zip(result[max(k - 2, 0) : k][::-1], rung.wins, strict=True)
    ]


def skill() -> str:
    """Return the span of the ladder in Elo points and in Robertie's steps."""
    lines = []
    for players in (2, 3, 4):
        ends = ladder.rungs(players)
        apart = ends[-1].elo - ends[0].elo
        between = [f"`{end.spec}`" for end in (ends[0], ends[-1])]
        lines.append([str(players), *between, f"{apart:,.0f}", f"{apart / ELO_OF_A_STEP:.1f}"])
    return markdown(["players", "from", "to", "Elo points", "steps"], lines)


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


def moves_table() -> str:
    """Return examples of decisions, each as it came in games of greedy players."""
    texts = []
    for seed in range(20):
        for turn in notation.turn_texts(*played(2, seed)):
            texts += turn.text.split(", ")
    lines = []
    for meaning, pattern in MOVES:
        example = next(text for text in texts if re.fullmatch(pattern, text))
        lines.append([f"`{example}`", meaning])
    return markdown(["written", "meaning"], lines)


def told_game() -> str:
    """Return the beginning and the end of a game's text."""
    lines = notation.game_text(*played(2, 3)).splitlines()
    return "\n".join(["```", *lines[:9], "...", *lines[-5:], "```"]) + "\n"


def position_fields() -> str:
    """Return the fields of a position's text, from `notation.positions.FIELDS`."""
    lines = [[form.name, f"`{form.example}`", form.meaning] for form in notation.positions.FIELDS]
    return markdown(["field", "for example", "meaning"], lines)


def position_line() -> str:
    """Return a position as a line."""
    return f"```\n{notation.to_line(some_game()[0])}\n```\n"


def shipped_table() -> str:
    """Return the provenance of the shipped models, from their files."""
    head = ["model", "learnt from", "CPU-minutes", "wall time", "command", "its commit"]
    lines = []
    for path in sorted(FOLDER.glob("*.safetensors")):
        kind = path.stem.partition("_")[0]
        about = TYPES[kind].load(path).about
        unit = "decisions" if kind == "decisions" else "games"
        time = f"{about['seconds'] / 60:.0f} min, " if "seconds" in about else ""
        time += counted(about["workers"], "worker")
        cells = [f"{about[unit]:,} {unit}", f"{about['cpu_seconds'] / 60:.0f}", time]
        how = f"`{about['command']}`", f"`{(about['commit'] or '')[:7]}`"
        lines.append([f"`{path.stem.replace('_', ':')}`", *cells, *how])
    return markdown(head, lines)


def _power(number: int) -> str:
    bits = number.bit_length()
    return f"2^{bits} - 1" if bits > 16 and number == 2**bits - 1 else str(number)


TABLES: dict[str, Callable[[], str]] = {
    "actions": actions_table,
    "bench": bench_table,
    "arrays": arrays.arrays_table,
    "carolusbench": lambda: carolusbench.table(load("carolusbench")),
    "citation": citation,
    "fields": fields_table,
    "curves": lambda: curves.table(load("curves")),
    "gpu": lambda: gpu.table(load("gpu")),
    "learners": lambda: learners.table(load("learners")),
    "peers": lambda: peers.table(load("peers")),
    "rendering": lambda: rendering.table(load("rendering")),
    "startup": lambda: startup.table(load("startup")),
    "search": lambda: search.table(load("search")),
    "agents": lambda: strength.summary(load("strength"), load("times")),
    "strength": lambda: strength.table(load("strength")),
    "throughput": lambda: throughput.table(load("throughput")),
    "shipped": shipped_table,
    "ladder": ladder_table,
    "ladder hash": lambda: f"Hash of the ladder: `{ladder.digest()}`.\n",
    "skill": skill,
    "commands": commands_table,
    "engine messages": messages_table,
    "moves": moves_table,
    "moves of a game": told_game,
    "observation": observation_table,
    "observation version": lambda: f"Layout version {observation.VERSION}.\n",
    "options greedy": lambda: options_table(GreedyOptions),
    "options mcts": lambda: options_table(MctsOptions),
    "options planner": lambda: options_table(PlannerOptions),
    "options ppo": lambda: options_table(PpoOptions),
    "options rules": lambda: options_table(rules.Rules),
    "options search": lambda: options_table(SearchOptions),
    "options value": lambda: options_table(ValueOptions),
    "candidates": candidates_table,
    "value inputs": tables_text,
    "position fields": position_fields,
    "position in text": position_line,
    "features": features_table,
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
