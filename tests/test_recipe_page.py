"""The table of docs/recipe.md is what its recorded lines say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_says_what_its_lines_say():
    words = [sys.executable, "examples/recipe_table.py", "--check"]
    check = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr
