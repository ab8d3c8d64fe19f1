"""Executors of tasks (`concurrent.futures`): this process, worker processes, or a cluster.

    with executors.local(4) as workers:
        for number, result in results(workers, job, tasks):
            ...

A job is called once in each process, and returns a function of tasks: of agents that are made and
ready to play, say. A task depends on its arguments alone, so it can be done again where a machine
was lost. `system.cluster` has the executor for a cluster.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from carolus_env.system import failures

Job = Callable[[], Callable[..., Any]]
"""A function that is called once in each process, and returns a function of tasks."""

MOST_PROCESSES: Final = 256
"""Worker processes on one machine."""

AHEAD: Final = 4
"""Tasks under way, or done before their turn, at most, for each worker: a slow one fills no
memory."""


class WorkerError(failures.UserError):
    """Workers are not available, or one died or failed outside its job.

    Attributes:
        traceback: the worker's own traceback, as Python prints it; empty without one.
    """

    traceback = ""


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

    def function(self, job: Job) -> Callable[..., Any]:
        """Return a job's function of tasks, to be submitted with each task.

        Raises:
            UnsendableError: when the job cannot be pickled.
        """
        try:
            return _Sent(pickle.dumps(job))
        except Exception as error:  # anything that cannot be pickled fails in its own way
            raise UnsendableError(str(error)) from error

    def explained(self, error: BaseException) -> BaseException:
        """Return the error to raise for that of a task."""
        return error


def results(
    workers: Workers, job: Job, tasks: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Do tasks, and yield the number of each, from 0, and its result, in the order of the tasks.

    After a failure nothing more is begun; what was under way is yielded, then the first error is
    raised.

    Args:
        workers: where the tasks are done.
        job: a function that returns the function of tasks.
        tasks: the arguments of each task; the next one is asked for when it can be begun.

    Raises:
        UnsendableError: when the job cannot be pickled, and has to be.
        WorkerError: when a worker died, or a task or its result cannot be sent.
        Exception: of the package's own classes, and ValueError: as the task raised it.
    """
    function, numbered = workers.function(job), enumerate(tasks)
    futures: deque[tuple[int, Future[Any]]] = deque()
    failure: BaseException | None = None
    while True:
        running = [future for _, future in futures if not future.done()]
        while (
            failure is None
            and len(running) < workers.most
            and len(futures) < AHEAD * workers.count
            and not (futures and futures[0][1].done())
            and (task := next(numbered, None)) is not None
        ):
            running.append(workers.submit(function, *task[1]))
            futures.append((task[0], running[-1]))
        if not futures:
            break
        number, future = futures[0]
        if not future.done():
            wait(running, return_when=FIRST_COMPLETED)
            continue
        futures.popleft()
        if (error := future.exception()) is None:
            yield number, future.result()
        else:
            failure = failure or workers.explained(error)
    if failure is not None:
        raise failure


def local(count: int) -> Workers:
    """Return that many worker processes on this machine; one: this process.

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
        ValueError: see `local`.
    """
    return contextlib.nullcontext(workers) if isinstance(workers, Workers) else local(workers)


class InProcess(Workers):
    """This process: a task is done when it is submitted."""

    count = 1

    def function(self, job: Job) -> Callable[..., Any]:  # nothing is sent anywhere
        return job()

    def submit(self, task: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        result: Future[Any] = Future()
        try:
            result.set_result(task(*arguments, **named))
        except Exception as error:
            result.set_exception(error)
        return result


class Processes(Workers, ThreadPoolExecutor):
    """Worker processes on this machine, each asked by a thread; closing ends them at once.

    A `ProcessPoolExecutor` would wait for the tasks under way, and hang where a process is killed
    while it sends a result.

    Args:
        count: number of processes.
    """

    def __init__(self, count: int) -> None:
        ThreadPoolExecutor.__init__(self, count)
        self._count, self._processes = count, list[_Process]()
        self._idle: SimpleQueue[_Process] = SimpleQueue()

    @property
    def count(self) -> int:
        return self._count

    def submit(self, task: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        while len(self._processes) < self._count:
            self._processes.append(_Process())
            self._idle.put(self._processes[-1])
        return ThreadPoolExecutor.submit(self, self._ask, task, arguments, named)

    def _ask(self, *call: Any) -> Any:
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

    def ask(self, call: tuple[Any, ...]) -> Any:
        """Let it do a task, given as a function and its arguments, and return the result.

        Raises:
            WorkerError: when it dies.
            Exception: that of the task.
        """
        try:
            if not self._begun:
                self._begun = self._connection.recv()
            self._connection.send(call)
            result, error = self._connection.recv()
        except (EOFError, OSError):
            raise self._death() from None
        if error is not None:
            raise error
        return result

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.join()

    def _death(self) -> WorkerError:
        self._process.join()
        code = self._process.exitcode
        if self._begun:
            return WorkerError(f"a worker process died (exit code {code}); is there enough memory?")
        text = "the worker processes could not start: their error is printed above"
        if not _main_is_guarded():
            text += (
                '. A script that plays with workers must do so under `if __name__ == "__main__":`, '
                "since every worker imports it"
            )
        return WorkerError(text)


@contextlib.contextmanager
def _spawning() -> Iterator[None]:
    """Let an interpreter that starts in the ``with`` block be a good worker from its first line on.

    Threads of several processes would compete for the cores. Files of the current folder must not
    stand in for Python's own. A Ctrl-C is for this process, which ends the others. A main program
    from standard input cannot be imported.
    """
    main, file = sys.modules["__main__"], getattr(sys.modules["__main__"], "__file__", None)
    hidden = file is not None and not Path(file).exists()
    before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "PYTHONSAFEPATH")}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ["PYTHONSAFEPATH"] = "1"
        if hidden:
            del main.__file__
        yield
    finally:
        if hidden:
            main.__file__ = file
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _main_is_guarded() -> bool:
    """Return whether the main script says what is not for the workers; True without a script."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    try:
        return file is None or "__main__" in Path(file).read_text()
    except (OSError, ValueError):
        return True


# ------------------------------------------------------------------------------------ a worker


def _work(connection: Connection) -> None:
    """Run a worker process: it is sent tasks, and answers each with its result or its error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.pop("PYTHONSAFEPATH", None)  # programs that start here have folders of their own
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the parent is gone
        connection.send(True)
        while True:
            task, arguments, named = connection.recv()
            answer: tuple[Any, Exception | None]
            try:
                answer = task(*arguments, **named), None
            except Exception as error:
                answer = None, error
            try:
                connection.send(answer)
            except (EOFError, OSError):
                raise
            except Exception as error:  # anything that cannot be pickled fails in its own way
                text = f"the result of a task cannot be sent: {failures.message(error)}"
                connection.send((None, WorkerError(text)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _Sent:
    """A job's function of tasks in another process, where it is made of the job's bytes.

    Args:
        job: the job, pickled.
    """

    def __init__(self, job: bytes) -> None:
        self.job = job

    def __call__(self, *task: Any) -> Any:
        try:
            return _made(self.job)(*task)
        except Exception as error:
            raise _sendable(error) from None


@lru_cache(maxsize=1)
def _made(job: bytes) -> Callable[..., Any]:
    function: Callable[..., Any] = pickle.loads(job)()
    return function


def _sendable(error: Exception) -> Exception:
    """Return an error of the package, or a ValueError, as it is; of another one, its text."""
    if type(error) is ValueError or type(error).__module__.startswith("carolus_env."):
        with contextlib.suppress(Exception):  # else its text is sent
            copy: Exception = pickle.loads(pickle.dumps(error))
            return copy
    result = WorkerError(f"a worker failed with {failures.message(error)}")
    result.traceback = failures.full_traceback(error)
    return result
