# %% [markdown]
# # Write a search
#
# A search needs three things of a game: the legal actions, copies that can be played on, and the
# dice as something to reason about. Here is a Monte Carlo search that beats `greedy`, and then one
# step of expectation over all outcomes of a roll. It needs no extra.

# %%
import numpy as np

import carolus_env as ce
from carolus_env import evaluation
from carolus_env.engine.chance import random_bits

# %% [markdown]
# ## Monte Carlo
#
# For every legal action: play it on a copy, play the rest of the game at random some times, and
# take the action with the best mean payoff. Actions of all games are rows of one batch, so one call
# of `playout` answers them all.
#
# Two traps. The generator in a state rolls the real dice, so a search that steps a copy as it is
# would look into the future: `roll=False` stops before the dice, and `playout` rolls them from a
# stream of its own. And the payoff is a vector: the search maximises the entry of the seat that
# decides, whatever the number of players. There is no sign to flip.


# %%
class MonteCarlo(ce.Agent):
    """The legal action with the best mean payoff over random playouts."""

    def __init__(self, repeats=10):
        self.repeats = repeats

    def values(self, states, generators):
        """Return ``(N, 95)`` mean payoffs of the seat to move; -inf where an action is
        not legal.
        """
        games, actions = np.nonzero(ce.legal_masks(states))
        after = ce.pick(states, games)
        ce.step(after, actions, roll=False)
        seeds = random_bits(generators)[games]  # the same dice for all actions of a game
        played = ce.playout(after, ce.new_streams(seeds, len(seeds)), repeats=self.repeats)
        values = np.full((len(states), ce.ACTIONS), -np.inf)
        values[games, actions] = played.returns[np.arange(len(games)), states["player"][games]]
        return values

    def act(self, states, generators):
        return self.values(states, generators).argmax(axis=1)


# %% [markdown]
# What it thinks of the moves of a position:

# %%
game = ce.Game(ce.Rules(players=2), seed=296)
game.play("d2, d3, 2 red>court, blue>1")
values = MonteCarlo(repeats=2000).values(game.states, ce.new_streams(1, 1))[0]
for action, text in zip(game.legal_actions, game.legal_moves, strict=True):
    print(f"{values[action]:+.2f}  {text}")
game

# %% [markdown]
# And how strong it is, with ten playouts for each action:

# %%
rules = ce.Rules(players=2)
for other, games in (("random", 40), ("greedy", 40)):
    result = evaluation.play_pairing((MonteCarlo(10), ce.make(other)), rules, games, seed=1)
    low, high = result.ci95[0]
    print(f"{100 * result.win_rate[0]:.0f} % ({100 * low:.0f} - {100 * high:.0f}) against {other}")

# %% [markdown]
# ## Explicit chance
#
# Where dice are due, a game can wait for them: `dice_due` says how many, `chance_outcomes` lists
# what they can show with exact probabilities, and `apply_roll` gives the games after each outcome.
# So an expectation is a dot product. Here the set-up roll of the first player, seven dice: the mean
# payoff of random play after each of its 792 outcomes, and what the roll is worth before it falls.

# %%
start = ce.new_games(rules, seed=1, roll=False)
outcomes = ce.chance_outcomes(int(start["dice_due"][0]))
after = start.repeat(len(outcomes.faces))
ce.apply_roll(after, outcomes.faces)
returns = ce.playout(after, ce.new_streams(1, len(after)), repeats=20).returns
print(f"{len(after)} outcomes, probabilities sum to {outcomes.probabilities.sum():.3f}")
print("expected payoffs:", (outcomes.probabilities @ returns).round(3))

# %% [markdown]
# The package's own searches are trees over whole turns with dice in between:
# [`mcts`](../bots.md#mcts) and [`search`](../bots.md#search). `SearchBot(value)` runs the tree
# with [a network of yours](../bots.md#your-own-network).
