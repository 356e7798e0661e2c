"""A real Chromium for tests of pages; they skip, saying so, where none is found, and fail where NEARKIN_BROWSER is
`required`, as it is where every change is tested."""

import os
import shutil
from contextlib import contextmanager

import pytest

FOUND = (
    os.environ.get("NEARKIN_CHROMIUM")
    or shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
)


@pytest.fixture(scope="module")
def chromium():
    """A running browser."""
    if FOUND is None:
        said = "no chromium is found; NEARKIN_CHROMIUM=PATH names it"
        pytest.fail(said) if os.environ.get("NEARKIN_BROWSER") == "required" else pytest.skip(said)
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=FOUND, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser, file, **options):
    """A page of a file that is ready, and what went wrong in it: messages of the console, errors, requests."""
    page = browser.new_page(**options)
    page.set_default_timeout(120_000)  # a loaded machine is no error of the page
    wrong = []
    page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith(("file:", "data:", "blob:")) else wrong.append(request.url),
    )
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    try:
        yield page, wrong
    finally:
        page.close()


def draw_all(page):
    """Bring every figure near, so that it is drawn."""
    for place in page.query_selector_all(".plot"):
        place.scroll_into_view_if_needed()
        page.wait_for_function("element => element.querySelector('.main-svg') !== null", arg=place)
