# %% [markdown]
# # Train and watch
#
# PPO by self-play on a tiny budget, its learning curve, a match, and a game to look through. The
# learner is that of `python train.py` ([training](../training.md)), with fewer decisions. It needs
# the extra `train` ([installing](../installing.md)).

# %%
import tempfile
from pathlib import Path

import carolus_env as ce
from carolus_env import evaluation
from carolus_env.drawing import show
from carolus_env.learners.ppo import PpoConfig
from carolus_env.learners.run import Run

# %% [markdown]
# ## Train
#
# A decision is a disc, a crown or a whole turn. `python train.py` learns from 3.6 million; here are
# sixty thousand, on one core. A run writes its models, its curve and a checkpoint to a folder.

# %%
folder = Path(tempfile.mkdtemp())
rules = ce.Rules(players=2)
config = PpoConfig(
    rules=rules,
    steps=60_000,
    workers=1,
    curve_every=20_000,
    eval_every=25_000,
    eval_games=8,
    final_games=60,
)
run = Run(config, folder)
untrained = run.agent(run.snapshot())
run.train()
run.finish()
sorted(path.name for path in folder.iterdir())

# %% [markdown]
# The curve: while it learns and at the end the agent plays `planner`, and is placed on
# [the ladder](../evaluation.md#the-ladder) by games against rungs near it. Eight games a rung say
# little, as the intervals do; at the end there are more.

# %%
for point in run.curve.evaluation:
    print(f"{point['decisions']:>7,} decisions: Elo {point['elo']:6.0f}", end=" ")
    print(f"({point['low']:.0f} to {point['high']:.0f}), {point['cpu_seconds']:.0f} CPU seconds")

# %% [markdown]
# ## Play
#
# What the run saved is an agent like any other, named by its path. `best` is the last network that
# was not clearly weaker than one before. By whole turns even an untrained policy beats `greedy`, so
# the opponent here is a `planner` that makes a random move in five.

# %%
mine = ce.make(f"ppo:{folder / 'best'}")
for name, agent in (("untrained", untrained), ("trained", mine)):
    result = evaluation.play_pairing((agent, ce.make("planner:errors=0.2")), rules, 100, seed=1)
    low, high = result.ci95[0]
    print(f"{name}: {100 * result.win_rate[0]:.0f} % ({100 * low:.0f} - {100 * high:.0f})")

# %% [markdown]
# ## Watch
#
# A game against that `planner`, decision by decision. It is recorded as it is played, and the film
# plays by itself. `carolus play` shows records in the browser: step through them there, with the
# agents' opinions ([viewer](../play.md#viewer)).

# %%
agents = mine, ce.make("planner:errors=0.2")
_, actions = evaluation.play_games([[0, 1]], agents, rules, seed=3)
record = evaluation.game_record(rules, seed=3, deal=0, actions=actions[0])
show(record, names=["trained", "planner"])

# %% [markdown]
# [Training](../training.md) has what more decisions give, and the learners there are. The same
# from the command line is `carolus train --steps 30000 --name tiny`.
