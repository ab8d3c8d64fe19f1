"""``python -m carolus_env``: the commands, where ``carolus`` is not on the path."""

import sys

from carolus_env.commands import main

if __name__ == "__main__":
    sys.exit(main())
