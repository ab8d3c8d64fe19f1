"""Instruments that judge play: rollouts, luck, the suite of positions, tests and tables.

``values`` fixed value functions; ``luck`` what dice were worth, by exact chance; ``candidates``
the choices of a position; ``sampling`` games played on from positions; ``rollout`` what each choice
is worth; ``suite`` decisions that were rolled out, by which an agent's loss is measured;
``sequential`` tests that stop by themselves; ``payoff_table`` what one rating cannot say; ``runs``
intervals over several training runs.

    python -m carolus_env.analysis POSITION        # roll a position out
"""
