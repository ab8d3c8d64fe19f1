# requires: ray==2.60.0 tyro rich pydantic tensorboard matplotlib scipy
"""Ray: clusters of several nodes on this machine, with nodes and processes that are killed.

Whatever happens to the cluster, games and trained networks are those of one process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # where a machine is busy
os.environ.setdefault("RAY_health_check_period_ms", "500")  # so that a killed node is missed soon
import ray
from checking import Checks
from ray.cluster_utils import Cluster as Nodes

from carolus_env import arena
from carolus_env.arena import pool
from carolus_env.commands.train import main as train_here
from carolus_env.engine.rules import Rules
from carolus_env.system import cluster as cluster_module
from carolus_env.system.cluster import Cluster
from carolus_env.system.processes import Workers

BOT = """
import os
from carolus_env import engine
from helper import NOTHING

def mine(states, generators):
    return engine.random_actions(states, generators) + NOTHING

def fails(states, generators):
    return {}["no such key"]

def dies(states, generators):
    os._exit(3)
"""
GAMES = 2400


def plan(*agents: str, games: int = GAMES) -> arena.Plan:
    return arena.Plan(Rules(2), agents, deals=games // 2, seed=5)


def lines(file: Path) -> list[str]:
    """The header and the games of a results file; lines of blocks hold times."""
    return [line for line in file.read_text().splitlines() if not line.startswith('{"block"')]


def play(name: str, workers: int | Workers, what: arena.Plan, **how: Any) -> list[str]:
    """Play a plan, and return its header and games."""
    file = Path(f"{name}.jsonl")
    cup = arena.Tournament(what)
    cup.run(workers=workers, file=file, **how)
    assert cup.complete
    print(f"  {name}: {cup.seconds:.1f} s", flush=True)
    return lines(file)


@contextlib.contextmanager
def nodes(count: int) -> Iterator[Nodes]:
    """A cluster of nodes with one processor each."""
    cluster = Nodes(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    for _ in range(count - 1):
        cluster.add_node(num_cpus=1)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def once(games: int, act: Callable[[], Any]) -> Callable[[int], None]:
    """A listener to progress that acts once, when so many games are done."""
    acted = threading.Event()

    def listen(done: int) -> None:
        if done >= games and not acted.is_set():
            acted.set()
            act()

    return listen


def processes_of(cluster: Nodes) -> list[int]:
    """Processes of the nodes that are at a task: children of theirs, which Ray names by it."""
    raylets = {
        info.process.pid
        for node in cluster.list_all_nodes()
        for info in node.all_processes["raylet"]
    }
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in raylets and b"ray::_do" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def kill_one(cluster: Nodes) -> None:
    """Kill a process at a task, after waiting for one: between rounds there is none."""
    while not (found := processes_of(cluster)):
        time.sleep(0.01)
    os.kill(found[0], signal.SIGKILL)


def check_tournaments(checks: Checks) -> None:
    """On 1, 2 and 4 nodes, while nodes and processes come and go."""
    what = plan("greedy", "random", "bots/mine.py:mine")
    wanted = play("one_process", 1, what)
    checks.holds(len(wanted) == 1 + what.games, "one process played other games")
    with nodes(1) as cluster:
        with Cluster(cluster.address, files=[Path("bots/mine.py")]) as workers:
            checks.passed("1 node", play("node", workers, what) == wanted, "other lines")
        # Nodes of one machine share the folder of what went along, and one that ends empties it.
        bots = f"{Path('bots/mine.py').absolute()}:"
        what = plan("greedy", "random", f"{bots}mine")
        wanted = play("one_process_again", 1, what)
        with Cluster(cluster.address) as workers:
            lost = cluster.add_node(num_cpus=1)
            until_count(checks, workers, 2)
            checks.passed("2 nodes", play("nodes", workers, what) == wanted, "other lines")
            kill = once(500, lambda: kill_one(cluster))
            found = play("process", workers, what, progress=kill)
            checks.passed("a process is killed", found == wanted, "other lines")
            check_failures(checks, bots)
            cluster.add_node(num_cpus=1)
            cluster.add_node(num_cpus=1)
            until_count(checks, workers, 4)
            checks.passed("4 nodes", play("four", workers, what) == wanted, "other lines")
            kill = once(500, lambda: cluster.remove_node(lost, allow_graceful=False))
            add = once(1500, lambda: cluster.add_node(num_cpus=1))
            found = play("churn", workers, what, progress=lambda done: (kill(done), add(done)))
            checks.passed(
                "a node is killed and one is added",
                found == wanted,
                "other lines",
                f"{GAMES} games",
            )
            check_memory(checks, workers)


def until_count(checks: Checks, workers: Workers, count: int) -> None:
    """Wait until the cluster has so many processors."""
    since = time.monotonic()
    while workers.count != count and time.monotonic() - since < 60:
        time.sleep(0.2)
    checks.holds(workers.count == count, f"{workers.count} processors, not {count}")


def check_failures(checks: Checks, bots: str) -> None:
    """An agent's error ends the tournament with its traceback; so does one that kills Python."""
    cluster_module.RETRIES = 1  # by the connection that there is
    workers = Cluster(most=1)
    for name, said in (("fails", "KeyError: 'no such key' (mine.py, line 10)"), ("dies", "crash")):
        try:
            play(name, workers, plan("random", f"{bots}{name}", games=40))
        except arena.ArenaError as error:
            checks.holds(said in str(error), f"{name}: {error}")
            whole = 'return {}["no such key"]' in error.traceback
            checks.holds(whole or name == "dies", f"the traceback is {error.traceback!r}")
        else:
            checks.holds(False, f"an agent that {name} went unnoticed")
    checks.passed("an agent's error ends it")


def check_memory(checks: Checks, workers: Workers, seconds: float = 10.0) -> None:
    """A plan of a million games: what is under way stays bounded."""
    cup = arena.Tournament(plan("random", "greedy:errors=1", games=1_000_000))
    told: list[tuple[float, int, int, int]] = []  # when, games, under way, bytes of this process
    counts = set[int]()  # of workers: a node that was killed is counted until Ray has noticed

    class EnoughError(Exception):
        pass

    def listen(done: int) -> None:
        told.append((time.monotonic(), done, workers.given, resident()))
        counts.add(workers.count)
        if told[-1][0] - told[0][0] > seconds:
            raise EnoughError

    with contextlib.suppress(EnoughError):
        cup.run(workers=workers, progress=listen)
    most = max(given for _, _, given, _ in told)
    checks.holds(most <= 2 * max(counts), f"{most} blocks under way of {max(counts)} workers")
    (_, before, _, small), (_, after, _, large) = told[len(told) // 2], told[-1]
    a_game = (large - small) / (after - before)
    checks.holds(a_game < 2000, f"{a_game:.0f} bytes more for each game")
    checks.passed(
        "a plan of a million games",
        result=f"{cup.games:,} played in {seconds:.0f} s, at most {most} blocks under way, "
        f"{a_game:.0f} bytes more for each game played",
    )


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# ------------------------------------------------------------------------------------ training

TRAIN = (
    "--workers 2 --curve-every 64 --eval-games 2 --final-games 2 --runs runs "
    "--checkpoint-every 256 "
)
LEARNERS = {
    "ppo": "--games 16 --rollout 8 --batch 64 --steps 4096 --eval-every 4096",
    "value": "--learner value --games 1600 --games-per-round 4 --eval-every 1600",
}


def train(words: str) -> subprocess.Popen[str]:
    """Training in another process."""
    command = [sys.executable, "-m", "carolus_env", "train", *words.split()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def failed(process: subprocess.Popen[str]) -> SystemExit:
    text, _ = process.communicate()
    return SystemExit(f"training ended with code {process.returncode}:\n{text}")


def weights(run: str) -> bytes:
    return Path("runs", run, "final.safetensors").read_bytes()


def learnt(run: str) -> int:
    """Decisions or games of the last checkpoint."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        state = json.loads(next(Path("runs", run, "resume").glob("*.json")).read_text())
        return int(state.get("decisions", state.get("games", 0)))
    return 0


def until_learnt(run: str, process: subprocess.Popen[str]) -> None:
    while learnt(run) < 256:
        time.sleep(0.05)
        if process.poll() is not None:
            raise failed(process)


def check_training(checks: Checks, cluster: Nodes) -> None:
    """By actors on nodes; the learner, an actor and a node are killed: the same weights."""
    on_ray = f"--on ray --ray-address {cluster.address}"
    for learner, words in LEARNERS.items():
        checks.holds(train_here(f"{TRAIN} {words} --name {learner}".split()) == 0, "no training")
        spare = cluster.add_node(num_cpus=1)
        process = train(f"{TRAIN} {words} --name {learner}-ray {on_ray}")
        until_learnt(f"{learner}-ray", process)
        kill_one(cluster)  # an actor
        cluster.remove_node(spare, allow_graceful=False)
        time.sleep(0.5)
        process.kill()  # the learner
        process.wait()
        checks.holds(learnt(f"{learner}-ray") < 1600, "it was over before it was killed")
        process = train(f"--resume runs/{learner}-ray")
        text, _ = process.communicate()
        checks.holds(process.returncode == 0, f"it did not continue: {text}")
        checks.passed(
            f"{learner}: learner, actor and node killed",
            weights(learner) == weights(f"{learner}-ray"),
            "other weights",
            "the same weights",
        )


def main() -> None:
    checks = Checks("Ray", ray.__version__)
    folder = Path("bots")
    folder.mkdir()
    (folder / "mine.py").write_text(BOT.replace("from helper", "from bots.helper"))
    (folder / "helper.py").write_text("NOTHING = 0\n")
    sys.path.insert(0, "")
    pool.BLOCK_SECONDS = 0.2  # many blocks
    pool._WORTH_SHARING = 0.02
    check_tournaments(checks)
    with nodes(2) as cluster:
        check_training(checks, cluster)
    checks.report(limits="nodes of one machine; a network between them was not tried", lines=1)


if __name__ == "__main__":
    main()
