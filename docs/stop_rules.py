"""What benchmarks/studies/sequential.py measured, as tables in Markdown."""

from __future__ import annotations

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
