"""PPO over whole turns: `rollouts` and `gradients` are kernels, `crew` has workers, `run` a run."""
