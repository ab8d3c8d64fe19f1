"""Ways into the engine: PettingZoo (``aec``), Stable-Baselines3 (``sb3``), and what they share."""
