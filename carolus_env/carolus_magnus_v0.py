"""PettingZoo's module of the environment; its documentation is that of `envs.aec`."""

from carolus_env.envs import aec

__doc__ = aec.__doc__
env = aec.env
raw_env = aec.raw_env

__all__ = ["env", "raw_env"]
