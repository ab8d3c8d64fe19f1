"""The results of the benchmarks, ``benchmarks/results/*.json``, as tables in Markdown.

docs/tables.py writes the tables into the pages; docs/plots.py draws the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
FOLDER = BENCHMARKS / "results"

Row = dict[str, Any]

BATCH = 4096
"""The batch at which modes are compared; a mode of single games has batch 1."""

MODES = {
    "playout": "whole games at random in the kernel, no mask",
    "rollout_mask": "random choice in the kernel, mask written at every decision",
    "rollout_u8": "as `rollout_mask`, and the uint8 observation",
    "rollout_f32": "as `rollout_mask`, and the float32 observation",
    "step_mask": "actions from outside, by the compiled sampler: mask, choice, step",
    "step_u8": "as `step_mask`, and the uint8 observation",
    "step_f32": "as `step_mask`, and the float32 observation",
    "gym_vector": "Gymnasium: the learner's decisions, random opponents",
    "gym_turns": "Gymnasium, whole turns: the learner's steps, random opponents",
    "sb3_vec_env": "Stable-Baselines3: the learner's decisions, random opponents",
    "single": "one game from Python: mask view, choice, step",
    "aec_raw": "PettingZoo: `last()`, choice, `step`",
    "aec": "as `aec_raw`, in PettingZoo's OrderEnforcingWrapper",
    "aec_empty_raw": "as `aec_raw`, in an environment that does nothing",
    "aec_empty": "as `aec`, in an environment that does nothing",
}
"""What each mode of benchmarks/throughput.py includes, in the order of the tables."""

PEERS = {
    "pgx_connect_four": "Pgx: choice, step, mask, observation and reset in one compiled loop",
    "pgx_backgammon": "Pgx: choice, step, mask, observation and reset in one compiled loop",
    "openspiel_backgammon": "OpenSpiel from Python: legal actions, choice, step, dice",
    "pettingzoo_connect_four_raw": "PettingZoo: `last()`, choice, `step`",
    "pettingzoo_connect_four": "PettingZoo, in the wrappers it comes in: `last()`, choice, `step`",
    "aec_empty_raw": "an environment that does nothing: `last()`, choice, `step`",
    "aec_empty": "an environment that does nothing, in PettingZoo's OrderEnforcingWrapper",
}
"""What each peer of benchmarks/peers.py includes."""

FRAMES = {
    "ansi": "text: `render()`",
    "svg": "SVG, as a notebook shows it",
    "rgb_array": "pixels, 800 across: `render()`",
}
"""What each mode of benchmarks/rendering.py makes."""

LEARNERS = {"stock": "`MaskablePPO`, `MlpPolicy`", "selfplay": "`SelfPlayPPO`"}
"""The learners of benchmarks/training.py."""

OPPONENTS = {
    "itself": "itself, every seat learns",
    "frozen": "a frozen copy, one seat learns",
}
"""Opponents in benchmarks/training.py that are not bots."""

PARTS = (
    *("opponents", "engine", "masks_and_observations", "handing_over"),
    *("policy", "update", "rest"),
)
"""Parts of the time in benchmarks/training.py: the environment's, then the learner's."""


def load(name: str) -> list[Row]:
    """The rows of ``benchmarks/results/NAME.json``."""
    rows: list[Row] = json.loads((FOLDER / f"{name}.json").read_text())
    return rows


def in_order(rows: Iterable[Row]) -> list[str]:
    """The measured modes, in the order of `MODES`."""
    return sorted({row["mode"] for row in rows}, key=list(MODES).index)


def compared() -> dict[str, dict[int, Row]]:
    """Each mode's rows on one thread, by players, at `BATCH` or else its largest batch."""
    rows = [row for row in load("throughput") if row["threads"] == 1]
    modes = {}
    for mode in in_order(rows):
        batches = {row["batch"] for row in rows if row["mode"] == mode}
        batch = BATCH if BATCH in batches else max(batches)
        modes[mode] = {
            row["players"]: row for row in rows if (row["mode"], row["batch"]) == (mode, batch)
        }
    return modes


def by_batch() -> dict[str, dict[int, Row]]:
    """Each batched mode's rows with 2 players on one thread, by batch."""
    rows = [row for row in load("throughput") if (row["players"], row["threads"]) == (2, 1)]
    rows.sort(key=lambda row: row["batch"])
    modes = {
        mode: {row["batch"]: row for row in rows if row["mode"] == mode} for mode in in_order(rows)
    }
    return {mode: cases for mode, cases in modes.items() if max(cases) > 1}


def short(number: float) -> str:
    """A number in at most three digits: 10.9 M, 3.71 M, 620 k, 69 k, 6.94 k, 512."""
    number = float(f"{number:.3g}")
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            scaled = number / size
            digits = 2 if scaled < 10 else int(scaled < 100 and unit != "k")
            return f"{scaled:.{digits}f} {unit}"
    return f"{number:g}"


def seconds(number: float) -> str:
    """A duration: 0.28 s, 7.5 s."""
    return f"{number:.{2 if number < 1 else 1}f} s"


def milliseconds(number: float) -> str:
    """A short duration: 0.21 ms, 1.0 ms, 43 ms."""
    return f"{number:.{2 if number < 1 else int(number < 10)}f} ms"


def percent(share: float) -> str:
    """A share of 1: 42 %, and below a tenth 4.2 %."""
    return f"{100 * share:.{int(share < 0.1)}f} %"


def times(ratio: float) -> str:
    """A ratio: 0.42, 1.73, 17, 4,200."""
    return f"{float(f'{ratio:.3g}'):.2f}" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}"


def span(low: float, high: float, written: Callable[[float], str] = short) -> str:
    """A range; a unit that both ends share is written once: 10.2 to 11.1 M."""
    left, right = written(low).split(" "), written(high).split(" ")
    return f"{left[0] if left[1:] == right[1:] else ' '.join(left)} to {' '.join(right)}"


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]], rows: Iterable[Row] = ()) -> str:
    """A table in Markdown, followed by the machines on which ``rows`` were measured."""
    text = "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *lines))
    machines = dict.fromkeys(machine(row["machine"]) for row in rows if "machine" in row)
    return text + (f"\nMachine: {'; '.join(machines)}.\n" if machines else "")


def machine(about: str | dict[str, Any]) -> str:
    """The machine in one line, from a text or its parts."""
    if isinstance(about, str):
        return about
    return ", ".join(f"{name} {value}" for name, value in about.items())


def throughput_table() -> str:
    """Decisions a second of every mode, for 2, 3 and 4 players."""
    head = ["mode", "what is included", "batch"]
    head += [name for players in (2, 3, 4) for name in (f"{players} players", "min to max")]
    lines: list[list[str]] = []
    measured: list[Row] = []
    for mode, cases in compared().items():
        line = [f"`{mode}`", MODES[mode], f"{next(iter(cases.values()))['batch']:,}"]
        for players in (2, 3, 4):
            row = cases.get(players)
            line += (
                [short(row["decisions_per_s"]), span(row["min"], row["max"])] if row else ["-", "-"]
            )
        lines.append(line)
        measured += cases.values()
    return markdown(head, lines, measured)


def batches_table() -> str:
    """Decisions a second of every batched mode, by batch."""
    modes = by_batch()
    sizes = sorted({batch for cases in modes.values() for batch in cases})
    lines = [
        [f"`{mode}`", *(short(c[n]["decisions_per_s"]) if n in c else "-" for n in sizes)]
        for mode, c in modes.items()
    ]
    return markdown(["mode / batch", *(f"{size:,}" for size in sizes)], lines)


def threads_table() -> str:
    """Decisions a second on several threads, and the speed-up over one thread."""
    rows = load("throughput")
    one = {case(row): row["decisions_per_s"] for row in rows if row["threads"] == 1}
    lines = [
        [
            *(f"`{row['mode']}`", f"{row['players']}", f"{row['batch']:,}", f"{row['threads']}"),
            *(short(row["decisions_per_s"]), span(row["min"], row["max"])),
            times(row["decisions_per_s"] / one[case(row)]) if case(row) in one else "-",
        ]
        for row in rows
        if row["threads"] > 1
    ]
    head = ["mode", "players", "batch", "threads", "decisions/s", "min to max", "times one thread"]
    return markdown(head, lines) if lines else "Measured on one thread only.\n"


def case(row: Row) -> tuple[str, int, int]:
    """Mode, players and batch of a row of throughput.json."""
    return row["mode"], row["players"], row["batch"]


def peers_table() -> str:
    """This environment and others: rates and ratios."""
    rows = load("peers")
    lines = [
        [
            *(f"`{row['ours']}`", f"`{row['peer']}`", PEERS[row["peer"]], row["unit"]),
            *(short(row["ours_per_s"]), short(row["peer_per_s"]), times(row["ratio"])),
            span(row["ratio_min"], row["ratio_max"], times),
        ]
        for row in rows
    ]
    head = ["ours", "other", "what the other's figure includes", "unit", "ours", "other"]
    versions = dict.fromkeys(row["peer_version"] for row in rows)
    table = markdown([*head, "ratio", "min to max"], lines, rows)
    return f"{table}\nThe others: {'; '.join(versions)}.\n"


def startup_table() -> str:
    """Seconds of fresh processes."""
    rows = load("startup")
    lines = [
        [row["what"].strip(), seconds(row["seconds"]), span(row["min"], row["max"], seconds)]
        for row in rows
    ]
    return markdown(["what", "median", "min to max"], lines, rows)


def arrays_table() -> str:
    """Decisions a second from games to arrays."""
    rows = load("arrays")
    lines = [
        [
            *(row["what"], f"{row['bytes_a_game']:,}", f"{row['per_s']:,}"),
            f"{row['min']:,} to {row['max']:,}",
        ]
        for row in rows
    ]
    head = ["from, to", "bytes a game", "decisions a CPU second", "min to max"]
    return markdown(head, lines, rows)


def copies_table() -> str:
    """Microseconds to copy games as bytes, and field by field."""
    rows = load("copies")
    lines = [
        [
            *(f"`{row['what']}`", f"{row['games']:,}"),
            *(f"{row[way]:,.3g} us" for way in ("bytes", "fields")),
            f"{row['ratio']:.3g} ({row['min']:.3g} to {row['max']:.3g})",
        ]
        for row in rows
    ]
    return markdown(["call", "games", "as bytes", "by NumPy", "times as fast"], lines, rows)


def rendering_table() -> str:
    """Milliseconds a frame, for 2, 3 and 4 players."""
    rows = load("rendering")
    head = ["mode", "what is made"]
    head += [name for players in (2, 3, 4) for name in (f"{players} players", "min to max")]
    found = {(row["mode"], row["players"]): row for row in rows}
    lines = []
    for mode, made in FRAMES.items():
        line = [f"`{mode}`", made]
        for players in (2, 3, 4):
            row = found[mode, players]
            line += [milliseconds(row["ms"]), span(row["min"], row["max"], milliseconds)]
        lines.append(line)
    return markdown(head, lines, rows)


def training_table() -> str:
    """Decisions a second of training, also without an environment, and the environment's share."""
    rows = load("training")
    lines = [
        [
            *(*training_case(row), row["net"]),
            *(f"{row[key]:,}" for key in ("decisions_per_s", "empty_per_s")),
            times(row["ratio"]),
            span(row["ratio_min"], row["ratio_max"], times),
            percent(row["share"]),
            span(row["share_min"], row["share_max"], percent),
        ]
        for row in rows
    ]
    head = ["players", "learner", "against", "network", "decisions/s", "empty environment"]
    head += ["ratio", "min to max", "environment's share", "min to max"]
    pace = {(row["players"], row["opponents"]): row["decisions_per_s"] for row in rows}
    gains = [
        f"{players} players: {times(pace[players, 'itself'] / pace[players, 'frozen'])} times"
        for players in (2, 3, 4)
        if pace.keys() >= {(players, "itself"), (players, "frozen")}
    ]
    gain = (
        f"\nEvery seat's decisions a second by one seat's: {'; '.join(gains)}.\n" if gains else ""
    )
    return markdown(head, lines, rows) + gain


def parts_table() -> str:
    """Parts of the time of training with this environment."""
    lines = [
        [*training_case(row), *(percent(row["parts"][part]) for part in PARTS)]
        for row in load("training")
    ]
    head = ["players", "learner", "against", *(part.replace("_", " ") for part in PARTS)]
    return markdown(head, lines)


def training_case(row: Row) -> list[str]:
    """Players, learner and opponents of a row of training.json."""
    opponents = row["opponents"]
    return [
        f"{row['players']}",
        LEARNERS[row["learner"]],
        OPPONENTS.get(opponents, f"`{opponents}`"),
    ]


def bot_costs_table() -> str:
    """benchmarks/bots.py: time for a decision of each phase, by number of players."""
    report = json.loads((FOLDER / "bots.json").read_text())
    found = {(row["bot"], row["players"], row["phase"]): row for row in report["decisions"]}
    head = "| bot | players | disc | turn (first decision) | crown | simulations/s, disc and turn |"
    lines = [head, "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for bot, players in dict.fromkeys((bot, players) for bot, players, _ in found):
        disc, place, crown = (found[bot, players, phase] for phase in ("disc", "place", "crown"))
        rates = [row["simulations_per_s"] for row in (disc, place)]
        shown = " and ".join(short(rate) for rate in rates) if all(rates) else "-"
        times = " | ".join(_duration(row["us"]) for row in (disc, place, crown))
        lines.append(f"| `{bot}` | {players} | {times} | {shown} |")
    return "\n".join(lines) + f"\n\nMedians; {report['machine']}.\n"


def bot_pairings_table() -> str:
    """benchmarks/bots.py: games a second of each pairing."""
    report = json.loads((FOLDER / "bots.json").read_text())
    lines = ["| pairing | players | games/s | outside the bots |", "| --- | ---: | ---: | ---: |"]
    for row in report["pairings"]:
        names = " : ".join(f"`{name}`" for name in row["pair"])
        share = f"{100 * row['outside']:.1f} %"
        lines.append(f"| {names} | {row['players']} | {short(row['games_per_s'])} | {share} |")
    return "\n".join(lines) + "\n"


def _duration(us: float) -> str:
    """Microseconds as ns, us or ms, in three digits."""
    if us < 0.9995:
        return f"{1000 * us:.3g} ns"
    return f"{us:.3g} us" if us < 999.5 else f"{us / 1000:.3g} ms"
