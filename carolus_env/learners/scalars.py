"""Numbers for TensorBoard without PyTorch."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from carolus_env.system.files import Log


class Scalars:
    """A file of numbers in a folder of TensorBoard, which ends with a whole point.

    ``step`` is the last one that counts of those in the folder's other files: a run that is resumed
    repeats the later ones.
    """

    def __init__(self, folder: Path, step: int = 0) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2

        self._event: Any = event_pb2.Event
        self._summary: Any = summary_pb2.Summary
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time_ns()  # TensorBoard reads files in the order of their names
        path = folder / f"events.out.tfevents.{now // 10**9:010}.{now:019}"
        self._log = Log.create(path, self._framed(file_version="brain.Event:2"))
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._log.append(self._framed(session_log=start, step=step + 1))

    def write(self, values: Mapping[str, float], step: int) -> None:
        """Add a point to the line of each name."""
        numbers = [self._summary.Value(tag=tag, simple_value=v) for tag, v in values.items()]
        self._log.append(self._framed(step=step, summary=self._summary(value=numbers)))

    def _framed(self, **content: Any) -> bytes:
        """Return an event as a record of the file."""
        from tensorboard.summary.writer.record_writer import RecordWriter

        record, event = io.BytesIO(), self._event(wall_time=time.time(), **content)
        RecordWriter(record).write(event.SerializeToString())
        return record.getvalue()

    def close(self) -> None:
        """End the file."""
        self._log.close()
