"""Users' mornings: the scripts in tests/mornings, from the wheel, in an empty environment.

They read like what a user would type, and take minutes: packages are installed.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent / "mornings").glob("*.sh"))
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_morning_goes_as_the_user_expects(script, tmp_path):
    root = Path(__file__).parent.parent
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(root)]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL"))}
    environment |= {"WHEEL": str(wheel), "PIP_CONSTRAINT": str(root / "constraints.txt")}
    subprocess.run(["bash", str(script)], cwd=empty, env=environment, check=True)
