"""PPO over single decisions with Stable-Baselines3; `export` writes ONNX."""
