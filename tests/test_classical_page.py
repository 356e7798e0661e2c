"""The tables of docs/classical.md are what its recorded values say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_says_what_its_values_say():
    words = [sys.executable, "bench/classical.py", "--check"]
    check = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr
