"""``make integrations``: try other libraries, each in a virtual environment of its own.

    make integrations                              # all, with little training each
    make integrations ARGS="torchrl skrl"          # these
    make integrations ARGS="torchrl --full"        # its example as a user runs it, then 1,000 games

A function below checks what an adapter can get wrong, in an empty folder with the package's wheel:
the rewards of a game sum to zero over all seats, one player decides several times in a row, masks
hold, seeds repeat a game. Then the library's example trains, and what it learnt plays in ``carolus
evaluate``. CI does not run this.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
LIMIT = 45 * 60
"""Seconds that a library may take, installing not included."""


Game = tuple[Sequence[Any], Sequence[int], Sequence[float]]
"""Who decided, the actions, and the last rewards of all seats."""


# ------------------------------------------------------------------------------------ libraries


def check_tianshou() -> None:
    from numpy import flatnonzero
    from numpy.random import default_rng
    from tianshou.env import PettingZooEnv

    from carolus_env import carolus_magnus_v0

    def game(players: int, seed: int) -> Game:
        env, random = PettingZooEnv(carolus_magnus_v0.env(players=players)), default_rng(seed)
        observation, _ = env.reset(seed=seed)
        movers, actions, over, rewards = [], [], False, []
        while not over:
            movers.append(observation["agent_id"])
            actions.append(int(random.choice(flatnonzero(observation["mask"]))))
            observation, rewards, over, _, _ = env.step(actions[-1])
        return movers, actions, list(rewards)

    check_seats(game)


def check_torchrl() -> None:
    import torch
    from torchrl.envs import PettingZooWrapper, check_env_specs
    from torchrl.envs.utils import MarlGroupMapType

    from carolus_env import carolus_magnus_v0

    def game(players: int, seed: int) -> Game:
        groups = MarlGroupMapType.ONE_GROUP_PER_AGENT
        aec = carolus_magnus_v0.env(players=players)
        env = PettingZooWrapper(aec, use_mask=True, group_map=groups)
        check_env_specs(env)
        env.set_seed(seed)
        torch.manual_seed(seed)
        data = env.rollout(2000)
        names = [f"player_{seat}" for seat in range(players)]
        masks = torch.stack([data[name, "mask"].flatten(1).any(dim=1) for name in names])
        assert (masks.sum(dim=0) == 1).all(), "one agent decides at a time"
        movers = masks.int().argmax(dim=0).tolist()
        actions = [int(data[names[mover], "action"][k].argmax()) for k, mover in enumerate(movers)]
        return movers, actions, [float(data["next", name, "reward"][-1]) for name in names]

    check_seats(game)


def check_pufferlib() -> None:
    import gymnasium
    import numpy as np
    import pufferlib.vector
    from gymnasium.vector import AutoresetMode
    from pufferlib_ppo import SelfPlay

    import carolus_env as ce
    from carolus_env.envs.sb3 import CarolusVecEnv

    def game(players: int, seed: int) -> Game:
        """Play two games in lockstep, in buffers of PufferLib's, to the end of the first."""
        kwargs = {"env_kwargs": {"players": players, "games": 1}, "num_envs": 2}
        env = pufferlib.vector.make(SelfPlay, backend="Serial", **kwargs)
        (rows, _), random = env.reset(seed=seed), np.random.default_rng(seed)
        movers, chosen, over = [], [], False
        while not over:
            masks = rows[:, -ce.ACTIONS :]
            states = np.concatenate([one.batch.states for one in env.envs])
            first, second = states["player"].astype(int)
            passes = np.delete(masks, [first, players + second], axis=0)
            assert (passes == (np.arange(ce.ACTIONS) == 0)).all(), "others have one action"
            assert np.array_equal(masks[[first, players + second]], ce.legal_masks(states))
            views = [ce.observe(states, np.full(2, seat)) for seat in range(players)]
            assert np.array_equal(rows[:, : -ce.ACTIONS], np.concatenate(np.stack(views, axis=1)))
            actions = (masks * random.random(masks.shape)).argmax(axis=1).astype(np.int32)
            movers.append(int(first))
            chosen.append(int(actions[first]))
            rows, rewards, ends, _, _ = env.step(actions)
            over = ends[0]
            assert len({*ends[:players].tolist()}) == 1, "a game ends for all seats"
        return movers, chosen, rewards[:players].tolist()

    check_seats(game)

    def steps(players: int, games: int) -> dict[str, Callable[[], object]]:
        """Return a random decision in all games, by the name of the environment."""
        streams = ce.new_streams(1, games)
        puffer = SelfPlay(players, games, seed=1)
        puffer.reset()
        gym: Any = gymnasium.make_vec(
            "carolus_env:CarolusMagnus-v0",
            num_envs=games,
            players=players,
            autoreset_mode=AutoresetMode.SAME_STEP,
        ).unwrapped
        gym.reset(seed=1)
        sb3 = CarolusVecEnv(ce.Rules(players), games, seed=1)
        sb3.reset()
        every = np.zeros(puffer.num_agents, np.int32)

        def step_puffer() -> None:
            every[puffer.movers] = ce.random_actions(puffer.batch.states, streams)
            puffer.step(every)

        return {
            "PufferLib": step_puffer,
            "Gymnasium": lambda: gym.step(ce.random_actions(gym.games.states, streams)),
            "SB3": lambda: sb3.step(ce.random_actions(sb3.games.states, streams)),
        }

    games = 4096
    for players in (2, 3, 4):
        rates: dict[str, list[float]] = {}
        for _ in range(7):  # in turn
            for name, step in steps(players, games).items():
                for _ in range(20):
                    step()
                begun = time.process_time()
                for _ in range(200):
                    step()
                rates.setdefault(name, []).append(200 * games / (time.process_time() - begun))
        line = ", ".join(f"{np.median(many) / 1e6:.1f} M {name}" for name, many in rates.items())
        print(f"{players} players, decisions a CPU-second: {line}", flush=True)


def check_rllib() -> None:
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # for a busy machine
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
    from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
    from ray.rllib.utils.pre_checks.env import check_multiagent_environments

    from carolus_env.integrations.rllib import CandidateRLModule, CarolusMultiAgentEnv

    def game(players: int, seed: int, turns: bool) -> Game:
        env_config = {"players": players, "turns": turns}
        check_multiagent_environments(CarolusMultiAgentEnv(env_config))
        module = RLModuleSpec(CandidateRLModule if turns else ActionMaskingTorchRLModule)
        config = (
            PPOConfig()
            .environment(CarolusMultiAgentEnv, env_config=env_config)
            .env_runners(num_env_runners=0)
            .multi_agent(policies={"all"}, policy_mapping_fn=lambda *_, **__: "all")
            .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"all": module}))
            .debugging(seed=seed)
        )
        [episode] = MultiAgentEnvRunner(config=config).sample(num_episodes=1, explore=True)
        movers, actions = [], []
        for step in range(len(episode)):
            [(mover, action)] = episode.get_actions(step).items()
            assert episode.get_observations(step)[mover]["action_mask"][action], "masks"
            movers.append(mover)
            actions.append(int(action))
        return movers, actions, [one.get_return() for one in episode.agent_episodes.values()]

    for turns in (False, True):
        check_seats(lambda players, seed, turns=turns: game(players, seed, turns))


def check_openspiel() -> None:
    import numpy as np
    import pyspiel
    from open_spiel.python.algorithms import value_iteration

    import carolus_env.integrations.openspiel  # noqa: F401  registers the game

    def game(players: int, seed: int) -> Game:
        random, movers, actions = np.random.default_rng(seed), [], []
        state = pyspiel.load_game(f"carolus_magnus(players={players})").new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes, chances = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(int(random.choice(outcomes, p=chances)))
                continue
            movers.append(state.current_player())
            actions.append(int(random.choice(state.legal_actions())))
            state.apply_action(actions[-1])
        return movers, actions, state.returns()

    check_seats(game)
    late = (
        "2 paladins_per_clan=6 max_rounds=5 | 4 | 1 roll | 6 | p3 B7r3y3g5 b1 A6b3y3g1 | "
        "P1B1 R1 | b1 - | 0:2/1 1:4/3"
    )
    for options in (
        "players=3,crown_choice=deferred,paladins_per_clan=20",
        "players=4,partners=adjacent,max_rounds=0",
        f"position={late.replace('=', ':')}",
    ):
        tried = pyspiel.load_game(f"carolus_magnus({options})")
        pyspiel.random_sim_test(tried, num_sims=2, serialize=True, verbose=False)
    small = pyspiel.load_game("carolus_magnus", {"position": late})
    values = value_iteration.value_iteration(small, -1, 1e-12, cyclic_game=True)
    root = small.new_initial_state()
    worth = sum(values[str(root.child(roll))] * p for roll, p in root.chance_outcomes())
    assert abs(worth + 25 / 27) < 1e-9, f"value iteration finds {worth}, not -25/27"


def check_minari() -> None:
    os.environ["MINARI_DATASETS_PATH"] = str(Path("sets").absolute())
    import minari
    import numpy as np

    from carolus_env.records.arrays import load_arrays

    for players, dtype in ((2, "uint8"), (3, "float32"), (4, "uint8")):
        name = f"carolus/{players}p-greedy-v0"
        command = f"dataset greedy random --players {players} --games 24 --out of_{players}"
        carolus(f"{command} --observation {dtype}")
        subprocess.run([sys.executable, "minari_dataset.py", f"of_{players}", name], check=True)
        data, arrays = minari.load_dataset(name), load_arrays(f"of_{players}")
        where = list(data.storage.get_episode_metadata(data.episode_indices))
        for episode, about in zip(data, where, strict=True):
            rows = (arrays.games == about["game"]) & (arrays.seats == about["seat"])
            assert np.array_equal(episode.observations[:-1], arrays.observations[rows])
            masks = episode.infos["action_mask"]
            assert np.array_equal(masks[:-1], arrays.masks[rows]) and not masks[-1].any()
            assert np.array_equal(episode.actions, arrays.actions[rows])
            assert episode.rewards.sum() == arrays.returns[rows][-1]
            cut_off = arrays.discounts[rows][-1] != 0
            assert (episode.terminations[-1], episode.truncations[-1]) == (not cut_off, cut_off)
        env = data.recover_environment()
        observation, info = env.reset(seed=3)
        assert env.observation_space == data.observation_space
        assert observation.dtype == data[0].observations.dtype and info["action_mask"].any()


def check_ray() -> None:
    """Lose a process at a task, and a node: the games stay the same."""
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # for a busy machine
    os.environ.setdefault("RAY_health_check_period_ms", "500")  # a lost node is missed soon
    import ray
    from ray.cluster_utils import Cluster as Nodes

    from carolus_env import Rules, evaluation
    from carolus_env.system.executors import Cluster

    plan = evaluation.Plan(Rules(2), ("greedy", "random"), deals=2000, seed=5)

    def play(name: str, workers: Any, progress: Callable[[int], None]) -> bytes:
        cup = evaluation.Tournament(plan)
        cup.run(workers=workers, file=Path(name), progress=progress)
        results = evaluation.read_games(name).results
        results["seconds"] = 0
        return results.tobytes()

    expected = play("one_process.jsonl", 1, lambda done: None)
    head = {"num_cpus": 1, "include_dashboard": False}
    nodes = Nodes(initialize_head=True, head_node_args=head)
    extra = nodes.add_node(num_cpus=1)
    lost: list[str] = []

    def lose(done: int) -> None:
        if not lost and kill_task(nodes):
            lost.append("process")
        elif lost == ["process"] and done > plan.games // 3:
            nodes.remove_node(extra, allow_graceful=False)
            lost.append("node")

    evaluation.tournament.BLOCK_SECONDS = 0.2  # many blocks
    with Cluster(nodes.address) as workers:
        assert play("nodes.jsonl", workers, lose) == expected, "other games"
    print(f"lost: {lost}")
    ray.shutdown()
    nodes.shutdown()


def kill_task(nodes: Any) -> bool:
    """Kill a process that is at a task, a child of a node's, if there is one."""
    for node in nodes.list_all_nodes():
        parent = node.all_processes["raylet"][0].process.pid
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            with contextlib.suppress(OSError):  # it has ended
                if b"ray::_do" in Path(f"/proc/{child}/cmdline").read_bytes():
                    os.kill(int(child), signal.SIGKILL)
                    return True
    return False


# ------------------------------------------------------------------------------------ checking


def check_seats(game: Callable[[int, int], Game]) -> None:
    """Check random games of 2, 3 and 4 players with all seats.

    Args:
        game: plays one, for a number of players and a seed.
    """
    for players in (2, 3, 4):
        movers, actions, rewards = game(players, 7)
        assert actions == game(players, 7)[1], "the same seed gave another game"
        assert actions != game(players, 8)[1], "another seed gave the same game"
        assert len(rewards) == players and all(rewards)
        assert abs(sum(rewards)) < 1e-9, f"rewards {rewards}"
        assert max(len(list(run)) for _, run in groupby(movers)) > 1, "no decisions in a row"


def carolus(words: str) -> None:
    """Run the package's command."""
    subprocess.run([sys.executable, "-m", "carolus_env", *words.split()], check=True)


class Library(NamedTuple):
    """What is tried: a check, and an example; its agent trains with ``options`` unless in full."""

    requires: str
    check: Callable[[], None] | None = None
    example: str = ""
    options: str = "--steps 2048 --envs 16"
    builds_with: str = ""
    """What ``requires`` needs before it is built."""


def check_wandb() -> None:
    """The metrics of a run reach Weights & Biases, offline."""
    import wandb

    from carolus_env.learners.ppo import PpoConfig
    from carolus_env.learners.run import Run

    sizes: Any = {"width": 16, "hidden": 4, "envs": 4, "rollout": 16, "workers": 1}
    config = PpoConfig(steps=512, eval_games=2, final_games=2, curve_every=128, **sizes)
    tracker = wandb.init(project="carolus", mode="offline")
    run = Run(config, Path.cwd(), log=lambda values, step: tracker.log(values, step=step))
    assert run.train() and run.finish()
    tracker.finish()
    [written] = Path.cwd().glob("wandb/offline-run-*/run-*.wandb")
    assert all(name in written.read_bytes() for name in (b"train/loss", b"evaluation/elo"))


LIBRARIES = {
    "agilerl": Library(
        "agilerl==2.58.0 peft==0.21.0 torch==2.13.0", example="agilerl_ppo.py:Trained"
    ),
    "minari": Library("minari[hdf5]==0.5.4 pillow==13.0.0", check_minari, "minari_dataset.py"),
    "openspiel": Library(
        "open_spiel==2.0.2 cvxpy==1.9.3",
        check_openspiel,
        "openspiel_mcts.py:Search",
        "--games 1 --simulations 20",
    ),
    "pufferlib": Library(
        # Its wheels are linked with another torch, so it is compiled.
        "pufferlib-core==3.0.18 --no-binary pufferlib-core --no-build-isolation "
        "stable-baselines3==2.9.2 torch==2.13.0",
        check_pufferlib,
        "pufferlib_ppo.py:Trained",
        builds_with="torch==2.13.0 numpy setuptools==84.2.1 wheel",
    ),
    "ray": Library("ray==2.60.0", check_ray),
    "rllib": Library(
        "ray[rllib]==2.60.0 torch==2.13.0",
        check_rllib,
        "rllib_ppo.py:Trained",
        "--iterations 1 --batch 2048",
    ),
    "skrl": Library("skrl==2.1.1 torch==2.13.0", example="skrl_ppo.py:Trained"),
    "tianshou": Library("tianshou==2.0.1 torch==2.13.0", check_tianshou, "tianshou_dqn.py:Trained"),
    "torchrl": Library("torchrl==0.14.1 torch==2.13.0", check_torchrl, "torchrl_ppo.py:Trained"),
    "wandb": Library("wandb==0.31.0 tensorboard", check_wandb),
}


def check_here(name: str, full: bool) -> None:
    """Check a library, with the Python that has it."""
    library = LIBRARIES[name]
    if library.check is not None:
        library.check()
        print(f"{name}: checked", flush=True)
    if ":" not in library.example:
        return
    options = [] if full else library.options.split()
    subprocess.run([sys.executable, library.example.partition(":")[0], *options], check=True)
    opponent = "planner --games 1000" if full else "random --games 4"
    carolus(f"evaluate {library.example} {opponent} --seed 1")


# ------------------------------------------------------------------------------------ environments


def install(folder: Path, wheel: Path, library: Library) -> Path:
    """Make a virtual environment with the wheel and what a library requires; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    tool = ["uv", "pip", "install", "--python", python]
    if not find_spec("uv"):
        tool = ["pip", "--python", python, "install", "--no-compile"]
    # With exactly this torch, a folder of wheels (PIP_FIND_LINKS) can offer a CPU build.
    tool += ["-q", "--constraint", str(ROOT / "constraints.txt")]
    env = {**os.environ, "UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", "")}
    env.pop("PYTHONWARNINGS", None)  # `make newest` makes warnings of our own calls errors
    for words in (library.builds_with.split(), [str(wheel), *library.requires.split()]):
        if words:
            subprocess.run([sys.executable, "-m", *tool, *words], check=True, env=env)
    return Path(python)


def check(name: str, wheel: Path, folder: Path, full: bool) -> bool:
    """Install and check a library in ``folder``; whether all went well."""
    library, work = LIBRARIES[name], folder / "work"
    work.mkdir(parents=True)
    shutil.copy(__file__, work)
    if library.example:
        for file in (library.example.partition(":")[0], "scorer.py", "ppo_torch.py"):
            shutil.copy(ROOT / "examples" / file, work)
    try:
        python = install(folder / "venv", Path(f"{wheel}[evaluation]"), library)
    except subprocess.CalledProcessError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    dropped = ("PYTHONPATH", "VIRTUAL_ENV", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    env = {key: value for key, value in os.environ.items() if key not in dropped}
    env |= {"HOME": str(work), "OMP_WAIT_POLICY": "PASSIVE", "PYTHONUNBUFFERED": "1"}
    command = [str(python), Path(__file__).name, name, "--here", *(["--full"] if full else [])]
    process = subprocess.Popen(command, cwd=work, env=env, start_new_session=True)
    try:
        return process.wait(LIMIT) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):  # all that it started has ended
            os.killpg(process.pid, signal.SIGKILL)


def main() -> int:
    """Check the libraries; returns 0 when all of them passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "libraries", nargs="*", metavar="LIBRARY", help=f"of {', '.join(LIBRARIES)}; default: all"
    )
    parser.add_argument("--full", action="store_true", help="train the examples as a user does")
    parser.add_argument("--here", action="store_true", help="check it with this Python")
    options = parser.parse_args()
    names = options.libraries or list(LIBRARIES)
    if unknown := [name for name in names if name not in LIBRARIES]:
        parser.error(f"unknown library {unknown[0]!r}; known are {', '.join(LIBRARIES)}")
    if options.here:
        for name in names:
            check_here(name, options.full)
        return 0
    failed = []
    with tempfile.TemporaryDirectory(prefix="carolus-integrations-") as base:
        wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", base, str(ROOT)]
        subprocess.run(wheel, check=True)
        [built] = Path(base).glob("carolus_env-*.whl")
        for name in names:
            begun = time.perf_counter()
            if not check(name, built, Path(base, name), options.full):
                failed.append(name)
            result = "FAILED" if name in failed else "passed"
            print(f"{name}: {result}, {time.perf_counter() - begun:.0f} s", flush=True)
            shutil.rmtree(Path(base, name), ignore_errors=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
