"""Workers: the seam between what is played and where. A cluster itself is tried by
tests/integrations.py; here a stand-in does what clusters do: another order, losses.
"""

from __future__ import annotations

import itertools
import os
import pickle
import random
import re
import runpy
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from carolus_env import evaluation
from carolus_env.commands import dataset, evaluate, train
from carolus_env.engine import new_games
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import Plan, Tournament, pool
from carolus_env.evaluation.rollouts import rollout
from carolus_env.evaluation.suite.__main__ import main as make_suites
from carolus_env.learners.pool import WorkerJob, WorkerPool
from carolus_env.learners.ppo import PpoConfig, PpoLearner
from carolus_env.learners.td import TdConfig, TdLearner
from carolus_env.system import backends, cluster
from carolus_env.system.processes import (
    Desk,
    Processes,
    UnsendableError,
    WorkerError,
    Workers,
    unwrapped,
)


class Shuffled(Workers):
    """Like a cluster, in this process: its processors come and go, results have no order.

    Args:
        stuck: number of a task whose result comes last of all that can be given.
    """

    def __init__(self, stuck: int | None = None) -> None:
        self.random, self.stuck = random.Random(0), stuck
        self.desks: list[Desk] = []
        self.tasks: list[tuple[int, bytes]] = []
        self.most = 0
        self.numbers: list[int] = []

    @property
    def count(self) -> int:
        return 1 + len(self.numbers) % 4

    @property
    def room(self) -> int:
        return max(2 * self.count - len(self.tasks), 0)

    @property
    def given(self) -> int:
        return len(self.tasks)

    def _begin(self) -> None:
        self.desks = [Desk(self._job) for _ in range(2)]

    def submit(self, number: int, *task: Any) -> None:
        self.tasks.append((number, pickle.dumps(task)))
        self.numbers.append(number)
        self.most = max(self.most, len(self.tasks))

    def take(self) -> list[tuple[int, Any]]:
        free = [task for task in self.tasks if task[0] != self.stuck] or self.tasks
        number, given = self.tasks.pop(self.tasks.index(self.random.choice(free)))
        for desk in self.random.sample(self.desks, 2):  # the first one's machine is lost
            answer = pickle.loads(pickle.dumps(desk.done(pickle.loads(given))))
        return [(number, unwrapped(answer))]

    def _abandon(self) -> None:
        self.tasks.clear()

    def close(self) -> None: ...


def lines(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if not line.startswith('{"block"')]


def played(plan: Plan, file: Path, workers: int | Workers) -> Tournament:
    cup = Tournament(plan)
    cup.run(workers=workers, file=file)
    return cup


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "SIDE_BY_SIDE", 3)


# ------------------------------------------------------------------------------------ tournaments


def test_header_and_games_are_the_same_bytes_in_whatever_order_blocks_return(
    tmp_path, small_blocks
):
    plan = Plan(Rules(3), ("greedy", "random"), deals=7, seed=3)
    played(plan, tmp_path / "one", 1)
    workers = Shuffled()
    cup = played(plan, tmp_path / "many", workers)
    assert len(workers.numbers) > 10
    assert lines(tmp_path / "one") == lines(tmp_path / "many")
    assert cup.complete and cup.games == plan.games


def test_blocks_that_wait_for_a_slow_one_are_few(tmp_path, small_blocks):
    plan = Plan(Rules(2), ("random", "greedy"), deals=150, seed=3)
    workers = Shuffled(stuck=0)
    waiting: list[int] = []

    def watched(give: Callable[..., None], number: int, *task: Any) -> None:
        waiting.append(number)
        give(number, *task)

    workers.give = partial(watched, workers.give)  # type: ignore[method-assign]
    cup = Tournament(plan)
    before: list[int] = []
    cup.run(workers=workers, progress=lambda done: before.append(len(waiting)))
    assert before[0] <= 4 * pool.AHEAD + 4, "blocks given before the first one was there"
    assert len(waiting) >= 100
    assert workers.most <= 8


def test_an_error_of_an_agent_and_of_a_worker_are_told_apart(tmp_path):
    bot = tmp_path / "bot.py"
    bot.write_text("def fails(states, generators):\n    return {}['lost']\n")
    plan = Plan(Rules(2), ("random", f"{bot}:fails"), deals=4)
    with pytest.raises(
        evaluation.ArenaError, match=r"KeyError: 'lost' \(bot.py, line 2\)"
    ) as caught:
        Tournament(plan).run(workers=Shuffled())
    assert caught.value.agent == f"{bot}:fails"
    assert "return {}['lost']" in caught.value.traceback


# ------------------------------------------------------------------------------------ processes


def squares() -> Callable[[int], Any]:
    def square(number: int) -> int:
        if number < 0:
            raise KeyError(number)
        if number > 1000:
            raise evaluation.ResultsFileError("file", 7, "too large")
        return number * number

    return square


def doubles() -> Callable[[int], int]:
    return lambda number: 2 * number


def dies() -> Callable[[int], Any]:
    return lambda number: os._exit(3)


def test_processes_do_one_job_after_the_other_and_tell_of_errors():
    with Processes(1) as workers:
        workers.begin(squares)
        assert workers.all((n,) for n in range(5)) == [0, 1, 4, 9, 16]
        workers.begin(doubles)
        assert workers.all((n,) for n in range(5)) == [0, 2, 4, 6, 8]
        workers.begin(squares)
        with pytest.raises(WorkerError, match="a worker failed with KeyError: -1") as caught:
            workers.all([(-1,)])
        assert "raise KeyError(number)" in caught.value.traceback
        with pytest.raises(evaluation.ResultsFileError, match="file, line 7: too large"):
            workers.all([(1001,)])
        with pytest.raises(UnsendableError):
            workers.begin(lambda: abs)
        workers.begin(dies)
        with pytest.raises(WorkerError, match=r"died \(exit code 3\)"):
            workers.all([(1,)])
        workers.close()
        workers.begin(doubles)
        assert workers.all([(4,)]) == [8]


# ------------------------------------------------------------------------------------ a cluster


class FakeRay(ModuleType):
    """As much of Ray as `cluster` uses, in this process."""

    class RayError(Exception):
        pass

    class RayTaskError(RayError):
        pass

    def __init__(self) -> None:
        super().__init__("ray")
        self.exceptions = SimpleNamespace(RayError=self.RayError, RayTaskError=self.RayTaskError)
        self.connected: dict[str, Any] = {}
        self.staged: list[str] = []
        self.options: dict[str, Any] = {}
        self.lost = False
        self.store: dict[str, Any] = {}
        self.keys = itertools.count()

    def is_initialized(self) -> bool:
        return bool(self.connected)

    def init(self, address: str | None, **options: Any) -> None:
        if address == "nowhere":
            raise ConnectionError("nobody answers")
        self.connected = {"address": address, **options}
        if folder := options["runtime_env"].get("working_dir"):
            files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
            self.staged = [str(file.relative_to(folder)) for file in files]

    def shutdown(self) -> None:
        self.connected = {}

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def put(self, value: Any) -> str:
        key = f"ref {next(self.keys)}"
        self.store[key] = pickle.loads(pickle.dumps(value))
        return key

    def get(self, key: str) -> Any:
        if self.lost:
            raise self.RayError("The worker died\nunexpectedly")
        return self.store[key]

    def remote(self, **options: Any) -> Callable[..., Any]:
        self.options = options

        def of(function: Callable[..., Any]) -> Any:
            def asked(*given: Any) -> str:
                refs = (
                    self.store[a] if isinstance(a, str) and a in self.store else a for a in given
                )
                return self.put(function(*refs))

            return SimpleNamespace(remote=asked)

        return of

    def wait(self, refs: list[str], *, num_returns: int = 1, timeout: float) -> Any:
        return refs[-num_returns:][::-1], []


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    result = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", result)
    monkeypatch.setattr(cluster, "find_spec", lambda name: True)
    monkeypatch.setattr(backends, "find_spec", lambda name: True)
    return result


def test_a_cluster_does_tasks_by_ray(fake):
    with cluster.Cluster("head:6379") as workers:
        assert fake.connected["address"] == "head:6379"
        assert fake.options == {"num_cpus": 1, "max_retries": cluster.RETRIES}
        assert (workers.count, workers.room) == (3, 6)
        workers.begin(squares)
        assert workers.all((n,) for n in range(20)) == [n * n for n in range(20)]
        large = workers.share(9)
        assert workers.all([(large,)]) == [81]
        with pytest.raises(WorkerError, match="a worker failed with KeyError"):
            workers.all([(-1,)])
        workers.submit(0, 5)
        workers.begin(doubles)
        assert workers.pending == 0, "of the last job"
        workers.submit(0, 5)
        fake.lost = True
        with pytest.raises(WorkerError, match=r"lost 4 times.* did an agent crash.* worker died"):
            workers.take()
    assert not fake.connected


def test_a_cluster_takes_at_most_so_many_tasks_and_leaves_a_connection_of_others(fake):
    with pytest.raises(WorkerError, match="no Ray cluster at nowhere: nobody answers"):
        cluster.Cluster("nowhere")
    fake.connected = {"by": "the user"}
    with cluster.Cluster(most=2) as workers:
        assert (workers.count, workers.room) == (2, 2)
    assert fake.connected


def test_another_version_on_a_machine_is_told(fake, monkeypatch):
    monkeypatch.setattr(cluster, "__version__", "0.0.1")
    answer = cluster._do("9.9.9", "digest", [], 1)
    with pytest.raises(ValueError, match=r"has carolus-env 0.0.1, not 9.9.9: install the same"):
        unwrapped(answer)


def test_files_of_agents_go_along(fake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = "a/bot.py a/helper.py a/part/__init__.py a/plain/x.py a/.hidden m/best.json "
    for name in (names + "m/best.safetensors m/other.json carolus_env/x.py").split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    specs = ("a/bot.py:Bot", "ppo:m/best,temperature=1", "planner:errors=0.1", "/abs/bot.py:Bot")
    specs += ("exe:python3 m/other.json,seconds=1",)
    backends.cluster(None, specs).close()
    goes = "a/bot.py a/helper.py a/part/__init__.py m/best.json m/best.safetensors m/other.json"
    assert fake.staged == goes.split()
    with pytest.raises(ValueError, match="name a file below the current folder"):
        monkeypatch.chdir(tmp_path / "m")
        backends.cluster(None, ("../a/bot.py:Bot",))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster, "_TOGETHER", 2)
    with pytest.raises(ValueError, match="put the agent into a folder of its own"):
        backends.cluster(None, specs)


# ------------------------------------------------------------------------------------ commands


COMMANDS: tuple[tuple[Callable[[list[str]], int], str], ...] = (
    (evaluate.main, "greedy random --games 2 --out OUT"),
    (evaluate.main, "greedy --bench --out OUT"),
    (dataset.main, "greedy --games 2 --out OUT"),
    (train.main, "--runs OUT --steps 100"),
    (train.main, "--learner value --runs OUT"),
    (make_suites, "--players 2 --out OUT"),
)


@pytest.mark.parametrize(("main", "words"), COMMANDS)
@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("--backend ray", "needs the extra 'ray': pip install 'carolus-env[ray]'"),
        ("--ray-address head:1", "--ray-address head:1 needs --backend ray"),
    ],
)
def test_without_ray_it_is_refused_before_anything_begins(
    main, words, where, said, tmp_path, monkeypatch, capsys
):
    for module in (backends, cluster):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    out = tmp_path / "out"
    assert main([*words.replace("OUT", str(out)).split(), *where.split()]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_a_suite_is_measured_here(capsys, fake):
    assert evaluate.main(["greedy", "--suite", "--backend", "ray"]) == 2
    assert "--suite measures in this process" in capsys.readouterr().err


def test_evaluate_plays_the_same_on_a_cluster(fake, tmp_path):
    words = ["greedy", "random", "--games", "20", "--quiet", "--out"]
    assert evaluate.main([*words, str(tmp_path / "here")]) == 0
    assert evaluate.main([*words, str(tmp_path / "there"), "--backend", "ray"]) == 0
    here, there = (lines(tmp_path / name / "games.jsonl") for name in ("here", "there"))
    assert here == there and len(here) == 21
    assert not fake.connected, "closed"


def test_the_pages_snippet_runs(fake, tmp_path, monkeypatch):
    page = (Path(__file__).parent.parent / "docs" / "cluster.md").read_text()
    [snippet] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("snippet.py").write_text(snippet)
    runpy.run_path("snippet.py", run_name="__main__")
    assert len(lines(Path("games.jsonl"))) == 601


# ------------------------------------------------------------------------------------ others


def test_a_rollout_is_the_same_whoever_plays_its_games():
    state = new_games(Rules(2), 1, seed=5)[0]
    options = rollout.Options(base="greedy", value="planner", games=200)
    alone = rollout.roll_out(state, options=options, seed=3)
    result = rollout.roll_out(state, options=options, seed=3, workers=Shuffled())
    for one, other in zip(alone.candidates, result.candidates, strict=True):
        assert one.actions == other.actions and one.games == other.games
        assert np.array_equal(one.mean, other.mean)
        assert np.array_equal(one.error, other.error)


SIZES: dict[str, Any] = {"workers": 3, "candidates": 5, "width": 16, "hidden": 4}


@pytest.mark.parametrize(
    ("learner", "config"),
    [
        (PpoLearner, PpoConfig(games=7, rollout=4, batch=8, **SIZES)),
        (TdLearner, TdConfig(games_per_round=2, **SIZES)),
    ],
)
def test_threads_and_other_workers_learn_the_same(learner, config):
    here, there = WorkerPool(learner, config), WorkerPool(learner, config)
    there.remote = Shuffled()
    there.remote.begin(WorkerJob(learner, config))
    for one in (here, there):
        one.learn(0, 6, 0.01)
        one.learn(6, 4, 0.01)
    for name, array in here.arrays().items():
        assert np.array_equal(array, there.arrays()[name]), name
    assert there.waited > 0 == here.waited
    assert there.cpu_seconds > 0


@pytest.mark.parametrize("words", ["--backend threads", "--backend processes", "--games 50"])
def test_a_run_that_was_begun_on_a_cluster_continues_here(words, tmp_path, fake):
    begun = TdConfig(backend="ray", ray_address="head:1", runs=str(tmp_path), name="run")
    begun.check()
    train.Job(begun, tmp_path, "train", {}, resumed=False).write()
    config = train.read_job(["--resume", str(tmp_path), *words.split()]).config
    assert isinstance(config, TdConfig)
    config.check()
    there = ("ray", "head:1") if words.startswith("--games") else (words.split()[1], None)
    assert (config.backend, config.ray_address) == there
