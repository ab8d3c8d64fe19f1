"""TD(lambda) of a value network: `learning` has the kernels, `crew` the workers, `run` is a run."""
