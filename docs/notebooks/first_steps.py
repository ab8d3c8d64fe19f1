# %% [markdown]
# # First steps
#
# A game as a board, an environment with masks, a batch of a thousand games, and a match of two
# agents: each in a few lines. It needs no extra.

# %%
import random

import carolus_env as ce
from carolus_env import carolus_magnus_v0, evaluation

# %% [markdown]
# ## A game
#
# Fifteen territories in a circle, five clans of paladins, and the Emperor. The players play a disc
# each, place paladins in their courts or on regions, and move the Emperor; where he stops, the
# strongest team builds a castle. [The rules](../rules.md) are short. A seed makes the set-up and
# all dice, and a game shows its board:

# %%
game = ce.Game(ce.Rules(players=2), seed=296, history=True)
game

# %% [markdown]
# What is legal now, as text in the [notation](../notation.md) and as action numbers:

# %%
game.legal_moves, game.legal_actions

# %% [markdown]
# Both ways play: a text, which may hold several moves, or a number. Player 1 plays disc 2, player 0
# disc 3; then player 1, who acts first, places three paladins. The Emperor's move is due.

# %%
game.play("d2, d3, 2 red>court, blue>1")
print(game)
game.legal_moves

# %%
game.play(game.legal_actions[0])
game.undo()  # takes the action back
rng = random.Random(1)
while not game.over:
    game.play(rng.choice(game.legal_actions))
game.outcome

# %% [markdown]
# The outcome holds the payoff of each seat: they sum to 0, and nothing is paid before the end.
#
# ## An environment
#
# [PettingZoo](../environments.md) with the legal actions in the observation. A player decides
# several times in a row, so `agent_selection` stays where it is meanwhile.

# %%
env = carolus_magnus_v0.env(players=3)
env.reset(seed=42)
decisions = 0
paid = dict.fromkeys(env.agents, 0.0)
for agent in env.agent_iter():
    observation, reward, terminated, truncated, info = env.last()
    paid[agent] += reward
    if terminated or truncated:
        action = None
    else:
        action = env.action_space(agent).sample(observation["action_mask"])
        decisions += 1
    env.step(action)
print(decisions, "decisions,", observation["observation"].shape, observation["action_mask"].shape)
paid

# %% [markdown]
# ## A thousand games
#
# A `GameBatch` plays a decision in every game with one call, and begins a new game where one has
# ended. The buffers of a turn are what a learner needs: observations, masks, rewards, ends.

# %%
batch = ce.GameBatch(ce.Rules(players=2), 1000, seed=1, observation="uint8")
ended = 0
turn = batch.turn()
for _ in range(400):
    actions = batch.sample()  # a policy would use turn.observations and turn.masks
    turn = batch.step(actions)
    ended += int(turn.terminated.sum())
print(f"{ended} games ended; observations {turn.observations.shape}, masks {turn.masks.shape}")

# %% [markdown]
# ## Two agents
#
# Agents are named by a spec, [all of them](../bots.md) ship with the package. In a pairing every
# deal (set-up and dice) is played in every seating, so that neither luck nor seats favour anyone.

# %%
pair = ce.make("greedy"), ce.make("random")
result = evaluation.play_pairing(pair, ce.Rules(players=2), 200, seed=1)
low, high = result.ci95[0]
print(f"greedy wins {100 * result.win_rate[0]:.1f} % ({100 * low:.1f} - {100 * high:.1f})")

# %% [markdown]
# Next: [train an agent and watch it](train_and_watch.py), [write a search](write_a_search.py),
# [write a bot](../write_a_bot.md), or [learn with code of your own](../own_loop.md).
