# A bot author: a bot of two files, a tournament that is killed and resumed, one that is started
# twice by mistake, and a crash in the middle. $WHEEL is the built wheel; the folder is empty.
set -eux
python3 -m venv venv
. venv/bin/activate
pip install --quiet "$WHEEL"
pip install --quiet 'carolus-env[evaluation]'    # as the command advises

mkdir bots
cat > bots/my_bot.py <<'PYTHON'
import numpy as np

import carolus_env as ce
from helper import prefer


class MyBot(ce.Agent):
    def act(self, states, generators):
        return np.argmax(ce.legal_masks(states) * prefer(), axis=1)
PYTHON
cat > bots/helper.py <<'PYTHON'
import numpy as np


def prefer():
    return np.linspace(1, 2, 95)
PYTHON

carolus evaluate bots/my_bot.py:MyBot random --games 40
(cd bots && carolus evaluate my_bot.py:MyBot random --games 4)

# Killed while it plays, and started twice by mistake; resumed, it has the table of an uninterrupted one.
cup() { carolus evaluate bots/my_bot.py:MyBot mcts:sims=100 --games 1000 --out "$@"; }
carolus evaluate bots/my_bot.py:MyBot mcts:sims=100 --games 1000 --out cup > killed.txt &
until [ "$(cat cup/games.jsonl 2> /dev/null | wc -l)" -ge 2 ]; do sleep 0.1; done
if cup cup --resume 2> second.txt; then exit 1; fi
grep "process $!" second.txt
kill -9 $!
wait $! || true
cup cup --resume > resumed.txt
cup other > whole.txt
cmp <(grep " : .* 1000" whole.txt) <(grep " : .* 1000" resumed.txt)

# A crash in the middle is named, with the line, and what was played is kept.
cat >> bots/my_bot.py <<'PYTHON'


class Crashes(MyBot):
    def act(self, states, generators):
        if states["round"].max() > 5:
            raise KeyError("lost")
        return super().act(states, generators)
PYTHON
if carolus evaluate bots/my_bot.py:Crashes random --games 40 2> crash.txt; then exit 1; fi
grep "my_bot.py:Crashes" crash.txt
grep "my_bot.py, line 15" crash.txt
