"""Executors, also as a cluster is one: another order, losses (tests/integrations.py has one)."""

import contextlib
import importlib
import multiprocessing
import os
import pickle
import random
import re
import runpy
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from test_tournament import saved_games

from benchmarks.suite import main as make_suites
from carolus_env import bots, evaluation
from carolus_env.commands import dataset, evaluate
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import Plan, Tournament, tournament
from carolus_env.system import executors
from carolus_env.system.executors import UnsendableError, WorkerError, Workers, results


class Shuffled(Workers):
    """Like a cluster, in this process: its processors come and go, tasks end in any order.

    Task ``stuck`` ends last of all that can be submitted.
    """

    count = property(lambda self: 1 + self.submitted % 4)
    most = property(lambda self: 2 * self.count)

    def __init__(self, stuck=None):
        self.random, self.stuck = random.Random(0), stuck
        self.tasks, self.submitted, self.under_way = {}, 0, 0

    def submit(self, task, /, *arguments):
        future = Future()
        self.tasks[self.submitted] = future, pickle.dumps((task, arguments))
        self.submitted += 1
        self.under_way = max(self.under_way, len(self.tasks))
        return future

    def step(self, *_, **__):
        """Do a task, twice: the first one's machine is lost."""
        free = [number for number in self.tasks if number != self.stuck] or [self.stuck]
        future, call = self.tasks.pop(self.random.choice(free))
        for _ in range(2):
            executors._made.cache_clear()
            task, arguments = pickle.loads(call)
            try:
                answer = pickle.loads(pickle.dumps(task(*arguments)))
            except Exception as error:
                future.set_exception(error)
                return
        future.set_result(answer)


@pytest.fixture
def shuffled(monkeypatch):
    """Makes workers of which one does a task whenever somebody waits."""

    def make(**options):
        result = Shuffled(**options)
        monkeypatch.setattr(executors, "wait", result.step)
        return result

    return make


def test_games_are_the_same_in_any_order_of_blocks_and_few_wait_for_a_slow_one(
    tmp_path, monkeypatch, shuffled
):
    monkeypatch.setattr(tournament, "SIDE_BY_SIDE", 3)
    plan, workers = Plan(Rules(3), ("greedy", "random"), deals=7, seed=3), shuffled()
    for name, played_by in (("one", 1), ("many", workers)):
        cup = Tournament(plan)
        cup.run(workers=played_by, file=tmp_path / name)
        assert cup.complete and cup.games == plan.games
    assert workers.submitted > 10
    assert saved_games(tmp_path / "one") == saved_games(tmp_path / "many")
    workers, before = shuffled(stuck=0), []
    cup = Tournament(Plan(Rules(2), ("random", "greedy"), deals=150, seed=3))
    cup.run(workers=workers, progress=lambda done: before.append(workers.submitted))
    assert before[0] <= 4 * executors.AHEAD, "blocks given before the first one was there"
    assert workers.submitted >= 100
    assert workers.under_way <= 8


def squares():
    def square(number):
        if number < 0:
            raise KeyError(number)
        if number > 1000:
            raise evaluation.ResultsFileError("file", 7, "too large")
        if number == 999:
            return lambda: number
        return number * number

    return square


def doubles():
    return lambda number: 2 * number


def dies():
    return lambda number: os._exit(3)


def environments():
    """Return a function of a variable: its value when the process started, and now."""

    def read(name):
        at_start = dict(
            entry.split("=", 1) for entry in Path("/proc/self/environ").read_text().split("\0")[:-1]
        )
        return at_start.get(name), os.environ.get(name)

    return read


EXAMPLES = {
    "AgentError": ("a bot", "fails"),
    "ArenaError": ("a bot fails", "a bot", "fails"),
    "MissingExtraError": ("matplotlib", "a report", "evaluation"),
    "RecordError": ("no game", "file", 7),
    "ResultsFileError": ("file", 7, "too large"),
    "UserError": ("a text", 1, "more"),
}


def errors_of_the_package():
    classes = re.compile(r"^class \w+\(.*(Error|Exception)\)", re.MULTILINE)
    for path in sorted(Path("carolus_env").rglob("*.py")):
        if classes.search(path.read_text()):
            importlib.import_module(".".join(path.with_suffix("").parts))
    waiting = [BaseException]
    for kind in waiting:
        waiting += type.__subclasses__(kind)
        if kind.__module__.startswith("carolus_env."):
            yield kind


def test_every_error_can_be_sent_to_another_process():
    """By pickling; Gymnasium's AsyncVectorEnv makes it anew of the error that was pickled."""
    kinds = {kind.__name__: kind for kind in errors_of_the_package()}
    assert len(kinds) > 18 and EXAMPLES.keys() <= kinds.keys()
    for name, kind in kinds.items():
        error = kind(*EXAMPLES.get(name, ("a text",)))
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (kind, str(error), vars(error))
        if name not in ("MissingExtraError", "ResultsFileError"):  # no environment raises them
            assert str(kind(error)) == str(error)


def numbered(*tasks):
    return ((task,) for task in tasks)


def test_processes_do_one_job_after_the_other_and_tell_of_errors():
    with executors.ready(2) as workers:
        for job, expected in ((squares, [0, 1, 4, 9, 16]), (doubles, [0, 2, 4, 6, 8])):
            assert list(results(workers, job, numbered(*range(5)))) == [*enumerate(expected)]
        with pytest.raises(WorkerError, match="a worker failed with KeyError: -1") as caught:
            list(results(workers, squares, numbered(-1)))
        assert "raise KeyError(number)" in caught.value.traceback
        with pytest.raises(evaluation.ResultsFileError, match="file, line 7: too large"):
            list(results(workers, squares, numbered(1001)))
        with pytest.raises(WorkerError, match=r"a worker failed with .*local object"):
            list(results(workers, squares, numbered(999)))
        with pytest.raises(UnsendableError):
            list(results(workers, lambda: abs, numbered(1)))
        if Path("/proc/self/environ").exists():
            names = "OMP_NUM_THREADS", "PYTHONSAFEPATH"
            given = dict(results(workers, environments, numbered(*names)))
            assert given == {0: ("1", "1"), 1: ("1", None)}, "before NumPy is loaded"
        with pytest.raises(WorkerError, match=r"died \(exit code 3\); is there enough memory"):
            list(results(workers, dies, numbered(1)))
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("place", ["here", "shuffled"])
def test_all_that_was_under_way_comes_beside_a_failure_and_nothing_is_begun(place, shuffled):
    workers = shuffled() if place == "shuffled" else executors.InProcess()
    given, came = iter([1, 2, -1, *range(3, 100)]), []
    with pytest.raises(WorkerError if place == "shuffled" else KeyError, match="-1"):
        came.extend(results(workers, squares, numbered(1, 2)))
        came.extend(results(workers, squares, ((number,) for number in given)))
    after = [(number, number**2) for number in range(3, 99)]
    assert came[:4] == [(0, 1), (1, 4)] * 2
    assert came[4:] == after[: len(came) - 4] and len(list(given)) > 80
    assert (len(came) > 5) == (place == "shuffled")


SCRIPT = """
from carolus_env import evaluation
from carolus_env.engine.rules import Rules

cup = evaluation.Tournament(evaluation.Plan(Rules(2), ("greedy", "random"), deals=4))
try:
    GUARD cup.run(workers=2)
except evaluation.ArenaError as error:
    print(error)
else:
    print(f"played: {cup.games}")
"""
GUARD = 'if __name__ == "__main__":'


@pytest.mark.parametrize(
    "how",
    [
        *("unguarded", "beside types.py"),
        *(pytest.param(how, marks=pytest.mark.slow) for how in ("broken", "from standard input")),
    ],
)
def test_workers_start_from_any_main_program_or_it_gets_the_reason(tmp_path, how):
    text = SCRIPT.replace("GUARD", "" if how == "unguarded" else GUARD)
    if how == "broken":
        text = f"if __name__ != '__main__':\n    raise ImportError('broken')\n{text}"
    if how == "beside types.py":  # a name of Python's own, where the command is given
        (tmp_path / "types.py").write_text("raise ImportError('not these types')")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "script.py").write_text(text)
    by_stdin, plays = how == "from standard input", how not in ("unguarded", "broken")
    command = [sys.executable, "-" if by_stdin else "mine/script.py"]
    options = {"capture_output": True, "text": True, "timeout": 300, "cwd": tmp_path}
    said = subprocess.run(command, input=text if by_stdin else "", **options).stdout
    assert ("played: 8" in said) == plays
    assert ("the worker processes could not start: their error is" in said) == (not plays)
    assert (GUARD in said) == (how == "unguarded"), "advice that helps"
    assert "memory" not in said


def processes_of(group):
    """Return the processes of a group that are alive."""
    listed = subprocess.check_output(["ps", "-A", "-o", "pid=,pgid=,stat="], text=True)
    rows = [line.split() for line in listed.splitlines()]
    return [pid for pid, pgid, state in rows if int(pgid) == group and state[0] != "Z"]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param("SIGINT", 130, marks=pytest.mark.slow),
        ("SIGTERM", 130),
        pytest.param("SIGKILL", -9, marks=pytest.mark.slow),
    ],
)
def test_an_end_by_a_signal_leaves_no_process_and_a_file_that_goes_on(tmp_path, sent, code):
    words = [sys.executable, "evaluate.py", "greedy", "random", "--seed", "3", "--games"]
    cup = tmp_path / "games.jsonl"
    command = [*words, "100000", "--workers", "2", "--out", tmp_path]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not cup.exists() or cup.stat().st_size < 20_000:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    if sent == "SIGINT":  # a terminal tells all processes
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.Signals[sent])
    said = process.communicate(timeout=60)[1]
    assert process.returncode == code
    if code == 130:
        assert "continue with --resume" in said and said.count("\n") <= 2, "in a line"
    while processes_of(process.pid):  # after SIGKILL they see that nobody is there
        time.sleep(0.05)
    kept = evaluation.read_games(cup)
    count = min(len(kept.results), 100)
    assert count, "a block that was being written is left out"
    alone, _ = evaluation.play_games(
        kept.plan.fixtures(0, count), [*map(bots.make, kept.plan.agents)], Rules(2), seed=3
    )
    assert np.array_equal(alone["shares"], kept.results["shares"][:count])


class FakeRay(ModuleType):
    """As much of Ray as `cluster` uses, in this process."""

    class RayError(Exception):
        pass

    class RayTaskError(RayError):
        pass

    def __init__(self):
        super().__init__("ray")
        self.exceptions = SimpleNamespace(RayError=self.RayError, RayTaskError=self.RayTaskError)
        self.connected, self.options = {}, {}
        self.staged, self.lost = [], False

    def is_initialized(self):
        return bool(self.connected)

    def init(self, address, **options):
        if address == "nowhere":
            raise ConnectionError("nobody answers")
        self.connected = {"address": address, **options}
        if folder := options["runtime_env"].get("working_dir"):
            files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
            self.staged = [str(file.relative_to(folder)) for file in files]

    def shutdown(self):
        self.connected = {}

    def cluster_resources(self):
        return {"CPU": 3.0}

    def remote(self, **options):
        self.options = options

        def of(function):
            def done(*given):
                future = Future()
                try:
                    if self.lost:
                        raise self.RayError("The worker died\nunexpectedly")
                    future.set_result(pickle.loads(pickle.dumps(function(*given))))
                except self.RayError as error:
                    future.set_exception(error)
                return SimpleNamespace(future=lambda: future)

            return SimpleNamespace(remote=done)

        return of


@pytest.fixture
def fake(monkeypatch):
    result = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", result)
    monkeypatch.setattr(executors, "find_spec", lambda name: True)
    return result


def test_a_cluster_does_tasks_by_ray_at_most_so_many_and_leaves_others_connections(
    fake, monkeypatch
):
    with executors.Cluster("head:6379") as workers:
        assert fake.connected["address"] == "head:6379"
        assert fake.options == {"num_cpus": 1, "max_retries": executors.RETRIES}
        assert (workers.count, workers.most) == (3, 6)
        assert dict(results(workers, squares, numbered(*range(20))))[19] == 19 * 19
        with pytest.raises(WorkerError, match="a worker failed with KeyError"):
            list(results(workers, squares, numbered(-1)))
        with pytest.raises(evaluation.ResultsFileError, match="file, line 7: too large"):
            list(results(workers, squares, numbered(1001)))
        fake.lost = True
        with pytest.raises(WorkerError, match=r"lost 4 times.* did an agent crash.* worker died"):
            list(results(workers, squares, numbered(1)))
    assert not fake.connected
    with pytest.raises(WorkerError, match="no Ray cluster at nowhere: nobody answers"):
        executors.Cluster("nowhere")
    fake.connected = {"by": "the user"}
    with executors.Cluster(limit=2) as workers:
        assert (workers.count, workers.most) == (2, 2)
    assert fake.connected
    monkeypatch.setattr(executors, "__version__", "0.0.1")
    _, error = pickle.loads(executors._do("9.9.9", b"of another", b"version"))
    assert "has carolus-env 0.0.1, not 9.9.9: install the same" in str(error)


def test_files_of_agents_go_along(fake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = "a/bot.py a/helper.py a/part/__init__.py a/plain/x.py a/.hidden "
    for name in (names + "m/best.safetensors m/other.json carolus_env/x.py").split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    specs = ("a/bot.py:Bot", "ppo:m/best,temperature=1", "planner:errors=0.1", "/abs/bot.py:Bot")
    specs += ("exe:python3 m/other.json,seconds=1",)
    executors.Cluster(specs=specs).shutdown()
    goes = "a/bot.py a/helper.py a/part/__init__.py m/best.safetensors m/other.json"
    assert fake.staged == goes.split()
    with pytest.raises(ValueError, match="name a file below the current folder"):
        monkeypatch.chdir(tmp_path / "m")
        executors.Cluster(specs=("../a/bot.py:Bot",))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(executors, "_LARGEST_SUM", 2)
    with pytest.raises(ValueError, match="put the agent into a folder of its own"):
        executors.Cluster(specs=specs)


COMMANDS = (
    (evaluate.main, "greedy random --games 2 --out OUT"),
    (evaluate.main, "greedy --bench --out OUT"),
    (dataset.main, "greedy --games 2 --out OUT"),
    (make_suites, "--players 2 --out OUT"),
)


@pytest.mark.parametrize(("main", "words"), COMMANDS)
def test_without_ray_it_is_refused_before_anything_begins(
    main, words, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(executors, "find_spec", lambda name: None)
    out = tmp_path / "out"
    with contextlib.suppress(SystemExit):
        assert main([*words.replace("OUT", str(out)).split(), "--backend", "ray"]) == 2
    said = capsys.readouterr().err
    assert "ray needs the extra 'ray': pip install 'carolus-env[ray]'" in said
    assert not out.exists()


def test_the_pages_snippet_runs_and_evaluate_plays_the_same_there(
    fake, tmp_path, monkeypatch, capsys
):
    [snippet] = re.findall(r"```python\n(.*?)```", Path("docs/cluster.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("snippet.py").write_text(snippet)
    runpy.run_path("snippet.py", run_name="__main__")
    assert len(evaluation.read_games("games.jsonl").results) == 600
    for folder, where in (("here", []), ("there", ["--backend", "ray"])):
        words = ["greedy", "random", "--games", "20", "--quiet", "--out", folder, *where]
        assert evaluate.main(words) == 0
    here, there = (saved_games(Path(folder) / "games.jsonl") for folder in ("here", "there"))
    assert here == there
    assert not fake.connected, "closed"
    assert evaluate.main(["greedy", "--suite", "--backend", "ray"]) == 2
    assert "--suite does not use --backend" in capsys.readouterr().err
