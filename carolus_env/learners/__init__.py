"""Training: PPO over whole turns, TD(lambda) of a value network, MaskablePPO of sb3-contrib.

Needs the extra ``train``; only `sb3` needs PyTorch and Stable-Baselines3.

`turns` and `value` learn by self-play: `training` is a run in its folder, `compiled` what both
share, `options` and `reading` are their options, and `curve`, `checkpoint`, `scalars` and
`provenance` are parts of a run. `sb3` is one file to copy.
"""
