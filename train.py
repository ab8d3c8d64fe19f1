"""Train an agent by self-play: ``python train.py --help``, docs/training.md.

In a clone this is what ``carolus train`` is where the package is installed.
"""

import sys

from carolus_env.commands import run

if __name__ == "__main__":
    sys.exit(run("train", sys.argv[1:], "python train.py"))
