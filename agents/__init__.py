"""What trains networks, and needs torch. How they play: `carolus_env.bots.policy`."""
