"""Pictures of a report for the README: python examples/screenshots.py report.html docs/images

Needs playwright and an installed chromium; nothing is downloaded.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SHOTS = {"report": (1200, 900, "light")}  # name -> width, height, colour scheme


def main(page: Path, folder: Path) -> None:
    """Write NAME.png for every shot."""
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser_path is None:
        sys.exit("no chromium found: install it, as in apt-get install chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for name, (width, height, scheme) in SHOTS.items():
            tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            tab.goto(page.resolve().as_uri())
            tab.wait_for_timeout(1500)
            tab.screenshot(path=folder / f"{name}.png")
            tab.close()
            print(folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
