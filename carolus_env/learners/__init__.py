"""Training by self-play: PPO over whole turns or single decisions, TD(lambda) of a value network.

Needs the extra ``train``; only PPO over single decisions needs PyTorch and Stable-Baselines3.

What learns has a folder each: `turns`, `value`, `single`. Whatever learns, `training` is a run in
its folder, `compiled` what runs without PyTorch share, `options` and `reading` are its options, and
`curve`, `measures` (statistics of games), `checkpoint`, `scalars` and `provenance` are its parts.
`candidate_policy` is a policy for your own MaskablePPO on whole turns; `forward_policy` is what it
shares with that of `single`.
"""
