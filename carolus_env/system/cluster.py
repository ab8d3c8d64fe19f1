"""A Ray cluster as an executor (`system.executors`), and the options of commands that can use one.

Tasks are Ray's own: it gives them to whatever machines there are, takes up machines that come, and
does tasks again whose machine is lost. Files that agents' specs name go along as its runtime
environment. Nothing is known here of games. It needs the extra ``ray``.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from carolus_env.system.executors import MOST_PROCESSES, WorkerError, Workers, local
from carolus_env.system.failures import install
from carolus_env.system.options import check_fields, option
from carolus_env.system.sources import named_files
from carolus_env.system.version import __version__

BACKENDS: Final = ("processes", "ray")
"""Where a command's workers are."""

QUEUED: Final = 2
"""Tasks under way, at most, for each processor: one is done, and one waits next to it."""
RETRIES: Final = 3
"""Number of times that Ray repeats a task whose process or machine was lost."""

_LARGEST_BESIDE: Final = 20 * 2**20  # bytes of a file that goes along without being named
_LARGEST_SUM: Final = 200 * 2**20  # bytes of all files
_COUNTED_FOR: Final = 5.0  # seconds for which a number of processors holds


def workers_option(usual: str) -> Any:
    """Return the option `WorkerOptions.workers`, by default as many as ``usual`` says."""
    about = f"parallel workers; by default {usual}, or on ray as many as fit"
    return option(None, about, kind=int, among=(1, MOST_PROCESSES))


@dataclass(frozen=True)
class WorkerOptions:
    """Where the work is done.

    Raises:
        ValueError: for a backend that cannot be used.
    """

    workers: int | None = workers_option("1")
    backend: str = option(
        BACKENDS[0],
        "processes here, or ray: the cluster of RAY_ADDRESS or a new one",
        among=BACKENDS,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.backend == "ray" and find_spec("ray") is None:
            raise ValueError(f"--backend ray needs the extra 'ray': {install('ray')}")


def workers_of(options: WorkerOptions, specs: Iterable[str] = (), *, usual: int = 1) -> Workers:
    """Return the workers that the options ask for; to be closed.

    Args:
        options: the options.
        specs: agents' specs: a cluster is sent the files that they name.
        usual: the number of processes where the options name none.

    Raises:
        WorkerError: when there is no such cluster.
        ValueError: for files that cannot be sent.
    """
    if options.backend == "ray":
        return Cluster(limit=options.workers, specs=specs)
    return local(options.workers or usual)


class Cluster(Workers):
    """Tasks on a Ray cluster; connected at once.

    Args:
        address: an address that ``ray.init`` takes. None: ``RAY_ADDRESS``, or else the one
            running on this machine, or else a new one, which ends with this.
        limit: maximum number of tasks at the same time; None: the cluster's processors.
        specs: specs of agents: the files that they name by relative paths are sent along.

    Raises:
        WorkerError: when Ray is missing, or there is no such cluster.
        ValueError: for files that cannot go along.
    """

    def __init__(
        self, address: str | None = None, *, limit: int | None = None, specs: Iterable[str] = ()
    ) -> None:
        files = [file for spec in specs for file in files_of(spec)]
        # Tasks that are forgotten may fail: nobody asks for their results.
        os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
        os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # where a machine is busy
        try:
            import ray
        except ModuleNotFoundError as error:
            raise WorkerError(f"a cluster needs the extra 'ray': {install('ray')}") from error
        self._ray, self._limit = ray, limit
        self._counted, self._processors = -_COUNTED_FOR, 0
        self._ours = not ray.is_initialized()
        if self._ours:
            self._connect(address, files)
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
        if time.monotonic() - self._counted > _COUNTED_FOR:  # machines come and go
            self._counted = time.monotonic()
            self._processors = int(self._ray.cluster_resources().get("CPU", 0))
        # Without any, a task that waits makes a cluster grow that can.
        return max(min(self._processors, self._limit or self._processors), 1)

    @property
    def most(self) -> int:
        return self._limit or QUEUED * self.count

    def submit(self, task: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        call = pickle.dumps((task, arguments, named))
        future: Future[Any] = self._task.remote(__version__, call).future()
        return future

    def explained(self, error: BaseException) -> BaseException:
        """Return the error that a task raised, or one of Ray in a line."""
        cause = getattr(error, "cause", None)
        if isinstance(cause, ValueError | WorkerError):
            return cause
        if isinstance(cause, Exception) and type(cause).__module__.startswith("carolus_env."):
            return cause
        lines = [line for line in str(error).splitlines() if line.strip()]
        if isinstance(error, self._ray.exceptions.RayTaskError):
            return WorkerError(f"a machine of the cluster could not do a task: {lines[-1].strip()}")
        return WorkerError(
            f"a task was lost {RETRIES + 1} times, with its process or its machine; did an agent "
            "crash Python, or is there too little memory? "
            f"{type(error).__name__}: {lines[0].strip()}"
        )

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        # Tasks are not cancelled: Ray can end this process where one is done then (ray#54798).
        if self._ours and self._ray.is_initialized():
            self._ray.shutdown()


def _do(version: str, call: bytes) -> Any:
    """Do a task in one of Ray's processes."""
    if version != __version__:
        where = f"{os.uname().nodename} has carolus-env {__version__}, not {version}"
        raise ValueError(f"{where}: install the same version on all machines")
    task, arguments, named = pickle.loads(call)
    return task(*arguments, **named)


# ------------------------------------------------------------------------------------ files


def files_of(spec: str) -> list[Path]:
    """Return the files that a spec names by a relative path: a program, or a model.

    An absolute path is one that all machines have.

    Raises:
        ValueError: for one outside the current folder, which no other machine would have.
    """
    result = [path for path in named_files(spec) if not path.is_absolute()]
    if any(".." in path.parts for path in result):
        raise ValueError(
            f"{spec}: on a cluster, name a file below the current folder, or by an absolute path "
            "that all machines have"
        )
    return result


@contextlib.contextmanager
def _staged(files: Iterable[Path]) -> Iterator[Path]:
    """Yield a folder with the files at the same relative paths, to be the tasks' current folder.

    With a Python file go the other files of its folder, up to 20 MB each, and the Python packages
    in it: it may import or read them.

    Raises:
        ValueError: when it is too much.
    """
    sizes: dict[Path, int] = {}
    for file in files:
        sizes[file] = file.stat().st_size
        if file.suffix == ".py":
            sizes |= dict(_beside(file.parent))
    if sum(sizes.values()) > _LARGEST_SUM:
        largest = max(sizes, key=lambda file: sizes[file])
        raise ValueError(
            f"files that go along to the cluster have {sum(sizes.values()):,} bytes, allowed are "
            f"{_LARGEST_SUM:,}; the largest is {largest}: put the agent into a folder of its own"
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
        elif path.is_file() and (size := path.stat().st_size) <= _LARGEST_BESIDE:
            yield path, size
