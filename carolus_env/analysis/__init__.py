"""Instruments that judge play: rollouts, the suite of positions, sequential tests.

``values`` fixed value functions; ``candidates`` the choices of a position; ``sampling`` games
played on from positions; ``rollout`` what each choice is worth; ``suite`` decisions that were
rolled out, by which an agent's loss is measured; ``sequential`` tests that stop by themselves.

    python -m carolus_env.analysis POSITION        # roll a position out
"""
