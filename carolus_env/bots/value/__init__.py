"""Bots that evaluate the position after a turn by a network."""
