"""Games and positions as JSON: written, read, checked, played.

A record holds a whole game (docs/formats.md has the format). To make one, keep the start of the
game and the actions played:

    >>> start = ce.new_games(ce.Rules(players=3), seed=7, roll=False)
    >>> ...                                    # play on a copy, noting each action
    >>> write_records("games.jsonl.gz", [make_record(start, actions)])

`replay` compares records with the engine, `carolus_env.records.position` has single positions.
"""

from carolus_env.records.position import PositionError
from carolus_env.records.record import (
    LONGEST_NAME,
    Difference,
    Record,
    RecordError,
    check_record,
    make_record,
    names_of,
    play_event,
    play_events,
    positions,
    read_records,
    record_line,
    replay,
    result_of,
    scan_records,
    start_of,
    state_of,
    write_records,
)

__all__ = [
    "LONGEST_NAME",
    "Difference",
    "PositionError",
    "Record",
    "RecordError",
    "check_record",
    "make_record",
    "names_of",
    "play_event",
    "play_events",
    "positions",
    "read_records",
    "record_line",
    "replay",
    "result_of",
    "scan_records",
    "start_of",
    "state_of",
    "write_records",
]
