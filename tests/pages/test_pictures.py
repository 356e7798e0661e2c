"""Pictures of stored runs: their numbers against slow loops, thumbnails, and what happens when images are gone."""

import base64
import io
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pictured import clusters, colour_of, pictured, write_images, write_run
from PIL import Image

import nearkin
from nearkin.data import load_table, open_images
from nearkin.pages import _confusion, _layout, _maps, _mislabelled, _neighbours, _pixels, _sheets, _still
from nearkin.pages._base import Figure, Section, Words
from nearkin.pages._export import export
from nearkin.pages._page import Page, render
from nearkin.pages._pixels import Pictures
from nearkin.pages._sprite import COLUMNS, TILE, Sprite, place, thumb
from nearkin.pages._tested import Tested
from nearkin.runs.store import Run


def sorted_neighbours(tested, q):
    """Places of all images that a query may find, the nearest first: one pair after another."""
    z = tested.z.numpy().astype(np.float64)
    own = tested.query[q]
    found = []
    for p in range(len(z)):
        if p != own and tested.roles[p] in ("gallery", "both"):
            found.append((-float(z[own] @ z[p] / np.linalg.norm(z[own]) / np.linalg.norm(z[p])), p))
    return [p for _, p in sorted(found)], [-s for s, _ in sorted(found)]


def roles_of(n, seed=1):
    return np.random.default_rng(seed).choice(["query", "gallery", "both"], n)


@pytest.fixture(params=["all are both", "three roles"])
def tested(request, tmp_path):
    z, labels = clusters(noise=0.9)
    roles = None if request.param == "all are both" else roles_of(len(z))
    return Tested.of(write_run(tmp_path, z, labels, roles=roles, rows=500 + np.arange(len(z))[::-1]), "best")


# -- numbers against loops ----------------------------------------------------------------------------------------


def test_neighbours_equal_a_loop(tested):
    table = _neighbours.neighbour_table(tested)
    queries = {int(tested.rows[p]): q for q, p in enumerate(tested.query)}
    checked = 0
    for row in sorted(set(table.column("query row"))):
        places, similarities = sorted_neighbours(tested, queries[row])
        shown = [r for r in table.records() if r["query row"] == row]
        own = tested.labels[tested.query[queries[row]]]
        assert [r["rank"] for r in shown] == list(range(1, 9))
        assert [r["neighbour row"] for r in shown] == [int(tested.rows[p]) for p in places[:8]]
        assert [r["right"] for r in shown] == [bool(tested.labels[p] == own) for p in places[:8]]
        assert [r["similarity"] for r in shown] == pytest.approx(similarities[:8], abs=1e-4)
        assert {r["query class"] for r in shown} == {own}
        checked += 1
    assert checked == 12
    assert {True, False} == set(table.column("right"))


def test_queries_are_picked_by_the_stated_rule(tmp_path):
    """The best: highest first; the most confusing: lowest first, ties by similarity; one of each class; none twice."""
    z, labels = clusters(classes=5, each=4)
    value = np.array([0.9, 1, 1, 0.2, 0.5, 1, 0, 0, 0.5, 0.6, 0, np.nan, 0.45, 0.1, 0.3, 0.8, 0.55, 0.7, 0.15, 0.05])
    tested = Tested.of(write_run(tmp_path, z, labels, precision=value))
    found = _neighbours.picked_queries(tested, per_kind=3)
    assert found["best"] == [1, 5, 15]
    closeness = {q: float(np.mean(sorted_neighbours(tested, q)[1][:8])) for q in (6, 7, 10)}
    low = max((6, 7), key=lambda q: closeness[q])
    assert found["most confusing"] == [*sorted((low, 10), key=lambda q: -closeness[q]), 19]
    middle = float(np.nanmedian(value))
    left = [q for q in range(20) if q not in found["best"] + found["most confusing"] and not np.isnan(value[q])]
    expected = []
    for q in sorted(left, key=lambda q: (abs(value[q] - middle), q)):
        if labels[q] not in [labels[e] for e in expected] and len(expected) < 3:
            expected.append(q)
    assert found["median"] == expected


def test_two_methods_are_shown_for_the_same_queries(tmp_path):
    z, labels = clusters(noise=0.9)
    best = Tested.of(write_run(tmp_path / "a", z, labels), "best")
    order = np.random.default_rng(0).permutation(len(z))  # the other run lists its test images otherwise
    other = Tested.of(write_run(tmp_path / "b", z[order][:, ::-1].copy() ** 3, labels[order], rows=order), "other")
    table = _neighbours.neighbour_table(best, other)
    by_row = {int(row): q for q, row in enumerate(other.rows[other.query])}
    for row in set(table.column("query row")):
        shown = [r for r in table.records() if r["query row"] == row and r["method"] == "other"]
        places, _ = sorted_neighbours(other, by_row[row])
        assert [r["neighbour row"] for r in shown] == [int(other.rows[p]) for p in places[:8]]
        own = float(other.precision[by_row[row]])
        assert {r["map_at_r"] for r in shown} == {own}


def test_a_run_on_other_images_is_not_put_beside(tmp_path):
    z, labels = clusters()
    best = Tested.of(write_run(tmp_path / "a", z, labels), "best")
    other = Tested.of(write_run(tmp_path / "b", z, labels, rows=1000 + np.arange(len(z))), "other")
    section = _neighbours.section(best, other, Sprite())
    assert "other was tested on other images" in section.parts[0].html()


def test_confusion_equals_a_loop(tested):
    found = _confusion.confusion(tested)
    pairs, queries, lone = Counter(), Counter(), 0
    for q, p in enumerate(tested.query):
        same = [
            o
            for o in range(len(tested.labels))
            if tested.labels[o] == tested.labels[p] and o != p and tested.roles[o] != "query"
        ]
        if not same:
            lone += 1
            continue
        nearest = sorted_neighbours(tested, q)[0][0]
        queries[tested.labels[p]] += 1
        pairs[tested.labels[p], tested.labels[nearest]] += 1
    assert found.pairs == pairs
    assert found.queries == queries
    assert found.lone == lone
    table = _confusion.pair_table(found)
    expected = {(a, b): n for (a, b), n in pairs.items() if a != b}
    assert {(r["class"], r["taken for"]): r["queries"] for r in table.records()} == expected
    assert [r["share"] for r in table.records()] == [r["queries"] / queries[r["class"]] for r in table.records()]
    assert table.column("queries") == sorted(expected.values(), reverse=True)


def test_lone_queries_confuse_nobody(tmp_path):
    z, labels = clusters(classes=3, each=5)
    labels[0] = "alone"
    found = _confusion.confusion(Tested.of(write_run(tmp_path, z, labels)))
    assert found.lone == 1
    assert "alone" not in found.queries


def test_the_heatmap_has_the_thirty_classes_with_the_most_mistakes(tmp_path):
    z, labels = clusters(classes=40, each=4, noise=1.2)
    found = _confusion.confusion(Tested.of(write_run(tmp_path, z, labels)))
    cells = _confusion.cell_table(found)
    names = list(dict.fromkeys(cells.column("class")))
    mistakes = Counter()
    for (a, b), n in found.pairs.items():
        mistakes[a] += n * (a != b)
        mistakes[b] += n * (a != b)
    assert len(names) == 30
    assert min(mistakes[n] for n in names) >= max(mistakes[n] for n in mistakes if n not in names)
    for row in cells.records():
        count = 0 if row["class"] == row["taken for"] else found.pairs[row["class"], row["taken for"]]
        assert (row["queries"] or 0) == count
        assert (row["share"] or 0) == count / found.queries[row["class"]]


def test_planted_flips_of_labels_are_found(tmp_path):
    z, labels = clusters(classes=5, each=20, noise=0.15)
    flipped = {3: "class 4", 25: "class 0", 44: "class 1", 90: "class 2"}
    true = {i: labels[i] for i in flipped}
    for i, name in flipped.items():
        labels[i] = name
    table = _mislabelled.suspects(Tested.of(write_run(tmp_path, z, labels, rows=np.arange(len(z)) + 7)))
    found = {row["row"] - 7: row for row in table.records()}
    assert set(found) == set(flipped)
    assert {i: row["neighbours' class"] for i, row in found.items()} == true
    assert {i: row["class"] for i, row in found.items()} == flipped


def test_suspects_follow_the_stated_rule(tested):
    k = _mislabelled.depth(tested)
    expected = {}
    for q, p in enumerate(tested.query):
        votes = Counter(tested.labels[n] for n in sorted_neighbours(tested, q)[0][:k])
        others = [(n / k, name) for name, n in votes.items() if name != tested.labels[p] and n / k >= 0.6]
        if others:
            expected[int(tested.rows[p])] = (*others[0], votes[tested.labels[p]] / k)
    table = _mislabelled.suspects(tested)
    assert {r["row"]: (r["share"], r["neighbours' class"], r["own share"]) for r in table.records()} == expected
    assert expected
    assert table.column("share") == sorted(table.column("share"), reverse=True)


# -- pictures -----------------------------------------------------------------------------------------------------


def test_a_thumbnail_comes_out_of_the_sprite_as_it_went_in():
    rng = np.random.default_rng(0)
    sprite, images = Sprite(), []
    for i in range(COLUMNS * 2 + 3):
        image = np.asarray(Image.fromarray(rng.integers(0, 256, (4, 4, 3), np.uint8)).resize((TILE, TILE)))
        images.append(image)
        assert sprite.add(("data", i), image) == i
    assert sprite.add(("data", 5), images[0]) == 5  # an image once, whatever shows it
    assert len(sprite) == len(images)
    html = sprite.html()
    content = re.search(r"url\(data:image/webp;base64,([^)]+)\)", html)[1]
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB"))
    for i, image in enumerate(images):
        number, x, y = place(i)
        style = thumb(i, "words")
        assert f"--x:{x};--y:{y}" in style
        assert f"sheet-{number} " in style
        seen = sheet[y * TILE : (y + 1) * TILE, x * TILE : (x + 1) * TILE].astype(float)
        own = np.abs(seen - image).mean()
        assert own < 8
        assert own < min(np.abs(seen - other).mean() for j, other in enumerate(images) if j != i)


def test_many_thumbnails_fill_a_second_sheet(monkeypatch):
    monkeypatch.setattr("nearkin.pages._sprite.ROWS", 2)
    sprite = Sprite()
    for i in range(2 * COLUMNS + 1):
        sprite.add(i, np.zeros((TILE, TILE, 3), np.uint8))
    assert [sheet.size for sheet in sprite.sheets()] == [(COLUMNS * TILE, 2 * TILE), (COLUMNS * TILE, TILE)]
    assert place(2 * COLUMNS) == (1, 0, 0)
    assert sprite.html().count(".sheet-") == 2


def test_thumbnails_are_those_of_the_rows(tmp_path):
    tested, _ = pictured(tmp_path)
    sprite = Sprite()
    tiles = Pictures(tested, sprite).tiles([17, 3])
    for row, tile in tiles.items():
        assert sprite.tiles[tile].reshape(-1, 3).mean(0) == pytest.approx(colour_of(row), abs=1)


def test_only_shown_images_are_read_and_each_once(tmp_path, monkeypatch):
    tested, _ = pictured(tmp_path, classes=8, each=60, noise=0.5)
    read = []
    original = _pixels.read_image
    monkeypatch.setattr(_pixels, "read_image", lambda path: read.append(Path(path)) or original(path))
    sprite = Sprite()
    sections = [
        _neighbours.section(tested, None, sprite),
        _confusion.section(tested, sprite),
        _mislabelled.section(tested, sprite),
        _maps.section(tested, sprite, "pca", pictures=20),
    ]
    assert len(read) == len(set(read)) == len(sprite)
    shown = {row for section in sections[:3] for part in section.parts for row in getattr(part, "tiles", {})}
    shown |= {int(tested.rows[i]) for i in _layout.stratified(tested.labels, 20)}
    assert {int(path.stem) for path in read} == shown
    assert len(read) < len(tested.labels) / 2


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """An untrained run on drawn images."""
    words = {"dataset": "glyphs", "data.classes": 24, "data.per_class": 10, "backbone": "convnet", "dim": 16}
    return nearkin.train(words | {"epochs": 0}, runs=tmp_path_factory.mktemp("runs"))


def test_thumbnails_of_a_run_are_what_it_saw(drawn):
    """The pixels that its network is given; and its neighbours are those of its test."""
    run, tested = drawn, Tested.of(drawn)
    sprite = Sprite()
    pictures = Pictures(tested, sprite)
    tiles = pictures.tiles(tested.rows[:3])
    images = load_table("glyphs", classes=24, per_class=10, size=32).images
    for row, tile in tiles.items():
        expected = Image.fromarray(images[row]).resize((TILE, TILE), Image.Resampling.BICUBIC)
        assert np.array_equal(sprite.tiles[tile], np.asarray(expected))
    assert pictures.gap is None
    assert tested.precision.mean() == pytest.approx(run.result["test"]["map_at_r"])
    found = _confusion.confusion(tested)
    right = sum(n for (a, b), n in found.pairs.items() if a == b)
    assert right / sum(found.queries.values()) == pytest.approx(run.result["test"]["recall@1"])


def test_drawn_images_that_came_out_otherwise_are_not_shown(drawn, tmp_path):
    run = Run(shutil.copytree(drawn.path, tmp_path / "run"))
    (run.path / "files.json").unlink()  # as of a run that has no checksums
    file = run.path / "spec.yaml"
    file.write_text(re.sub(r"data_hash: \w+", "data_hash: '0123456789abcdef'", file.read_text()))
    pictures = Pictures(Tested.of(run), Sprite())
    assert pictures.tiles([int(Tested.of(run).rows[0])]) == {int(Tested.of(run).rows[0]): None}
    assert "not those that the run saw" in pictures.gap


# -- what is gone -------------------------------------------------------------------------------------------------


def all_sections(tested, sprite):
    return [
        _neighbours.section(tested, None, sprite),
        _maps.section(tested, sprite, "pca"),
        _confusion.section(tested, sprite),
        _mislabelled.section(tested, sprite),
    ]


def test_gone_images_are_said_and_the_numbers_stay(tmp_path):
    tested, root = pictured(tmp_path, noise=0.9)
    before = [part for section in all_sections(tested, Sprite()) for part in section.parts]
    whole = [part.table.rows for part in before if part.table and "still" not in part.id]
    shutil.rmtree(root)
    sprite = Sprite()
    sections = all_sections(tested, sprite)
    assert len(sprite) == 0
    assert [part.table.rows for s in sections for part in s.parts if part.table] == whole
    for section in sections:
        told = [part for part in section.parts if isinstance(part, Words) and part.tone == "warning"]
        assert len(told) == 1
        assert "The images of folder are not here" in told[0].html()
    page = render(Page("Pictures", [], [], sections))
    assert "no picture" in page
    assert str(tmp_path) not in page


def test_single_lost_images_are_counted(tmp_path):
    tested, root = pictured(tmp_path)
    (root / tested.paths[3]).unlink()
    (root / tested.paths[4]).write_bytes(b"no image")
    pictures = Pictures(tested, Sprite())
    assert pictures.tiles([3, 4, 5]) == {3: None, 4: None, 5: 0}
    assert pictures.gap == "2 of 3 images that are shown here cannot be read any more."


def test_images_in_the_cache_are_shown_when_the_files_are_gone(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path / "cache"))
    z, labels = clusters()
    paths = write_images(tmp_path / "images", labels)
    run = write_run(tmp_path / "runs", z, labels, root=tmp_path / "images", paths=paths)
    open_images(load_table("folder", tmp_path / "images"), resize=32, cache="decoded", known_hash="d" * 16)
    shutil.rmtree(tmp_path / "images")
    sprite = Sprite()
    pictures = Pictures(Tested.of(run), sprite)
    assert pictures.tiles([9]) == {9: 0}
    assert sprite.tiles[0].reshape(-1, 3).mean(0) == pytest.approx(colour_of(9), abs=1)
    assert pictures.gap is None


def test_a_run_without_embeddings_is_an_error_in_words(tmp_path):
    z, labels = clusters()
    run = write_run(tmp_path, z, labels)
    (run.path / "embeddings.npz").unlink()
    with pytest.raises(nearkin.NearkinError, match=r"run rrrrrrrrrrrr is damaged: embeddings\.npz is missing"):
        Tested.of(run)


def test_embeddings_without_direction_are_said_not_raised(tmp_path):
    z, labels = clusters()
    z[3] = 0
    tested = Tested.of(write_run(tmp_path, z, labels, precision=np.ones(len(z))))
    for section in all_sections(tested, Sprite()):
        assert len(section.parts) == 1
        assert section.parts[0].tone == "warning"


def test_a_file_outside_the_root_is_named_without_its_folder(tmp_path):
    z, labels = clusters(classes=2, each=2)
    paths = ["/home/someone/a.png", "C:\\Users\\someone\\b.png", "below/c.png", "d.png"]
    tested = Tested.of(write_run(tmp_path, z, labels, paths=paths))
    assert [tested.file(i) for i in range(4)] == ["a.png", "b.png", "below/c.png", "d.png"]


# -- words from elsewhere -----------------------------------------------------------------------------------------


def test_names_of_classes_stay_text(tmp_path):
    evil = '<script>alert("1")</script>'
    z, labels = clusters(noise=0.9, names=[evil, "a&b", "c<img src=x onerror=alert(2)>", '"d"', "e' f", "plain_name"])
    root = tmp_path / "images"
    paths = write_images(root, labels, {name: f"c{i}" for i, name in enumerate(np.unique(labels))})
    tested = Tested.of(write_run(tmp_path / "runs", z, labels, root=root, paths=paths), "<b>best</b>")
    sprite = Sprite()
    sections = all_sections(tested, sprite)
    sections[-1].parts.append(sprite)
    assert len(sprite)
    for section in sections:
        for part in section.parts:
            html = str(part.html())
            assert "<script" not in html
            assert "<b>best" not in html
            assert "<img src=x" not in html
    together = "".join(str(part.html()) for section in sections for part in section.parts)
    assert "&lt;script&gt;alert(&#34;1&#34;)&lt;/<wbr>script&gt;" in together
    page = render(Page("Pictures", [], [], sections))
    assert "<script>alert" not in page
    assert any(isinstance(part, Figure) for part in sections[2].parts)


# -- pictures as files ---------------------------------------------------------------------------------------------


def exported(tmp_path, *parts):
    """The names of the files that are written of a page's parts."""
    return {file.name for file in export(Page("title", [], [], [Section("section", "", "", list(parts))]), tmp_path)}


def frames_of(sheet):
    """The colours of the frames of a sheet's images, row by row: a pixel in the middle of each left edge."""
    return [[image[len(image) // 2, 1].tolist() for image in row if image is not None] for row in sheet.images]


def test_neighbour_sheets_are_files_with_green_and_red_frames(tmp_path, monkeypatch):
    """Every query with its four nearest; the frames say what the table says."""
    best, _ = pictured(tmp_path, noise=0.9)
    drawn = []
    kept = _sheets.ImageSheet
    monkeypatch.setattr(_sheets, "ImageSheet", lambda **words: drawn.append(kept(**words)) or drawn[-1])
    parts = [part for part in _neighbours.section(best, None, Sprite()).parts if part.table]
    assert all(part.drawn() is not None for part in parts)
    colours = {True: [26, 127, 55], False: [179, 35, 42]}
    seen = set()
    for part, sheet in zip(parts, drawn, strict=True):
        answers: dict[int, list[bool]] = {}
        for row in part.table.records():
            answers.setdefault(row["query row"], []).append(row["right"])
        assert frames_of(sheet) == [[[255] * 3, *(colours[right] for right in line[:4])] for line in answers.values()]
        seen |= {right for line in answers.values() for right in line[:4]}
    assert seen == {True, False}


def test_files_show_what_the_network_saw(tmp_path):
    """Whole images at the size of the run, not thumbnails."""
    best, _ = pictured(tmp_path)
    seen = Pictures(best, Sprite()).seen([3, 3, 40])
    assert {row: image.shape for row, image in seen.items()} == {3: (32, 32, 3), 40: (32, 32, 3)}
    assert seen[40][16, 16].tolist() == list(colour_of(40))


def test_sheets_samples_and_the_map_are_files(tmp_path):
    best, _ = pictured(tmp_path, classes=8)
    sprite = Sprite()
    (first,) = _neighbours.typical(best, None, sprite)
    (samples,) = _sheets.samples(best, sprite).parts
    still = _maps.section(best, sprite, "pca").parts[-1]
    assert Counter(samples.table.column("class")) == {f"class {i}": 8 for i in (0, 1, 3, 4, 6, 7)}
    width, height = still.drawn().get_size_inches() * 100
    assert (round(width), round(height)) == still.pixels.shape[1::-1]
    assert width == _still.WIDTH
    assert height > _still.HEIGHT  # regions are magnified below
    files = exported(tmp_path / "out", first, still)
    assert {f"{name}{ending}" for name in ("first-query", "map-still") for ending in (".png", ".svg", ".csv")} <= files
    with Image.open(tmp_path / "out" / "map-still.png") as written:
        assert np.array_equal(np.asarray(written.convert("RGB")), still.pixels)


def test_without_pictures_there_are_tables_alone(tmp_path):
    best, root = pictured(tmp_path)
    shutil.rmtree(root)
    sprite = Sprite()
    parts = [*_neighbours.section(best, None, sprite).parts, *_sheets.samples(best, sprite).parts]
    assert {Path(name).suffix for name in exported(tmp_path, *parts)} == {".csv", ".md", ".tex"}
