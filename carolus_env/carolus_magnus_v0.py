"""PettingZoo's module of the environment; its documentation is that of `envs.aec`."""

from carolus_env.envs import aec
from carolus_env.envs.aec import CarolusParallelEnv as parallel_env  # noqa: N813
from carolus_env.envs.aec import env, raw_env

__doc__ = aec.__doc__

__all__ = ["env", "parallel_env", "raw_env"]
