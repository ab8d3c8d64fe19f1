# requires: open_spiel==2.0.2 torch==2.13.0 cvxpy==1.9.3
# requires: jax==0.10.2 flax==0.12.8 optax==0.2.8 orbax-checkpoint==0.12.8 chex==0.1.92
# example: openspiel_mcts.py
"""The package's game through OpenSpiel 2.0.2: its own checks, searches, solvers and learners.

cvxpy is what OpenSpiel's value iteration imports; jax to chex are for its AlphaZero.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import itertools
import json
import random
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel
import torch
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import mcts, minimax, value_iteration
from open_spiel.python.algorithms.evaluate_bots import evaluate_bots
from open_spiel.python.bots.uniform_random import UniformRandomBot
from open_spiel.python.observation import INFO_STATE_OBS_TYPE, make_observation
from open_spiel.python.pytorch.ppo import PPO, PPOAgent
from open_spiel.python.vector_env import SyncVectorEnv

import carolus_env.integrations.openspiel  # noqa: F401  registers the game, in AlphaZero's processes too
from carolus_env.integrations.openspiel_bots import AgentBot, PlayoutEvaluator

OPTIONS = (
    "",
    "players=3",
    "players=4",
    "players=4,partners=adjacent,crown_choice=deferred",
    "players=3,crown_choice=deferred,paladins_per_clan=20",
    "max_rounds=3",
    "max_rounds=0",
)
LATE = (
    "2 paladins_per_clan=6 max_rounds=5 | 4 | 1 roll | 6 | p3 B7r3y3g5 b1 A6b3y3g1 | "
    "P1B1 R1 | b1 - | 0:2/1 1:4/3"
)
"""A roll before the last round, worth 25/27 to player 1 (tests/test_openspiel.py says why)."""

MY_BOT = '''"""A policy that OpenSpiel's PPO has learnt, as an agent of the package."""

import torch
from open_spiel.python.pytorch.ppo import PPOAgent, legal_actions_to_mask

from carolus_env.integrations.openspiel_bots import BotAgent


class Policy:
    def __init__(self, network, seed):
        self.network, self.random = network, torch.Generator().manual_seed(seed)

    def step(self, state):
        mask = legal_actions_to_mask([state.legal_actions()], 95)
        seen = torch.tensor([state.observation_tensor()])
        with torch.no_grad():
            *_, chances = self.network.get_action_and_value(seen, mask)
        return int(torch.multinomial(chances[0], 1, generator=self.random))


class Trained(BotAgent):
    def __init__(self):
        network = PPOAgent(95, (227,), "cpu")
        network.load_state_dict(torch.load("ppo.pt"))
        super().__init__(lambda game, seat, seed: Policy(network, seed))
'''


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--example", type=Path, action="append", default=[])
    examples = parser.parse_args().example
    checks: dict[str, str] = {}
    for check in (
        own_checks,
        rewards_and_runs,
        seeds,
        observations,
        exact_values,
        searches,
        speed,
        ppo,
        alpha_zero,
    ):
        print(f"{check.__name__} ...", flush=True)
        started = time.perf_counter()
        checks.update(check())
        print(f"  {time.perf_counter() - started:.0f} s", flush=True)
    for example in examples:
        print(f"{example.name} ...", flush=True)
        subprocess.run([sys.executable, example, "--games", "2"], check=True)
        assert issubclass(runpy.run_path(str(example))["Search"], object)
        games = evaluated(f"{example}:Search", "random", 4)
        checks["example plays in evaluate"] = f"{100 * games:.0f} % of 4 games against random"
    found = {
        "library": "OpenSpiel",
        "version": importlib.metadata.version("open_spiel"),
        "checks": checks,
        "limits": "no information-state tensor (OpenSpiel's perfect-information games have none); "
        "its Python AlphaZero and value iteration are for two players; max_rounds=0 has no longest "
        "game, for algorithms that allocate by it; the C++ MCTSBot.step crashes with every game in "
        "Python, its mcts_search works",
        "lines": 2,
    }
    print(json.dumps(found), flush=True)


def evaluated(agent: str, opponent: str, games: int) -> float:
    """The agent's win rate in the package's ``evaluate``, in paired games of two players."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        command = f"evaluate {agent} {opponent} --games {games} --seed 1 --json {result}"
        subprocess.run([sys.executable, "-m", "carolus_env", *command.split()], check=True)
        [pairing] = json.loads(result.read_text())["pairings"]
    return float(pairing["win_rate"][0])


# ------------------------------------------------------------------------------------ the game


def own_checks() -> dict[str, str]:
    """OpenSpiel's check of a game: clones, masks, strings, serialisation, returns, lengths."""
    for options in (*OPTIONS, f"position={LATE.replace('=', ':')}"):
        game = pyspiel.load_game(f"carolus_magnus({options})")
        pyspiel.random_sim_test(game, num_sims=2, serialize=True, verbose=False)
        assert str(pyspiel.load_game(str(game))) == str(game), options
    return {"random_sim_test": f"ok, with {len(OPTIONS) + 1} sets of options"}


def played(players: int, seed: int) -> tuple[list[int], list[int], list[float]]:
    """A random game in ``rl_environment``: who decided, the actions, each seat's sum of rewards."""
    environment = rl_environment.Environment(
        f"carolus_magnus(players={players})",
        chance_event_sampler=rl_environment.ChanceEventSampler(seed),
        enable_legality_check=True,
    )
    choice, who, actions, rewards = random.Random(seed), [], [], np.zeros(players)
    seen = environment.reset()
    while not seen.last():
        player = seen.current_player()
        for seat, legal in enumerate(seen.observations["legal_actions"]):
            assert bool(legal) == (seat == player), "only who decides has legal actions"
        who.append(player)
        actions.append(choice.choice(seen.observations["legal_actions"][player]))
        seen = environment.step([actions[-1]])
        rewards += seen.rewards
    return who, actions, rewards.tolist()


def rewards_and_runs() -> dict[str, str]:
    """Rewards of all seats, and several decisions of one seat in a row."""
    for players in (2, 3, 4):
        won = 0
        for seed in range(3):
            who, _, rewards = played(players, seed)
            assert abs(sum(rewards)) < 1e-9 and min(rewards) < 0 < max(rewards), rewards
            won += sum(reward > 0 for reward in rewards)
            longest = most = 1
            for before, after in itertools.pairwise(who):
                longest = longest + 1 if before == after else 1
                most = max(most, longest)
            assert most >= 4, "a turn is at least three paladins and a move"
        assert won >= 3
    return {
        "rewards sum to zero": "ok",
        "several decisions in a row": "ok",
        "players": "2, 3, 4",
    }


def seeds() -> dict[str, str]:
    """The same seeds of chance and choices repeat a game."""
    assert played(3, 5) == played(3, 5)
    assert played(3, 5) != played(3, 6)
    return {"seeds": "ok"}


def observations() -> dict[str, str]:
    """Tensors by OpenSpiel's way and by ours, which is faster; strings; the history."""
    for players in (2, 3, 4):
        game = pyspiel.load_game(f"carolus_magnus(players={players})")
        state, choice = game.new_initial_state(), random.Random(1)
        observer = make_observation(game)
        while not state.is_terminal():
            if state.move_number() % 20 == 3:
                for seat in range(players):
                    tensor = state.observation_tensor(seat)
                    observer.set_from(state, seat)
                    assert tensor == pyspiel.State.observation_tensor(state, seat)
                    assert tensor == observer.tensor.tolist()
                    assert len(tensor) == game.observation_tensor_size()
                    assert state.legal_actions(seat) == pyspiel.State.legal_actions(state, seat)
                assert state.is_chance_node() == pyspiel.State.is_chance_node(state)
                assert state.observation_string(0) == str(state)
                told = make_observation(game, INFO_STATE_OBS_TYPE).string_from(state, 0)
                assert state.information_state_string(0) == told == state.history_str()
            state.apply_action(choice.choice(state.legal_actions()))
    return {"observations": "tensor and string, history as information state"}


# ------------------------------------------------------------------------------------ solvers


def exact_values() -> dict[str, str]:
    """A late position: value iteration, expectiminimax, and the exact value, 25/27."""
    game = pyspiel.load_game("carolus_magnus", {"position": LATE})
    values = value_iteration.value_iteration(game, -1, 1e-12, cyclic_game=True)
    root = game.new_initial_state()
    worth = sum(values[str(root.child(roll))] * p for roll, p in root.chance_outcomes())
    assert abs(worth + 25 / 27) < 1e-9, worth

    def beyond(state: Any) -> float:
        """The value where expectiminimax stops looking, to player 1."""
        if state.is_chance_node():
            outcomes = state.chance_outcomes()
            return sum(p * beyond(state.child(outcome)) for outcome, p in outcomes)
        return -values[str(state)]

    found, _ = minimax.expectiminimax(root, 3, beyond, 1)
    assert abs(found - 25 / 27) < 1e-9, found
    return {"exact values": f"25/27: value iteration ({len(values)} states), expectiminimax"}


def searches() -> dict[str, str]:
    """OpenSpiel's searches, in Python and in C++, and the package's agents as its bots."""
    game, random_state = pyspiel.load_game("carolus_magnus"), np.random.RandomState(1)
    won = 0.0
    for number in range(4):
        search = mcts.MCTSBot(
            game, 0.5, 100, PlayoutEvaluator(seed=number), random_state=random_state
        )
        bots = [search, UniformRandomBot(1, random_state)]
        won += evaluate_bots(game.new_initial_state(), bots, random_state)[0] > 0
    assert won >= 3, won
    bots = [AgentBot("planner", 0, 1), UniformRandomBot(1, random_state)]
    assert evaluate_bots(game.new_initial_state(), bots, random_state) == [1.0, -1.0]
    state = game.new_initial_state()
    while state.move_number() < 40 or state.is_chance_node():
        state.apply_action(random_state.choice(state.legal_actions()))
    evaluator = pyspiel.RandomRolloutEvaluator(1, 1)
    compiled = pyspiel.MCTSBot(
        game, evaluator, 0.5, 20, 1000, False, 1, False, pyspiel.ChildSelectionPolicy.UCT
    )
    # `compiled.step` crashes with OpenSpiel's own Python games too: it lets go of Python's lock.
    assert compiled.mcts_search(state).best_child().action in state.legal_actions()
    return {"MCTS": f"Python's beats random {won:.0f}-{4 - won:.0f}, C++'s plays"}


def speed() -> dict[str, str]:
    """Random play by the shortest loop, and clones."""
    words = []
    for players in (2, 3, 4):
        game = pyspiel.load_game(f"carolus_magnus(players={players})")
        rates = []
        for _ in range(4):
            decisions, started = 0, time.process_time()
            while (elapsed := time.process_time() - started) < 1:
                state = game.new_initial_state()
                while not state.is_terminal():
                    if state.is_chance_node():
                        outcomes, chances = zip(*state.chance_outcomes(), strict=True)
                        state.apply_action(random.choices(outcomes, chances)[0])
                    else:
                        legal = state.legal_actions()
                        state.apply_action(legal[int(random.random() * len(legal))])
                        decisions += 1
            rates.append(decisions / elapsed)
        words.append(f"{np.median(rates[1:]) / 1000:.0f} k")
    return {"decisions a second, random play of 2, 3, 4": ", ".join(words)}


# ------------------------------------------------------------------------------------ learners


class OneSeat(rl_environment.Environment):
    """Seat 0 learns, seat 1 plays at random: OpenSpiel's PPO is for one learner."""

    def reset(self) -> Any:
        self._should_reset = False
        self._state = self._game.new_initial_state()
        return self._to_learner()

    def step(self, actions: list[int]) -> Any:
        if self._should_reset:
            return self.reset()
        self._state.apply_action(actions[0])
        return self._to_learner()

    def _to_learner(self) -> Any:
        state = self._state
        while not state.is_terminal() and state.current_player() != 0:
            if state.is_chance_node():
                self._sample_external_events()
            else:
                state.apply_action(random.choice(state.legal_actions()))
        return self.get_time_step()


def ppo(batches: int = 20) -> dict[str, str]:
    """OpenSpiel's PPO learns against random play; what it learnt plays in ``evaluate``."""
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002  PPO shuffles by it
    torch.manual_seed(1)
    torch.set_num_threads(1)
    count, steps = 16, 128
    environments = SyncVectorEnv(
        [
            OneSeat("carolus_magnus", chance_event_sampler=rl_environment.ChanceEventSampler(seed))
            for seed in range(count)
        ]
    )
    learner = PPO(
        input_shape=(environments.observation_spec()["info_state"][0],),
        num_actions=95,
        num_players=2,
        num_envs=count,
        steps_per_batch=steps,
        learning_rate=1e-3,
        gamma=0.998,
        agent_fn=PPOAgent,
    )
    seen, ended = environments.reset(), []
    for batch in range(batches):
        for _ in range(steps):
            outputs = learner.step(seen)
            for one, output in zip(seen, outputs, strict=True):
                assert output.action in one.observations["legal_actions"][0], "masks"
            seen, rewards, done, _ = environments.step(outputs, reset_if_done=True)
            learner.post_step([reward[0] for reward in rewards], done)
            ended += [reward[0] for reward, over in zip(rewards, done, strict=True) if over]
        learner.learn(seen)
        if batch % 5 == 4:
            last = ended[-200:]
            print(f"  batch {batch + 1}: mean return {np.mean(last):+.2f} of {len(last)} games")
    torch.save(learner.network.state_dict(), "ppo.pt")
    Path("my_bot.py").write_text(MY_BOT)
    rate = evaluated("my_bot.py:Trained", "random", 100)
    assert rate > 0.7, rate
    decisions = batches * count * steps
    return {
        "masks reach the policy": "ok",
        "trains": f"PPO, {decisions:,} decisions against random",
        "plays in evaluate": f"{100 * rate:.0f} % of 100 games against random",
    }


def alpha_zero() -> dict[str, str]:
    """OpenSpiel's AlphaZero plays and learns in processes of its own, from the late position."""
    from open_spiel.python.algorithms.alpha_zero import alpha_zero as learner

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        game = pyspiel.load_game("carolus_magnus", {"position": LATE})
        config = learner.Config(
            game=str(game),
            path=folder,
            learning_rate=1e-3,
            weight_decay=1e-5,
            decouple_weight_decay=False,
            train_batch_size=64,
            replay_buffer_size=256,
            replay_buffer_reuse=4,
            max_steps=5,
            checkpoint_freq=5,
            actors=1,
            evaluators=0,
            evaluation_window=10,
            eval_levels=2,
            uct_c=1.0,
            max_simulations=8,
            policy_alpha=0.5,
            policy_epsilon=0.25,
            temperature=1,
            temperature_drop=20,
            nn_model="mlp",
            nn_width=64,
            nn_depth=2,
            observation_shape=None,
            output_size=None,
            verbose=False,
            quiet=True,
            nn_api_version="linen",
        )
        learner.alpha_zero(config)
        log = [json.loads(line) for line in Path(folder, "learner.jsonl").read_text().splitlines()]
    losses = [row["loss"]["sum"] for row in log]
    assert len(log) == 5 and np.isfinite(losses).all(), losses
    return {
        "AlphaZero": f"{log[-1]['total_trajectories']} games of the late position, "
        f"5 steps of learning"
    }


if __name__ == "__main__":
    main()
