"""Workers that do tasks: this process, worker processes here, or a cluster (`system.cluster`).

    with Processes(4) as workers:
        workers.begin(job)  # each worker calls job() once ...
        for number, result in workers.streamed(tasks):  # ... and what that returned, with each task
            ...

Results come in any order, so a caller whose result must not depend on the order sorts them by
number. A task depends on its arguments alone: a cluster does it again where a machine was lost.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from carolus_env.system import failures

Job = Callable[[], Callable[..., Any]]
"""A workers' job, which can be pickled. Each worker calls it once, to get a function for tasks."""

Result = tuple[int, Any]
"""A task's number, and its result."""

MOST_PROCESSES: Final = 256
"""Worker processes on one machine."""


class WorkerError(RuntimeError):
    """Workers are not available, or one died or failed outside its job.

    Attributes:
        traceback: the worker's own traceback, as Python prints it; empty without one.
    """

    traceback = ""


class UnsendableError(ValueError):
    """A job that cannot be pickled."""


class Workers(ABC):
    """Workers that do tasks; a context manager that ends them."""

    _job: bytes = b""

    @property
    @abstractmethod
    def count(self) -> int:
        """Tasks that are done at the same time; of a cluster, as of now."""

    @property
    @abstractmethod
    def room(self) -> int:
        """Number of tasks that can be submitted now."""

    @property
    @abstractmethod
    def pending(self) -> int:
        """Tasks that were submitted, and not yet taken."""

    @abstractmethod
    def _begin(self) -> None:
        """Let the workers, which are idle, do ``_job``."""

    @abstractmethod
    def submit(self, number: int, *task: Any) -> None:
        """Submit a task, where there is `room`.

        Args:
            number: the number by which `take` names its result.
            task: arguments, which can be pickled, for what the job returned.
        """

    @abstractmethod
    def take(self) -> list[Result]:
        """Wait for a result, and return all that have come, in any order.

        Raises:
            WorkerError: when a worker died, or failed with an unexpected error.
            Exception: of the package's own classes, and ValueError: as the worker raised it.
        """

    @abstractmethod
    def _abandon(self) -> None:
        """Forget all tasks that were submitted."""

    @abstractmethod
    def close(self) -> None:
        """End the workers; the next `begin` starts new ones."""

    def begin(self, job: Job) -> None:
        """Let the workers do another job. Tasks of the last one are forgotten.

        Raises:
            UnsendableError: when the job cannot be pickled.
            WorkerError: when the workers cannot be started.
        """
        try:
            self._job = pickle.dumps(job)
        except Exception as error:  # anything that cannot be pickled fails in its own way
            raise UnsendableError(str(error)) from error
        if self.pending:
            self._abandon()
        self._begin()

    def share(self, value: Any) -> Any:
        """Return a stand-in for a large value of several tasks, which travels only once."""
        return value

    def streamed(self, tasks: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """Submit tasks as there is room; yield results as they come, with numbers from 0."""
        numbered = enumerate(tasks)
        following = next(numbered, None)
        while following is not None or self.pending:
            while following is not None and self.room:
                self.submit(following[0], *following[1])
                following = next(numbered, None)
            yield from self.take()

    def all(self, tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Return the results of tasks, in the order of the tasks."""
        result = dict(self.streamed(tasks))
        return [result[number] for number in range(len(result))]

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class InProcess(Workers):
    """A worker in this process: a task is done when its result is taken."""

    def __init__(self) -> None:
        self._do: Callable[..., Any] | None = None
        self._waiting: deque[tuple[int, tuple[Any, ...]]] = deque()

    @property
    def count(self) -> int:
        return 1

    @property
    def room(self) -> int:
        return 1 - len(self._waiting)

    @property
    def pending(self) -> int:
        return len(self._waiting)

    def begin(self, job: Job) -> None:  # nothing is sent anywhere
        self._waiting.clear()
        self._do = job()

    def _begin(self) -> None: ...

    def submit(self, number: int, *task: Any) -> None:
        self._waiting.append((number, task))

    def take(self) -> list[Result]:
        number, task = self._waiting.popleft()
        assert self._do is not None, "begin comes first"
        return [(number, self._do(*task))]

    def _abandon(self) -> None:
        self._waiting.clear()

    def close(self) -> None:
        self._do = None


class Processes(Workers):
    """Worker processes on this machine, started by `begin`.

    Args:
        count: number of processes.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._processes: dict[Connection, multiprocessing.process.BaseProcess] = {}
        self._idle: list[Connection] = []
        self._at_work: dict[Connection, int] = {}
        self._answered = False

    @property
    def count(self) -> int:
        return self._count

    @property
    def room(self) -> int:
        return len(self._idle)

    @property
    def pending(self) -> int:
        return len(self._at_work)

    def _begin(self) -> None:
        if not self._processes:
            context = multiprocessing.get_context("spawn")
            for _ in range(self._count):
                parent, child = context.Pipe()
                process = context.Process(target=_work, args=(child,), daemon=True)
                process.start()
                child.close()
                self._processes[parent] = process
            self._idle, self._answered = list(self._processes), False
        for connection in self._processes:
            self._send(connection, self._job)

    def submit(self, number: int, *task: Any) -> None:
        connection = self._idle.pop()
        self._send(connection, task)
        self._at_work[connection] = number

    def take(self) -> list[Result]:
        result = []
        for connection in wait(list(self._at_work)):
            assert isinstance(connection, Connection)
            try:
                answer = connection.recv()
            except (EOFError, OSError):
                raise self._death(connection) from None
            self._answered = True
            self._idle.append(connection)
            result.append((self._at_work.pop(connection), unwrapped(answer)))
        return result

    def _abandon(self) -> None:
        self.close()

    def close(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for connection, process in self._processes.items():
            process.join()
            connection.close()
        self._processes, self._idle, self._at_work = {}, [], {}

    def _send(self, connection: Connection, message: Any) -> None:
        try:
            connection.send(message)
        except OSError:
            raise self._death(connection) from None

    def _death(self, connection: Connection) -> WorkerError:
        process = self._processes[connection]
        process.join()
        if process.exitcode == 1 and not self._answered:  # Python failed to start it
            return WorkerError(
                "the worker processes could not start: their error is printed above. A script that "
                'plays with workers must do so under `if __name__ == "__main__":`, since every '
                "worker imports it"
            )
        return WorkerError(
            f"a worker process died (exit code {process.exitcode}); is there enough memory?"
        )


def processes(count: int) -> Workers:
    """Return that many worker processes; one: this process.

    Raises:
        ValueError: unless it is a whole number from 1 to 256.
    """
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_PROCESSES:
        raise ValueError(
            f"workers must be a whole number from 1 to {MOST_PROCESSES}, got {count!r}"
        )
    return InProcess() if count == 1 else Processes(count)


def ready(workers: int | Workers) -> contextlib.AbstractContextManager[Workers]:
    """Return workers unchanged, for the caller to close, or new processes for the block.

    Raises:
        ValueError: see `processes`.
    """
    return contextlib.nullcontext(workers) if isinstance(workers, Workers) else processes(workers)


# ------------------------------------------------------------------------------------ a worker


def _work(connection: Connection) -> None:
    """Run a worker process: it is sent jobs, as bytes, and tasks, and answers each task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and ends the workers
    # Threads of several processes would compete for the cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    desk = Desk()
    with contextlib.suppress(EOFError, BrokenPipeError):  # the parent is gone
        while True:
            message = connection.recv()
            if isinstance(message, bytes):
                desk = Desk(message)
            else:
                connection.send(desk.done(message))


class Failure:
    """A worker's answer in place of a result: its error."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = None
        if type(error) is ValueError or type(error).__module__.startswith("carolus_env."):
            with contextlib.suppress(Exception):  # else its text is sent
                self.error = pickle.loads(pickle.dumps(error))
        self.text, self.traceback = failures.message(error), failures.full_traceback(error)

    def raised(self) -> Exception:
        """Return the error to raise for it."""
        if self.error is not None:
            return self.error
        result = WorkerError(f"a worker failed with {self.text}")
        result.traceback = self.traceback
        return result


def unwrapped(answer: Any) -> Any:
    """Return a worker's result; its error, raised, if it failed."""
    if isinstance(answer, Failure):
        raise answer.raised()
    return answer


class Desk:
    """A job in a worker, begun with its first task, whose result can be the job's error.

    Args:
        job: the job, pickled.
    """

    def __init__(self, job: bytes = b"") -> None:
        self.job = job
        self._do: Callable[..., Any] | None = None

    def done(self, task: tuple[Any, ...]) -> Any:
        """Return the result of a task, or a `Failure`."""
        try:
            if self._do is None:
                self._do = pickle.loads(self.job)()
            return self._do(*task)
        except Exception as error:
            return Failure(error)
