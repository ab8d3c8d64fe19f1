"""Let agents play each other: ``python evaluate.py --help``, docs/evaluation.md.

In a clone this is what ``carolus evaluate`` is where the package is installed.
"""

import sys

from carolus_env.commands import run

if __name__ == "__main__":
    sys.exit(run("evaluate", sys.argv[1:], "python evaluate.py"))
