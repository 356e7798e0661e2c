"""The page in a real browser: no error, no request, clicks do what they say, in light, dark and on a phone."""

import csv
import io
import itertools

import pytest
from pages.browser import chromium, draw_all, opened  # noqa: F401
from pages.stored import plain_study
from pages.test_report_values import data_of, page_of

FORMS = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    root = tmp_path_factory.mktemp("browser") / "runs"
    plain_study(root, curve=True)
    path = root.parent / "report.html"
    path.write_text(page_of(["plain"], root), encoding="utf-8")
    return path


def rows(page, part):
    return [line.inner_text().split("\t") for line in page.query_selector_all(f"#{part} tbody tr") if line.is_visible()]


@pytest.fixture(scope="module", params=FORMS)
def view(request, chromium, file):  # noqa: F811
    """An open page with every figure drawn, and what went wrong in it; one for all tests: it takes seconds to load."""
    with opened(chromium, file, **FORMS[request.param]) as (page, wrong):
        draw_all(page)
        yield page, wrong, request.param


def test_every_figure_is_drawn_and_nothing_is_asked_of_the_network(view, file):
    page, wrong, form = view
    charts = [part for part in data_of(file.read_text()).values() if "figure" in part]
    assert len(page.query_selector_all(".plot.js-plotly-plot")) == len(charts) >= 6
    width, shown = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width == shown == FORMS[form]["viewport"]["width"]
    assert page.evaluate("document.querySelectorAll('img:not([alt])').length") == 0
    levels = [int(h.evaluate("e => e.tagName")[1]) for h in page.query_selector_all("h1, h2, h3")]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert wrong == []


def test_a_click_sorts_and_a_menu_filters(view, file):
    page, wrong, _ = view
    table = data_of(file.read_text())["leaderboard-grid"]["table"]
    name, value, kind = (table["header"].index(each) for each in ("method", "map_at_r", "kind"))
    heads = [h.inner_text().strip() for h in page.query_selector_all("#leaderboard-grid th")]
    method = heads.index("method")
    button = page.query_selector_all("#leaderboard-grid th button")[heads.index("MAP@R %")]
    button.click()
    down = [row[name] for row in sorted(table["rows"], key=lambda row: -row[value])]
    assert [row[method] for row in rows(page, "leaderboard-grid")] == down
    button.focus()
    page.keyboard.press("Enter")  # the keyboard does what the mouse does
    assert [row[method] for row in rows(page, "leaderboard-grid")] == down[::-1]
    assert page.get_attribute("#leaderboard-grid th[aria-sort]", "aria-sort") == "ascending"
    page.select_option("#leaderboard-grid .filters select", "classification")
    kept = [row[name] for row in table["rows"] if row[kind] == "classification"]
    assert kept
    assert sorted(row[method] for row in rows(page, "leaderboard-grid")) == sorted(kept)
    drawn = page.evaluate("document.querySelector('#leaderboard-chart .plot').data.flatMap(trace => trace.y)")
    assert len(drawn) == len(kept)  # charts show what the menus choose
    assert len(page.evaluate("document.querySelector('#first-means .plot').data.flatMap(trace => trace.y)")) > len(kept)
    page.select_option("#leaderboard-grid .filters select", "")
    drawn = page.evaluate("document.querySelector('#leaderboard-chart .plot').data.flatMap(trace => trace.y)")
    assert len(drawn) == len(table["rows"])
    assert wrong == []


def test_downloads_hold_the_tables(view, file):
    page, wrong, _ = view
    data = data_of(file.read_text())
    buttons = page.query_selector_all("button.download")
    assert {b.get_attribute("data-table") for b in buttons} == {id for id, part in data.items() if "table" in part}
    with page.expect_download() as waiting:
        page.click("#leaderboard-grid button.download")
    content = waiting.value.path().read_text(encoding="utf-8-sig")
    found = list(csv.reader(io.StringIO(content)))
    table = data["leaderboard-grid"]["table"]
    assert found[0] == table["header"]
    assert len(found) == 1 + len(table["rows"])
    for line, row in zip(found[1:], table["rows"], strict=True):
        for text, value in zip(line, row, strict=True):
            if isinstance(value, float):
                assert float(text) == value
    methods = [line[table["header"].index("method")] for line in found[1:]]
    assert "'=cmd|x" in methods
    assert "<b>margin</b>" in methods
    assert wrong == []


def test_figures_follow_day_and_night(view):
    page, wrong, _ = view
    paper = {"light": "rgb(253, 252, 250)", "dark": "rgb(22, 23, 26)"}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper[scheme]
        drawn = "colour => document.querySelector('.plot .main-svg').style.background === colour"
        page.wait_for_function(drawn, arg=paper[scheme])
    assert wrong == []


def test_without_javascript_words_and_tables_stay(chromium, file):  # noqa: F811
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert "<b>margin</b>" in page.inner_text("#leaderboard-grid table")
    assert page.is_visible("#leaderboard-grid table")
    assert not page.is_visible("button.download")
    page.click("#time details.numbers summary")
    assert "triplet" in page.inner_text("#time details.numbers")
    context.close()
