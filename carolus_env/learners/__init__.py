"""Training by self-play: PPO, a league of opponents, resumable runs. Needs the extra ``train``."""
