"""Pictures of a report: python examples/screenshots.py report.html FOLDER

The first screen, the leaderboard and an analysis, each on a desktop, on a phone and in the dark:
FOLDER/first-desktop.png and so on. Needs playwright and an installed chromium; nothing is downloaded.
"""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

SCREENS = {
    "desktop": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "device_scale_factor": 2},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}
# name -> what is on top
SHOTS = {"first": "header", "leaderboard": "#leaderboard", "analysis": "section[id^=analysis]"}


def main(file: Path, folder: Path) -> None:
    """Write NAME-SCREEN.png for every shot; a report without an analysis has none of it."""
    named = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    chromium = os.environ.get("NEARKIN_CHROMIUM") or next(filter(None, named), None)
    if chromium is None:
        sys.exit("no chromium found: install it, as in apt-get install chromium, or set NEARKIN_CHROMIUM=PATH")
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for screen, looks in SCREENS.items():
            tab = browser.new_page(**looks)
            tab.set_default_timeout(120_000)
            tab.goto(file.resolve().as_uri())
            tab.wait_for_selector("html[data-ready]")
            for name, top in SHOTS.items():
                if tab.query_selector(top) is not None:
                    shot(tab, top, folder / f"{name}-{screen}.png")
            tab.close()
        browser.close()


def shot(tab: Page, top: str, path: Path) -> None:
    """What the screen shows when a place is at its top, with its charts drawn."""
    tab.evaluate("top => document.querySelector(top).scrollIntoView({behavior: 'instant'})", top)
    tab.wait_for_timeout(1500)
    tab.evaluate("top => document.querySelector(top).scrollIntoView({behavior: 'instant'})", top)  # charts have grown
    tab.wait_for_timeout(500)
    tab.screenshot(path=path)
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
