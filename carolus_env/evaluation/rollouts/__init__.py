"""Positions judged by play: rollouts of every choice, with the same dice.

``values`` fixed value functions; ``candidates`` the choices of a position; ``sampling`` games
played on from positions; ``rollout`` what each choice is worth.

    python -m carolus_env.evaluation.rollouts POSITION        # roll a position out
"""
