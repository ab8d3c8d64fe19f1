"""``search`` and ``mcts``: looking ahead in a tree, by a value network and without one."""
