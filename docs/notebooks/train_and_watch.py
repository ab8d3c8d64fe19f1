# %% [markdown]
# # Train and watch
#
# PPO by self-play on a tiny budget, its learning curve, a match, and a game to look through. The
# learner is that of `python train.py` ([training](../training.md)), with fewer decisions. It needs
# the extra `train`: `pip install 'carolus-env[train]'`.

# %%
import tempfile
from pathlib import Path

import carolus_env as ce
from carolus_env import arena
from carolus_env.drawing import show
from carolus_env.learners.turns.config import TurnConfig
from carolus_env.learners.turns.run import TurnRun
from carolus_env.records import make_record

# %% [markdown]
# ## Train
#
# A decision is a disc, a crown or a whole turn. `python train.py` learns from 2.4 million; here are
# forty thousand, on one core. A run writes its models, its curve and a checkpoint into a folder.

# %%
folder = Path(tempfile.mkdtemp()) / "tiny"
folder.mkdir()
config = TurnConfig(
    players=2, steps=40_000, games=64, rollout=32, workers=1, curve_every=10_000, eval_games=8
)
run = TurnRun(config, folder)
run.train()
sorted(path.name for path in folder.iterdir())

# %%
print(run.curve.__dict__.keys(), run.curve.evaluation, list(folder.iterdir()))
