"""Workers on a Ray cluster (`system.processes` has what workers are); needs the extra ``ray``.

Tasks are Ray's own: it gives them to whatever machines there are, takes up machines that come, and
does tasks again whose machine is lost. Arguments and results travel through its object store.
Files that agents' specs name go along as its runtime environment. Nothing is known here of games.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from carolus_env.system.failures import install
from carolus_env.system.processes import (
    Desk,
    Failure,
    Result,
    WorkerError,
    Workers,
    unwrapped,
)
from carolus_env.system.version import __version__

MISSING: Final = "--backend ray needs the extra 'ray': " + install("ray")
QUEUED: Final = 2
"""Tasks under way, at most, for each processor: one is done, and one waits next to it."""
RETRIES: Final = 3
"""Number of times that Ray repeats a task whose process or machine was lost."""

_LARGEST: Final = 20 * 2**20  # bytes of a file that goes along without being named
_TOGETHER: Final = 200 * 2**20  # and of all files
_COUNTED: Final = 5.0  # seconds for which a number of processors holds
_WOKEN: Final = 1.0  # seconds between two chances to notice Ctrl-C


class Cluster(Workers):
    """Workers on a Ray cluster; connected at once.

    Args:
        address: an address that ``ray.init`` takes. None: ``RAY_ADDRESS``, or else the one
            running on this machine, or else a new one, which ends with this.
        most: maximum number of tasks at the same time; None: the cluster's processors.
        files: relative paths of files that tasks read (`files.staged`).

    Raises:
        WorkerError: when Ray is missing, or there is no such cluster.
        ValueError: for files that cannot go along.
    """

    def __init__(
        self, address: str | None = None, *, most: int | None = None, files: Iterable[Path] = ()
    ) -> None:
        if find_spec("ray") is None:
            raise WorkerError(MISSING)
        # Tasks that are forgotten may fail: nobody asks for their results.
        os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
        os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # where a machine is busy
        import ray

        self._ray, self._most = ray, most
        self._numbers: dict[Any, int] = {}  # tasks under way, by Ray's reference
        self._counted, self._processors = -_COUNTED, 0
        self._ours = not ray.is_initialized()
        if self._ours:
            self._connect(address, list(files))
        self._task = ray.remote(num_cpus=1, max_retries=RETRIES)(_do)

    def _connect(self, address: str | None, files: list[Path]) -> None:
        with contextlib.ExitStack() as stack:
            env: dict[str, Any] = {"env_vars": {"OMP_NUM_THREADS": "1"}}
            if files:
                env["working_dir"] = str(stack.enter_context(_staged(files)))
            try:
                self._ray.init(
                    address,
                    runtime_env=env,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="error",
                )
            except Exception as error:  # Ray raises it as it is where a node starts too slowly
                raise WorkerError(f"no Ray cluster at {address or 'hand'}: {error}") from error

    @property
    def count(self) -> int:
        if time.monotonic() - self._counted > _COUNTED:  # machines come and go
            self._counted = time.monotonic()
            self._processors = int(self._ray.cluster_resources().get("CPU", 0))
        # Without any, a task that waits makes a cluster grow that can.
        return max(min(self._processors, self._most or self._processors), 1)

    @property
    def room(self) -> int:
        most = self._most or QUEUED * self.count
        return max(most - len(self._numbers), 0)  # machines may have gone

    @property
    def pending(self) -> int:
        return len(self._numbers)

    def _begin(self) -> None:
        self._digest = hashlib.sha256(self._job).hexdigest()
        self._shared_job = [self._ray.put(self._job)]  # in a list: fetched only where it is new

    def share(self, value: Any) -> Any:
        return self._ray.put(value)

    def submit(self, number: int, *task: Any) -> None:
        ref = self._task.remote(__version__, self._digest, self._shared_job, *task)
        self._numbers[ref] = number

    def take(self) -> list[Result]:
        done: list[Any] = []
        while not done:
            done, _ = self._ray.wait(list(self._numbers), timeout=_WOKEN)
        done, _ = self._ray.wait(list(self._numbers), num_returns=len(self._numbers), timeout=0)
        return [(self._numbers.pop(ref), self._answer(ref)) for ref in done]

    def _answer(self, ref: Any) -> Any:
        try:
            answer = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            raise WorkerError(_message(self._ray, error)) from error
        return unwrapped(answer)

    def _abandon(self) -> None:
        # Not cancelled: Ray can end this process where a task is done at that moment (ray#54798).
        self._numbers.clear()

    def close(self) -> None:
        self._abandon()
        if self._ours and self._ray.is_initialized():
            self._ray.shutdown()


def _message(ray: Any, error: Exception) -> str:
    """Return an error of Ray in a line."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    if isinstance(error, ray.exceptions.RayTaskError):  # before a task began
        return f"a machine of the cluster could not begin a task: {lines[-1].strip()}"
    return (
        f"a task was lost {RETRIES + 1} times, with its process or its machine; did an agent crash "
        f"Python, or is there too little memory? {type(error).__name__}: {lines[0].strip()}"
    )


# ------------------------------------------------------------------------------------ files


@contextlib.contextmanager
def _staged(files: Iterable[Path]) -> Iterator[Path]:
    """Yield a folder with the files at the same relative paths, to be the tasks' current folder.

    With a Python file go the other files of its folder, up to 20 MB each, and the Python packages
    in it: it may import or read them.

    Raises:
        ValueError: for a path that leaves the current folder, and when it is too much.
    """
    sizes: dict[Path, int] = {}
    for file in files:
        if file.is_absolute() or ".." in file.parts:
            raise ValueError(f"{file}: a file goes along only from below the current folder")
        sizes[file] = file.stat().st_size
        if file.suffix == ".py":
            sizes |= dict(_beside(file.parent))
    if sum(sizes.values()) > _TOGETHER:
        largest = max(sizes, key=lambda file: sizes[file])
        raise ValueError(
            f"files that go along to the cluster have {sum(sizes.values()):,} bytes, allowed are "
            f"{_TOGETHER:,}; the largest is {largest}: put the agent into a folder of its own"
        )
    with tempfile.TemporaryDirectory(prefix="carolus-files-") as folder:
        for file in sizes:
            copy = Path(folder, file)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        yield Path(folder)


def _beside(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield what goes along of the folder of a Python file, with sizes in bytes."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__pycache__")) or path.name == __name__.partition(".")[0]:
            continue
        if path.is_dir() and (path / "__init__.py").is_file():
            yield from _beside(path)
        elif path.is_file() and (size := path.stat().st_size) <= _LARGEST:
            yield path, size


# ------------------------------------------------------------------------------------ a worker

_desks: dict[str, Desk] = {}  # this process's jobs, by digest


def _do(version: str, digest: str, job: list[Any], *task: Any) -> Any:
    """Do a task in one of Ray's processes: a result, or a `Failure`."""
    if version != __version__:
        where = f"{os.uname().nodename} has carolus-env {__version__}, not {version}"
        return Failure(ValueError(f"{where}: install the same version on all machines"))
    if digest not in _desks:
        import ray

        _desks.clear()
        _desks[digest] = Desk(ray.get(job[0]))
    return _desks[digest].done(task)
