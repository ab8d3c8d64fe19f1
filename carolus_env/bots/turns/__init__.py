"""``ppo`` over whole turns: a policy that scores the positions after each candidate."""
