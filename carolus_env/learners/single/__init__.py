"""PPO over single decisions with Stable-Baselines3, against a league; `export` writes ONNX."""
