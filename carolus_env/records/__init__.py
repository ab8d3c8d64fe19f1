"""Games and positions as JSON: written, read, checked, played (docs/formats.md).

`make_record` takes the start of a game, of ``new_games(..., roll=False)``, and the actions played;
`replay` compares records with the engine; `carolus_env.records.position` has single positions.
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
