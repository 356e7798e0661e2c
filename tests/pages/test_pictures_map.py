"""The map: made once, stored, deterministic, and shown; in a browser it answers to pointer and keys."""

import json

import numpy as np
import pytest
from pages.browser import chromium, opened  # noqa: F401 a fixture
from pictured import clusters, pictured, write_run

import nearkin
from nearkin.pages import _layout, _maps, _still
from nearkin.pages._page import Page, render
from nearkin.pages._sprite import Sprite
from nearkin.pages._tested import Tested


def run_of(folder, **options):
    z, labels = clusters(**{"classes": 4, "each": 15, **options})
    return Tested.of(write_run(folder, z, labels), "best")


def counted(monkeypatch):
    calls = []
    original = _layout._tsne
    monkeypatch.setattr(_layout, "_tsne", lambda z: calls.append(len(z)) or original(z))
    return calls


def test_the_map_is_made_once_stored_and_read(tmp_path, monkeypatch):
    calls = counted(monkeypatch)
    tested = run_of(tmp_path)
    places, positions = _layout.embedding_map(tested)
    again_places, again = _layout.embedding_map(Tested.of(tested.run))
    assert calls == [60]
    assert np.array_equal(places, again_places)
    assert np.array_equal(positions, again)
    held = json.loads((tested.run.path / "map.json").read_text())["tsne"]
    assert held["rows"] == tested.rows[places].tolist()


def test_two_runs_with_equal_embeddings_have_the_same_map(tmp_path):
    first, second = (_layout.embedding_map(run_of(tmp_path / name))[1] for name in "ab")
    assert np.array_equal(first, second)
    assert positions_tell_classes(first, np.repeat(np.arange(4), 15))


def positions_tell_classes(positions, labels):
    """Most points have a neighbour of their own class."""
    apart = ((positions[:, None] - positions) ** 2).sum(-1)
    np.fill_diagonal(apart, np.inf)
    return (labels[apart.argmin(1)] == labels).mean() > 0.9


@pytest.mark.parametrize("what", ["embeddings", "labels", "number"])
def test_a_stale_map_is_not_used(tmp_path, monkeypatch, what):
    calls = counted(monkeypatch)
    tested = run_of(tmp_path)
    _layout.embedding_map(tested)
    if what == "embeddings":
        tested.z[0, 0] += 1e-3
    elif what == "labels":
        tested.labels[0] = "another"
    _layout.embedding_map(tested, most=50 if what == "number" else _layout.MOST)
    assert calls == [60, 50 if what == "number" else 60]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tsne": {"key": "x"}}'])
def test_a_damaged_map_is_made_again(tmp_path, monkeypatch, content):
    tested = run_of(tmp_path, each=6)
    (tested.run.path / "map.json").write_text(content)
    assert len(_layout.embedding_map(tested, "pca")[0]) == 24


def test_both_methods_are_kept_side_by_side(tmp_path, monkeypatch):
    calls = counted(monkeypatch)
    tested = run_of(tmp_path)
    tsne = _layout.embedding_map(tested)[1]
    pca = _layout.embedding_map(tested, "pca")[1]
    assert np.array_equal(_layout.embedding_map(tested)[1], tsne)
    assert np.array_equal(_layout.embedding_map(tested, "pca")[1], pca)
    assert calls == [60]


def test_pca_equals_the_eigenvectors_of_the_covariance(tmp_path):
    tested = run_of(tmp_path)
    z = tested.z.double().numpy()
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    _, vector = np.linalg.eigh(np.cov(z.T))
    axes = vector[:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), [0, 1]])
    expected = (z - z.mean(0)) @ axes
    expected = (expected - expected.min(0)) / np.ptp(expected, axis=0).max()
    assert _layout.embedding_map(tested, "pca")[1] == pytest.approx(expected, abs=1e-4)


def test_a_store_that_cannot_be_written_still_has_a_map(tmp_path, monkeypatch, capsys):
    tested = run_of(tmp_path, each=6)

    def refuse(*_):
        raise nearkin.NearkinError("cannot write")

    monkeypatch.setattr(type(tested.run), "write_json", refuse)
    assert len(_layout.embedding_map(tested, "pca")[0]) == 24
    assert "cannot be written" in capsys.readouterr().err


def test_an_unknown_method_names_the_choices(tmp_path):
    with pytest.raises(nearkin.NearkinError, match="choices: pca, tsne"):
        _layout.embedding_map(run_of(tmp_path), "umap")


@pytest.mark.parametrize(
    ("counts", "most"), [([50, 30, 20], 10), ([97, 1, 1, 1], 10), ([3, 3], 10), ([1] * 30, 12), ([5, 200, 1], 17)]
)
def test_a_sample_has_every_class_by_its_share(counts, most):
    labels = np.repeat([f"c{i}" for i in range(len(counts))], counts)
    kept = _layout.stratified(labels, most)
    assert len(kept) == len(set(kept.tolist())) == min(most, len(labels))
    assert np.array_equal(kept, _layout.stratified(labels, most))
    for i, n in enumerate(counts):
        taken = int((labels[kept] == f"c{i}").sum())
        wanted = n * most / len(labels)
        if len(counts) <= most:
            assert taken >= 1
        if len(labels) > most and wanted >= 1:
            assert abs(taken - wanted) < len(counts)


def test_the_section_has_every_point_and_its_words(tmp_path):
    tested, _ = pictured(tmp_path)
    sprite = Sprite()
    section = _maps.section(tested, sprite, "pca", pictures=24)
    points, drawn = section.parts[1:]
    assert "24 of the images have a picture" in section.parts[0].html()
    assert points.table.column("row") == tested.rows.tolist()
    assert points.table.column("class") == tested.labels.tolist()
    assert str(points.html()).count("<circle data-i") == 60
    assert sum(tile is not None for tile in points.data()["tiles"]) == len(sprite) == 24
    assert drawn.alt in str(drawn.html()).replace("&#39;", "'")
    on_map = [row["row"] for row in drawn.table.records() if row["where"] == "map"]
    assert len(set(on_map)) == len(on_map) > 4


def test_the_still_map_shows_pictures_where_they_lie_in_the_colour_of_their_class():
    rng = np.random.default_rng(0)
    positions, labels = rng.random((200, 2)), np.array(["a", "b"])[rng.integers(0, 2, 200)]
    images = [np.full((64, 64, 3), 40 + i, np.uint8) for i in range(200)]
    drawn = _still.still_map(positions, labels, images, ["a"])
    pixels = np.asarray(drawn.image).astype(int)
    colour = _still.class_colours(labels, ["a"])
    assert colour["a"] == _still.COLOURS[0] != colour["b"]
    checked, side = 0, _still.SIDE
    for i in (i for where, i in drawn.shown if where == "map"):
        across, up = positions[i] / positions.max(0)
        x, y = across * (_still.WIDTH - side) + side / 2, _still.HEIGHT - side / 2 - up * (_still.HEIGHT - side)
        x, y = int(x // side) * side, int(y // side) * side
        border = "#{:02x}{:02x}{:02x}".format(*pixels[y + 1, x + side // 2])
        if abs(pixels[y + side // 2, x + side // 2] - (40 + i)).max() <= 1 and border == colour[labels[i]]:
            checked += 1
    assert checked > 0.8 * sum(where == "map" for where, _ in drawn.shown)  # the frames of regions lie over some
    assert {where for where, _ in drawn.shown} == {"map", "A", "B", "C"}


def test_regions_do_not_overlap_and_hold_the_most_mixed_points():
    rng = np.random.default_rng(1)
    mixed, pure = rng.random((60, 2)) * 150 + (700, 400), rng.random((60, 2)) * 150 + (100, 100)
    labels = np.array(["a", "b"] * 30 + ["c"] * 60)
    regions = _still.mixed_regions(np.concatenate([mixed, pure]), labels)
    x, y = regions[0]
    assert _still._inside(mixed, (x, y)).mean() > 0.9
    for i, a in enumerate(regions):
        for b in regions[:i]:
            assert abs(a[0] - b[0]) >= _still.REGION or abs(a[1] - b[1]) >= _still.REGION


def test_in_a_browser_pointer_and_keys_show_an_image(tmp_path, chromium):  # noqa: F811 the fixture
    tested, _ = pictured(tmp_path, names=["<script>alert(1)</script>", "b", "c", "d", "e", "f"])
    sprite = Sprite()
    section = _maps.section(tested, sprite, "pca")
    section.parts.append(sprite)
    file = tmp_path / "page.html"
    file.write_text(render(Page("Map", [], [], [section])))
    page = chromium.new_page(viewport={"width": 1100, "height": 900})
    page.set_default_timeout(120_000)  # a busy machine
    wrong, requests = [], []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message) or dialog.dismiss())
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    tip = page.locator(".map-tip")
    assert not tip.is_visible()
    points = section.parts[1].table.records()
    for i in (0, 31):
        page.locator(f'circle[data-i="{i}"]').scroll_into_view_if_needed()
        box = page.locator(f'circle[data-i="{i}"]').bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert tip.is_visible()
        assert tip.locator("strong").text_content() == points[i]["class"]
        assert tip.locator("span").last.text_content() == f"row {points[i]['row']}"
        picture = tip.locator(".thumb").evaluate(
            "e => [getComputedStyle(e).backgroundImage.slice(0, 20), e.style.getPropertyValue('--x')]"
        )
        assert picture == ['url("data:image/webp', str(section.parts[1].data()["tiles"][i] % 40)]
    page.mouse.move(2, 2)
    assert not tip.is_visible()
    page.locator("svg.points").focus()
    seen = set()
    for key in ("ArrowLeft", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
        assert tip.is_visible()
        seen.add(page.locator(".map-said").text_content())
    assert len(seen) > 2
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.locator(".map-tools select").select_option(label="b")
    assert page.locator("circle.same").count() == 10
    assert page.locator(".map-tools option").first.text_content() == "all"
    assert wrong == []
    assert requests == [file.as_uri()]


def test_long_class_names_do_not_widen_a_phone(tmp_path, chromium):  # noqa: F811 the fixture
    names = [f"{letter}_{'a_very_long_name_of_a_class_' * 6}" for letter in "abcdef"]
    tested, _ = pictured(tmp_path, names=names)
    sprite = Sprite()
    section = _maps.section(tested, sprite, "pca")
    section.parts.append(sprite)
    file = tmp_path / "page.html"
    file.write_text(render(Page("Map", [], [], [section])))
    with opened(chromium, file, viewport={"width": 390, "height": 844}) as (page, wrong):
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        box = page.locator(".map-tools select").bounding_box()
        assert box["x"] + box["width"] <= 390
        assert wrong == []
