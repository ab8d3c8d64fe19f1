"""Train an agent by self-play, as ``carolus train`` does: docs/training.md."""

import sys

from carolus_env.commands import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
