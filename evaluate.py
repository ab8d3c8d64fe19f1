"""Let agents play each other, as ``carolus evaluate`` does: docs/evaluation.md."""

import sys

from carolus_env.commands import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
