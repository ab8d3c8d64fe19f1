"""Training by self-play: PPO against a league, TD(lambda) of a value network, resumable runs.

Needs the extra ``train``; the value network does without PyTorch and Stable-Baselines3.

Whatever learns, `training` is a run in its folder, `options` and `reading` are its options, and
`measures`, `curve`, `checkpoint`, `scalars` and `provenance` are its parts. PPO is `run`, `config`,
`ppo`, `policy`, `buffer`, `player` and `league`; the value network is `value`. `export` writes
ONNX.
"""
