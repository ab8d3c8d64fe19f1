"""Executors of tasks (`concurrent.futures`): this process, worker processes, or a cluster.

    with executors.ready(4) as workers:
        for number, result in results(workers, job, tasks):
            ...

A job is called once in each process, and returns a function of tasks. A task depends on its
arguments alone, so it can be done again.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from carolus_env.system.machine import __version__, install, named_files
from carolus_env.system.options import UserError, check_fields, option, whole_number
from carolus_env.system.untrusted import full_traceback, message

Job = Callable[[], Callable[..., Any]]

MOST_PROCESSES: Final = 256
"""Worker processes on one machine."""

AHEAD: Final = 4  # a slow task lets others fill no memory
"""Tasks under way, or done before their turn, at most, for each worker."""


class WorkerError(UserError):
    """Workers are not available, or one died or failed outside its job."""

    traceback = ""  # the worker's own, as Python prints it; empty without one


class UnsendableError(ValueError):
    """A job that cannot be pickled."""


class Workers(Executor):
    """An executor of tasks, which knows how many it does at a time."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Tasks that are done at the same time; of a cluster, as of now."""

    @property
    def most(self) -> int:
        """Tasks to submit, at most, before one is done."""
        return self.count

    def begin(self, job: Job) -> Callable[..., Future[Any]]:
        """Return a function that submits a task of a job."""
        try:
            sent = pickle.dumps(job)
        except Exception as error:  # anything that cannot be pickled fails in its own way
            raise UnsendableError(str(error)) from error
        return lambda *task: self.submit(_do, __version__, sent, pickle.dumps(task))

    def result(self, future: Future[Any]) -> Any:
        """Return the result of a task that is done, or raise its error."""
        result, error = pickle.loads(future.result())
        if error is not None:
            raise error
        return result


def results(
    workers: Workers, job: Job, tasks: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Do tasks, and yield the number of each, from 0, and its result, in the order of the tasks.

    A task is asked for when it can be begun. After a failure nothing more is begun; what was under
    way is yielded, then the first error is raised: a `WorkerError`, or the task's own if it is of
    the package's classes or a ValueError.
    """
    begin, numbered = workers.begin(job), enumerate(tasks)
    futures: deque[tuple[int, Future[Any]]] = deque()
    failure: Exception | None = None
    while True:
        running = [future for _, future in futures if not future.done()]
        while (
            failure is None
            and len(running) < workers.most
            and len(futures) < AHEAD * workers.count
            and not (futures and futures[0][1].done())
            and (task := next(numbered, None)) is not None
        ):
            running.append(begin(*task[1]))
            futures.append((task[0], running[-1]))
        if not futures:
            break
        number, future = futures[0]
        if not future.done():
            wait(running, return_when=FIRST_COMPLETED)
            continue
        futures.popleft()
        try:
            result = workers.result(future)
        except Exception as error:
            failure = failure or error
        else:
            yield number, result
    if failure is not None:
        raise failure


def ready(workers: int | Workers) -> contextlib.AbstractContextManager[Workers]:
    """Return workers unchanged, for the caller to close, or new processes; for 1, this process."""
    if isinstance(workers, Workers):
        return contextlib.nullcontext(workers)
    whole_number("workers", workers, 1, MOST_PROCESSES)
    return InProcess() if workers == 1 else Processes(workers)


class InProcess(Workers):
    """This process: a task is done when it is submitted, and nothing is sent anywhere."""

    count = 1

    def begin(self, job: Job) -> Callable[..., Future[Any]]:
        return partial(self.submit, job())

    def submit(self, task: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(task(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future

    def result(self, future: Future[Any]) -> Any:
        return future.result()


class Processes(Workers, ThreadPoolExecutor):
    """Worker processes on this machine, each asked by a thread; closing ends them at once.

    A `ProcessPoolExecutor` hangs where a process is killed while it sends a result.
    """

    count = 0

    def __init__(self, count: int) -> None:
        ThreadPoolExecutor.__init__(self, count)
        self.count, self._processes = count, list[_Process]()
        self._idle: SimpleQueue[_Process] = SimpleQueue()

    def submit(self, task: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        while len(self._processes) < self.count:
            self._processes.append(_Process())
            self._idle.put(self._processes[-1])
        return ThreadPoolExecutor.submit(self, self._ask, partial(task, *arguments, **named))

    def _ask(self, call: Callable[[], Any]) -> Any:
        process = self._idle.get()
        try:
            return process.ask(call)
        finally:
            self._idle.put(process)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        for process in self._processes:
            process.kill()
        ThreadPoolExecutor.shutdown(self, wait, cancel_futures=cancel_futures)


class _Process:
    """A worker process, which starts when this is made."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, its_own = context.Pipe()
        self._process = context.Process(target=_work, args=(its_own,), daemon=True)
        with _spawning():
            self._process.start()
        its_own.close()
        self._begun = False

    def ask(self, call: Callable[[], Any]) -> Any:
        """Let it make a call, and return the result."""
        try:
            if not self._begun:
                self._begun = self._connection.recv()
            self._connection.send(call)
            return self._connection.recv()
        except (EOFError, OSError):
            raise self._death() from None

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def _death(self) -> WorkerError:
        self._process.join()
        if self._begun:
            code = self._process.exitcode
            return WorkerError(f"a worker process died (exit code {code}); is there enough memory?")
        text = "the worker processes could not start: their error is printed above"
        file = getattr(sys.modules["__main__"], "__file__", None)
        with contextlib.suppress(OSError, ValueError):
            if file is not None and "__main__" not in Path(file).read_text():
                text += (
                    ". A script that plays with workers must do so under `if __name__ == "
                    '"__main__":`, since every worker imports it'
                )
        return WorkerError(text)


@contextlib.contextmanager
def _spawning() -> Iterator[None]:
    """Let an interpreter that starts in the ``with`` block be a good worker from its first line on.

    Threads of several would compete for the cores; files of the current folder must not stand in
    for Python's; Ctrl-C is for this process; a program from standard input cannot be imported.
    """
    main, file = sys.modules["__main__"], getattr(sys.modules["__main__"], "__file__", None)
    hidden = file is not None and not Path(file).exists()
    given = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"), "PYTHONSAFEPATH": "1"}
    before = {name: os.environ[name] for name in given if name in os.environ}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        os.environ.update(given)
        if hidden:
            del main.__file__
        yield
    finally:
        if hidden:
            main.__file__ = file
        for name in given:
            del os.environ[name]
        os.environ.update(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


# ------------------------------------------------------------------------------------ a worker


def _work(connection: Connection) -> None:
    """Run a worker process: it is sent calls, and answers each with its result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.pop("PYTHONSAFEPATH", None)  # programs that start here have folders of their own
    parent: Any = multiprocessing.parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the parent is gone
        connection.send(True)
        while True:
            connection.send(connection.recv()())  # of `_do`, which raises nothing


def _do(version: str, job: bytes, task: bytes) -> bytes:
    """Do a task by its job's function, which is made here; return its result and its error.

    An error of the package, or a ValueError, comes as it is; of another one, its text.
    """
    try:
        if version != __version__:
            where = f"{os.uname().nodename} has carolus-env {__version__}, not {version}"
            raise ValueError(f"{where}: install the same version on all machines")
        return pickle.dumps((_made(job)(*pickle.loads(task)), None))
    except Exception as error:
        if type(error) is ValueError or type(error).__module__.startswith("carolus_env."):
            with contextlib.suppress(Exception):  # else its text is sent
                answer = pickle.dumps((None, error))
                pickle.loads(answer)
                return answer
        failure = WorkerError(f"a worker failed with {message(error)}")
        failure.traceback = full_traceback(error)
        return pickle.dumps((None, failure))


@lru_cache(maxsize=1)
def _made(job: bytes) -> Callable[..., Any]:
    function: Callable[..., Any] = pickle.loads(job)()
    return function


# ------------------------------------------------------------------------------------ a cluster

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
    """Where the work is done."""

    workers: int | None = workers_option("1")
    backend: str = option(
        "processes",
        "processes here, or ray: the cluster of RAY_ADDRESS or a new one",
        among=("processes", "ray"),
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.backend == "ray" and find_spec("ray") is None:
            raise ValueError(f"--backend ray needs the extra 'ray': {install('ray')}")


def workers_of(
    options: WorkerOptions, specs: Iterable[str] = (), *, usual: int = 1
) -> contextlib.AbstractContextManager[Workers]:
    """Return the workers that the options ask for; to be closed."""
    if options.backend == "ray":
        return Cluster(limit=options.workers, specs=specs)
    return ready(options.workers or usual)


class Cluster(Workers):
    """Tasks on a Ray cluster, done again where a machine is lost; files of specs go along."""

    def __init__(
        self, address: str | None = None, *, limit: int | None = None, specs: Iterable[str] = ()
    ) -> None:
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
            with _staged(specs) as env:
                env["env_vars"] = {"OMP_NUM_THREADS": "1"}
                quiet: Any = {"include_dashboard": False, "log_to_driver": False}
                try:
                    ray.init(address, runtime_env=env, logging_level="error", **quiet)
                except Exception as error:  # Ray raises it as it is where a node starts too slowly
                    raise WorkerError(f"no Ray cluster at {address or 'hand'}: {error}") from error
        self._remote = cache(ray.remote(num_cpus=1, max_retries=RETRIES))

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
        future: Future[Any] = self._remote(task).remote(*arguments, **named).future()
        return future

    def result(self, future: Future[Any]) -> Any:
        try:
            return super().result(future)
        except self._ray.exceptions.RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            text = f"a machine of the cluster could not do a task: {lines[-1]}"
            if not isinstance(error, self._ray.exceptions.RayTaskError):
                text = (
                    f"a task was lost {RETRIES + 1} times, with its process or its machine; did an "
                    "agent crash Python, or is there too little memory? "
                    f"{type(error).__name__}: {lines[0]}"
                )
            raise WorkerError(text) from error

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        # Tasks are not cancelled: Ray can end this process where one is done then (ray#54798).
        if self._ours and self._ray.is_initialized():
            self._ray.shutdown()


@contextlib.contextmanager
def _staged(specs: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield a runtime environment for Ray: a folder with the files that specs name.

    With a Python file go the files of its folder, up to 20 MB each, and the Python packages in it.
    """
    sizes: dict[Path, int] = {}
    for spec in specs:
        for file in named_files(spec):
            if ".." in file.parts and not file.is_absolute():
                raise ValueError(
                    f"{spec}: on a cluster, name a file below the current folder, or by an "
                    "absolute path that all machines have"
                )
            if not file.is_absolute():
                sizes[file] = file.stat().st_size
                sizes.update(_beside(file.parent) if file.suffix == ".py" else ())
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
        yield {"working_dir": folder} if sizes else {}


def _beside(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield what goes along of the folder of a Python file, with sizes in bytes."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__pycache__")) or path.name == __name__.partition(".")[0]:
            continue
        if path.is_dir() and (path / "__init__.py").is_file():
            yield from _beside(path)
        elif path.is_file() and (size := path.stat().st_size) <= _LARGEST_BESIDE:
            yield path, size
