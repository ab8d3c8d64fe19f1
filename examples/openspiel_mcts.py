"""OpenSpiel's tree search plays Carolus Magnus, in OpenSpiel and in this package's tournaments.

    python openspiel_mcts.py --games 10 --simulations 100      # in OpenSpiel, against random play
    carolus evaluate openspiel_mcts.py:Search greedy --games 40

The search is OpenSpiel's `MCTSBot` with a node for every roll. Its random rollouts are played by
the package's compiled playout: OpenSpiel's own loop in Python would take most of the time.
"""

from __future__ import annotations

import argparse

import numpy as np

from carolus_env.integrations.openspiel import AgentBot, BotAgent, PlayoutEvaluator

import pyspiel  # isort: skip
from open_spiel.python.algorithms.evaluate_bots import evaluate_bots  # isort: skip
from open_spiel.python.algorithms.mcts import MCTSBot  # isort: skip


def search(game: pyspiel.Game, seed: int, simulations: int = 100) -> MCTSBot:
    """Make OpenSpiel's search."""
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
        super().__init__(lambda game, seat, seed: search(game, seed))


def main() -> None:
    """Play games against random play, in OpenSpiel."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--games", type=int, default=4)
    parser.add_argument("--simulations", type=int, default=50, help="of a decision")
    options = parser.parse_args()
    game = pyspiel.load_game("carolus_magnus(players=2)")
    for seed in range(options.games):
        bots = [search(game, seed, options.simulations), AgentBot("random", 1, seed)]
        returns = evaluate_bots(game.new_initial_state(), bots, np.random.RandomState(seed))
        print(f"game {seed + 1}: returns {returns}", flush=True)


if __name__ == "__main__":
    main()
