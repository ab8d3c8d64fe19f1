from carolus_env.envs.aec import env, raw_env

__all__ = ["env", "raw_env"]
