"""Learning by self-play: PPO, its league, runs and their folders. Needs the extra ``train``."""
