"""What the studies of rollouts, luck, the suite and stop rules measured, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Callable

from results import Row, load, markdown, percent


def tests_table() -> str:
    """Verdicts and deals of sequential tests, and of the test that looks once."""
    rows = [row for row in load("sequential") if row["what"] == "test"]
    lines = [
        [
            _named(row),
            f"{row['elo0']:g}, {row['elo1']:g}",
            f"{row['elo']:g}",
            f"{percent(row['stronger'])} ({_range(row['interval'])})",
            f"{row['deals']:,.0f}",
            f"{row['deals_90']:,.0f}",
            percent(row["one_look_stronger"]),
            f"{row['one_look_deals']:,}",
        ]
        for row in rows
    ]
    head = ["deals like those of", "H0, H1", "truth", '"stronger" (95 %)', "deals"]
    head += ["90 % within", "one look: stronger", "deals"]
    return markdown(head, lines, rows)


def intervals_table() -> str:
    """How often intervals left out the truth, looked at again and again, or where they ended."""
    rows = [row for row in load("sequential") if row["what"] == "interval"]
    lines = [
        [
            _named(row),
            *(percent(row[f"{kind}_ever"]) for kind in ("wilson", "widened", "betting")),
            f"{row['width']:g}",
            *(
                f"{row[f'{kind}_deals']:,.0f} ({percent(row[f'{kind}_stopped'])})"
                for kind in ("wilson", "betting")
            ),
        ]
        for row in rows
    ]
    head = ["deals like those of", "fixed, ever wrong", "widened", "betting", "until"]
    head += ["fixed: deals (wrong)", "betting: deals (wrong)"]
    return markdown(head, lines)


def _named(row: Row) -> str:
    agents = row["scores"].split(" : ")
    return " : ".join(f"`{name}`" for name in agents) if len(agents) > 1 else row["scores"]


def _range(ends: list[float]) -> str:
    return f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f}"


def suite_table() -> str:
    """benchmarks/studies/suite.py: the order by loss against the order by rating."""
    rows = load("suite")
    lines = [
        [
            str(row["players"]),
            f"{len(row['agents'])}, {row['agents'][0]['spec']} to {row['agents'][-1]['spec']}",
            f"{row['widest_step']:.0f}",
            "{spearman:.2f} ({low:.2f} to {high:.2f})".format(**row),
            f"{row['neighbours_in_order']} of {row['neighbours']}",
            percent(row["optimism"]),
            f"{100 * row['again']['less']:.1f} ± {196 * row['again']['error']:.1f} %",
            f"{percent(row['again']['listed'])}, "
            f"{100 * row['again']['lost']:.1f} ± {196 * row['again']['lost_error']:.1f} %",
        ]
        for row in rows
    ]
    head = ["players", "agents", "widest step, Elo", "Spearman", "neighbours in order"]
    head += ["optimism", "in new games", "the last lose: by the suite, in new games"]
    return markdown(head, lines, rows)


def luck_table() -> str:
    """benchmarks/studies/luck.py: what limits win rates less luck."""
    rows = [row for row in load("luck") if row["value"] != "perfect"]
    lines = []
    for row in rows:
        saved = "{:.2f} ({:.2f} to {:.2f})".format(*row["saved"])
        foresight = " ".join(f"{part:.2f}" for part in row["foresight"])
        shares = (f"{row[name]:.2f}" for name in ("rolls", "decisions", "explained", "weight"))
        case = [str(row["players"]), str(row["games"]), row["value"], row["method"], foresight]
        play, luck = row["seconds_a_game"]
        cost = [
            f"{1e3 * play:.0f} + {1e3 * luck:.1f} ms",
            f"{row['saved'][0] * play / (play + luck):.2f}",
        ]
        lines.append([*case, *shares, f"{row['saved_at_weight_1']:.2f}", saved, *cost])
    head = ["players", "games", "value", "method", "foresight", "rolls", "decisions", "explained"]
    head += ["weight", "saved at weight 1", "saved", "a game + its luck", "core-seconds saved"]
    return markdown(head, lines, rows)


def rollouts_table() -> str:
    """benchmarks/studies/rollouts.py: what each part of a rollout gives."""
    found = load("rollouts")
    head = ["way", "spread", "gap", "ms a game", "cost", "cost of a gap", "shift"]
    lines = [
        [
            row["way"],
            f"{row['spread']:.3f}",
            f"{row['gap']:.3f}",
            f"{1e3 * row['seconds']:.2f}",
            f"{row['spread_cost']:.2g}",
            f"{row['gap_cost']:.2g}",
            f"{row['shift']:+.4f} +- {row['shift_error']:.4f}" if k else "",
        ]
        for study in found
        for k, row in enumerate(study["rows"])
    ]
    return markdown(head, lines, found)


def game_tables() -> dict[str, Callable[[], str]]:
    """benchmarks/studies/game.py: the tables of docs/game.md by name."""
    return {
        "game length": _length,
        "game choices": _choices,
        "game worth": _worth,
        "game discs": _discs,
    }


def _kind(row: Row) -> list[str]:
    return [str(row["players"]), row["crown_choice"]]


def _cell(found: Row, factor: float = 1, digits: int = 1) -> str:
    """A mean with its interval."""
    return f"{factor * found['mean']:.{digits}f} ± {factor * found['error']:.{digits}f}"


def _length() -> str:
    rows = load("game")
    names = list(rows[0]["length"]["reasons"])
    lines = []
    for row in rows:
        found = row["length"]
        low, high = found["rounds_range"]
        cells = [f"{_cell(found['rounds'])} ({low:.0f} to {high:.0f})"]
        cells += [_cell(found[name], digits=0) for name in ("turns", "decisions")]
        lines.append(_kind(row) + cells + [percent(found["reasons"][name]) for name in names])
    head = ["players", "crowns", "rounds (5 to 95 %)", "turns", "decisions"]
    about = f"\n{rows[0]['games']:,} games of each kind, `{rows[0]['agent']}` in every seat.\n"
    return markdown([*head, *(name.replace("_", " ") for name in names)], lines, rows) + about


def _choices() -> str:
    rows = load("game")
    lines = []
    for row in rows:
        found = row["choices"]
        cells = [f"{found[name]:.1f}" if name in found else "-" for name in _KINDS]
        turns = [f"{found['turn']['mean']:,.0f}", f"{found['turn_median']:,.0f}"]
        turns.append(f"10^{found['tree']['mean']:.0f}")
        lines.append(_kind(row) + cells + turns)
    return markdown(["players", "crowns", *_KINDS, "whole turn: mean", "median", "tree"], lines)


_KINDS = ("disc", "crown", "place", "move")


def _worth() -> str:
    rows = load("game")
    lines = [
        _kind(row)
        + [", ".join(_cell(part, 100) for part in row[name]) for name in ("seats", "places")]
        + [_cell(row["leads"][name], 100) for name in ("castle", "clan")]
        for row in rows
    ]
    head = ["players", "crowns", "seats, in opening order of round 1", "who acts 1st, 2nd ..."]
    return markdown([*head, "a castle of lead", "a clan of lead"], lines)


def _discs() -> str:
    lines = []
    for row in load("game"):
        if row["crown_choice"] != "on_roll":
            continue
        for hand in row["discs"]:
            cells = [
                f"{_cell(disc['loss'], 100)} ({percent(disc['chosen'])})" if disc["loss"] else "-"
                for disc in hand["discs"]
            ]
            lines.append([str(row["players"]), str(hand["in_hand"]), *cells])
    return markdown(["players", "discs in hand", *(f"disc {k}" for k in range(1, 6))], lines)
