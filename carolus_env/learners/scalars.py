"""Numbers for TensorBoard without PyTorch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Scalars:
    """Writes numbers into a folder of TensorBoard.

    Args:
        folder: folder of the event files.

    Raises:
        ModuleNotFoundError: when the package tensorboard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event: Any = Event
        self._summary: Any = Summary
        self._writer = EventFileWriter(str(folder))

    def write(self, values: Mapping[str, float], step: int) -> None:
        """Add a point to the line of each name."""
        numbers = [self._summary.Value(tag=tag, simple_value=v) for tag, v in values.items()]
        summary = self._summary(value=numbers)
        self._writer.add_event(self._event(wall_time=time.time(), step=step, summary=summary))
        self._writer.flush()

    def close(self) -> None:
        """End the file."""
        self._writer.close()
