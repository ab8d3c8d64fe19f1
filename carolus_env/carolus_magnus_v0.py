"""PettingZoo's module of the environment; its documentation is that of `envs.aec`."""

from carolus_env.envs import aec
from carolus_env.envs.parallel import CarolusParallelEnv

__doc__ = aec.__doc__
env = aec.env
raw_env = aec.raw_env
parallel_env = CarolusParallelEnv

__all__ = ["env", "parallel_env", "raw_env"]
