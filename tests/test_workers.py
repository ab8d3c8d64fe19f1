"""Workers, also as a cluster does it: another order, losses (tests/integrations.py has one)."""

import os
import pickle
import random
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from benchmarks.suite import main as make_suites
from carolus_env import evaluation
from carolus_env.commands import dataset, evaluate
from carolus_env.engine import new_games
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import Plan, Tournament, pool
from carolus_env.evaluation.rollouts import rollout
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

    The result of task ``stuck`` comes last of all that can be submitted.
    """

    pending = property(lambda self: len(self.tasks))
    count = property(lambda self: 1 + len(self.numbers) % 4)
    room = property(lambda self: max(2 * self.count - len(self.tasks), 0))

    def __init__(self, stuck=None):
        self.random, self.stuck = random.Random(0), stuck
        self.desks, self.tasks, self.numbers, self.most = [], [], [], 0

    def _begin(self):
        self.desks = [Desk(self._job) for _ in range(2)]

    def submit(self, number, *task):
        self.tasks.append((number, pickle.dumps(task)))
        self.numbers.append(number)
        self.most = max(self.most, len(self.tasks))

    def take(self):
        free = [task for task in self.tasks if task[0] != self.stuck] or self.tasks
        number, given = self.tasks.pop(self.tasks.index(self.random.choice(free)))
        for desk in self.random.sample(self.desks, 2):  # the first one's machine is lost
            answer = pickle.loads(pickle.dumps(desk.done(pickle.loads(given))))
        return [(number, unwrapped(answer))]

    def _abandon(self):
        self.tasks.clear()

    def close(self): ...


def lines(file):
    return [line for line in file.read_text().splitlines() if not line.startswith('{"block"')]


def test_games_are_the_same_bytes_in_any_order_of_blocks_and_few_wait_for_a_slow_one(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(pool, "SIDE_BY_SIDE", 3)
    plan, shuffled = Plan(Rules(3), ("greedy", "random"), deals=7, seed=3), Shuffled()
    for name, workers in (("one", 1), ("many", shuffled)):
        cup = Tournament(plan)
        cup.run(workers=workers, file=tmp_path / name)
        assert cup.complete and cup.games == plan.games
    assert len(shuffled.numbers) > 10
    assert lines(tmp_path / "one") == lines(tmp_path / "many")
    workers, before = Shuffled(stuck=0), []
    cup = Tournament(Plan(Rules(2), ("random", "greedy"), deals=150, seed=3))
    cup.run(workers=workers, progress=lambda done: before.append(len(workers.numbers)))
    assert before[0] <= 4 * pool.AHEAD + 4, "blocks given before the first one was there"
    assert len(workers.numbers) >= 100
    assert workers.most <= 8


def squares():
    def square(number):
        if number < 0:
            raise KeyError(number)
        if number > 1000:
            raise evaluation.ResultsFileError("file", 7, "too large")
        return number * number

    return square


def doubles():
    return lambda number: 2 * number


def dies():
    return lambda number: os._exit(3)


def test_processes_do_one_job_after_the_other_and_tell_of_errors():
    with Processes(1) as workers:
        for job, results in ((squares, [0, 1, 4, 9, 16]), (doubles, [0, 2, 4, 6, 8])):
            workers.begin(job)
            assert workers.all((n,) for n in range(5)) == results
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


class FakeRay(ModuleType):
    """As much of Ray as `cluster` uses, in this process."""

    class RayError(Exception):
        pass

    class RayTaskError(RayError):
        pass

    def __init__(self):
        super().__init__("ray")
        self.exceptions = SimpleNamespace(RayError=self.RayError, RayTaskError=self.RayTaskError)
        self.connected, self.options, self.store = {}, {}, {}
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

    def put(self, value):
        key = f"ref {len(self.store)}"
        self.store[key] = pickle.loads(pickle.dumps(value))
        return key

    def get(self, key):
        if self.lost:
            raise self.RayError("The worker died\nunexpectedly")
        return self.store[key]

    def remote(self, **options):
        self.options = options

        def of(function):
            def asked(*given):
                values = (self.store.get(a, a) if isinstance(a, str) else a for a in given)
                return self.put(function(*values))

            return SimpleNamespace(remote=asked)

        return of

    def wait(self, refs, *, num_returns=1, timeout):
        return refs[-num_returns:][::-1], []


@pytest.fixture
def fake(monkeypatch):
    result = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", result)
    for module in (cluster, backends):
        monkeypatch.setattr(module, "find_spec", lambda name: True)
    return result


def test_a_cluster_does_tasks_by_ray_at_most_so_many_and_leaves_others_connections(
    fake, monkeypatch
):
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
    with pytest.raises(WorkerError, match="no Ray cluster at nowhere: nobody answers"):
        cluster.Cluster("nowhere")
    fake.connected = {"by": "the user"}
    with cluster.Cluster(most=2) as workers:
        assert (workers.count, workers.room) == (2, 2)
    assert fake.connected
    monkeypatch.setattr(cluster, "__version__", "0.0.1")
    answer = cluster._do("9.9.9", "digest", [], 1)
    with pytest.raises(ValueError, match=r"has carolus-env 0.0.1, not 9.9.9: install the same"):
        unwrapped(answer)


def test_files_of_agents_go_along(fake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = "a/bot.py a/helper.py a/part/__init__.py a/plain/x.py a/.hidden "
    for name in (names + "m/best.safetensors m/other.json carolus_env/x.py").split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    specs = ("a/bot.py:Bot", "ppo:m/best,temperature=1", "planner:errors=0.1", "/abs/bot.py:Bot")
    specs += ("exe:python3 m/other.json,seconds=1",)
    backends.cluster(None, specs).close()
    goes = "a/bot.py a/helper.py a/part/__init__.py m/best.safetensors m/other.json"
    assert fake.staged == goes.split()
    with pytest.raises(ValueError, match="name a file below the current folder"):
        monkeypatch.chdir(tmp_path / "m")
        backends.cluster(None, ("../a/bot.py:Bot",))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster, "_TOGETHER", 2)
    with pytest.raises(ValueError, match="put the agent into a folder of its own"):
        backends.cluster(None, specs)


COMMANDS = (
    (evaluate.main, "greedy random --games 2 --out OUT"),
    (evaluate.main, "greedy --bench --out OUT"),
    (dataset.main, "greedy --games 2 --out OUT"),
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


def test_the_pages_snippet_runs_and_evaluate_plays_the_same_there(
    fake, tmp_path, monkeypatch, capsys
):
    [snippet] = re.findall(r"```python\n(.*?)```", Path("docs/cluster.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("snippet.py").write_text(snippet)
    runpy.run_path("snippet.py", run_name="__main__")
    assert len(lines(Path("games.jsonl"))) == 601
    for folder, where in (("here", []), ("there", ["--backend", "ray"])):
        words = ["greedy", "random", "--games", "20", "--quiet", "--out", folder, *where]
        assert evaluate.main(words) == 0
    here, there = (lines(Path(folder) / "games.jsonl") for folder in ("here", "there"))
    assert here == there and len(here) == 21
    assert not fake.connected, "closed"
    assert evaluate.main(["greedy", "--suite", "--backend", "ray"]) == 2
    assert "--suite measures in this process" in capsys.readouterr().err


def test_a_rollout_is_the_same_whoever_plays_its_games():
    state = new_games(Rules(2), 1, seed=5)[0]
    options = rollout.Options(base="greedy", value="planner", games=200)
    alone, result = (
        rollout.roll_out(state, options=options, seed=3, workers=workers)
        for workers in (None, Shuffled())
    )
    for one, other in zip(alone.candidates, result.candidates, strict=True):
        assert one.actions == other.actions and one.games == other.games
        assert np.array_equal(one.mean, other.mean)
        assert np.array_equal(one.error, other.error)
