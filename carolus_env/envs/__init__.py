"""Environments: PettingZoo (``aec``), Gymnasium (``gym``), Stable-Baselines3 (``sb3``)."""
