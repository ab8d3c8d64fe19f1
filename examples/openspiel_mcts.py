"""OpenSpiel's tree search plays Carolus Magnus, in OpenSpiel and in this package's tournaments.

    pip install open_spiel==2.0.2
    python examples/openspiel_mcts.py --games 10 --simulations 100
    python evaluate.py examples/openspiel_mcts.py:Search greedy --games 40

The search is OpenSpiel's `MCTSBot` with a node for every roll. Its random rollouts are played by
the package's compiled playout: OpenSpiel's own loop in Python would take most of the time.
"""

from __future__ import annotations

import argparse

import numpy as np

import carolus_env.integrations.openspiel  # noqa: F401  registers the game
from carolus_env.integrations.openspiel_bots import AgentBot, BotAgent, PlayoutEvaluator

import pyspiel  # isort: skip
from open_spiel.python.algorithms.evaluate_bots import evaluate_bots  # isort: skip
from open_spiel.python.algorithms.mcts import MCTSBot  # isort: skip


def search(game: pyspiel.Game, seed: int, simulations: int) -> MCTSBot:
    """OpenSpiel's search."""
    return MCTSBot(
        game,
        uct_c=0.5,  # payoffs are from -1 to 1
        max_simulations=simulations,
        evaluator=PlayoutEvaluator(seed=seed),
        random_state=np.random.RandomState(seed),
    )


class Search(BotAgent):
    """The agent ``openspiel_mcts.py:Search``."""

    def __init__(self) -> None:
        super().__init__(lambda game, seat, seed: search(game, seed, 100))


def main() -> None:
    """Play games against an agent of this package, in OpenSpiel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--games", type=int, default=4)
    parser.add_argument("--simulations", type=int, default=50, help="of a decision")
    parser.add_argument("--opponent", default="random", help="its spec, in seat 1")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    game = pyspiel.load_game("carolus_magnus(players=2)")
    random_state, returns = np.random.RandomState(options.seed), np.zeros(2)
    for number in range(options.games):
        seed = options.seed + number
        bots = [search(game, seed, options.simulations), AgentBot(options.opponent, 1, seed)]
        found = evaluate_bots(game.new_initial_state(), bots, random_state)
        returns += found
        print(f"game {number + 1}: returns {found}", flush=True)
    search_mean, other_mean = returns / options.games
    print(f"mean: MCTSBot {search_mean:+.2f}, {options.opponent} {other_mean:+.2f}")


if __name__ == "__main__":
    main()
