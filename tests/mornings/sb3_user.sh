# A user of Stable-Baselines3: train twice with a seed, compare, evaluate, record a video, load.
# $WHEEL is the built wheel; the folder is empty.
set -eux
python3 -m venv venv
. venv/bin/activate
pip install --quiet "$WHEEL[sb3,render]" imageio

cat > mine.py <<'PYTHON'
import sys

from sb3_contrib import MaskablePPO

from carolus_env import Rules
from carolus_env.envs.sb3 import CarolusVecEnv

env = CarolusVecEnv(Rules(players=2), 16, "greedy", turns=True, seed=1)
model = MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=128, seed=1)
model.learn(1_024)
model.save(sys.argv[1])
PYTHON
python mine.py first
python mine.py second

cat > compare.py <<'PYTHON'
import torch
from sb3_contrib import MaskablePPO

first, second = (MaskablePPO.load(name).policy.state_dict() for name in ("first", "second"))
assert all(torch.equal(first[name], second[name]) for name in first), "the same seed, other weights"
PYTHON
python compare.py

carolus train --learner sb3 --steps 2048 --envs 16 --seed 3 --name a --final-games 8 --eval-games 8
carolus train --learner sb3 --steps 2048 --envs 16 --seed 3 --name b --final-games 8 --eval-games 8
cat > same.py <<'PYTHON'
from safetensors.numpy import load_file

first, second = (load_file(f"runs/{name}/final.safetensors") for name in "ab")
assert all((first[name] == second[name]).all() for name in first), "the same seed, other weights"
PYTHON
python same.py
carolus evaluate decisions:runs/a/best random --games 20

cat > video.py <<'PYTHON'
import gymnasium
import imageio

from sb3_contrib import MaskablePPO

model = MaskablePPO.load("first")
env = gymnasium.make(
    "carolus_env:CarolusMagnusTurns-v0", opponents="greedy", render_mode="rgb_array"
)
observation, info = env.reset(seed=7)
frames, over = [env.render()], False
while not over:
    action, _ = model.predict(observation, action_masks=info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(int(action))
    frames.append(env.render())
    over = terminated or truncated
imageio.mimsave("game.gif", frames[:20])
print("reward", reward)
PYTHON
python video.py
test -s game.gif
