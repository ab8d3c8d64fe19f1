"""Replay game records and compare them with the engine: ``python -m carolus_env.replay FILE...``.

The name for users; the work is done in `carolus_env.records.replay`.
"""

import sys

from carolus_env.records.replay import Difference, main, replay, replayed

__all__ = ["Difference", "main", "replay", "replayed"]

if __name__ == "__main__":
    sys.exit(main())
