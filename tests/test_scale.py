"""docs/scale.md quotes what examples/scale.py prints."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_and_the_arithmetic_agree():
    printed = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "scale.py")], capture_output=True, text=True, check=True
    ).stdout
    page = (ROOT / "docs" / "scale.md").read_text()
    for table in printed.strip().split("\n\n"):
        assert table in page
    assert "| all | | | | | 14,400 |" in printed  # 10 losses, 3 networks, 3 data sets, 4, 10, 4


def test_one_cell_by_hand():
    sys.path.insert(0, str(ROOT / "examples"))
    import scale

    trained, embedded = 100 * 5864 * 3 / 4, 100 * 5864 / 4 + 5924
    assert abs(scale.hours("cub", "resnet50") - (trained + embedded / 3) / 800 / 3600) < 1e-9
