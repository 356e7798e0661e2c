import unicodedata

import numpy as np
import pytest

from nearkin.data import load_table
from nearkin.data.alphabet import CHARACTERS, FACES, TWIN_COSINE, choose, font, ink, twin_cosine
from nearkin.data.glyphs import Glyphs
from nearkin.errors import NearkinError


def test_the_stored_characters_are_the_choice():
    """The choice follows the fonts and Unicode tables of the machine; where these agree, so does the result."""
    assert len(CHARACTERS) == len(set(CHARACTERS)) == 200
    assert choose() == CHARACTERS


def test_the_characters_keep_what_is_promised():
    assert all(unicodedata.category(c)[0] in "LNS" and not unicodedata.decomposition(c) for c in CHARACTERS)
    similarity = twin_cosine(CHARACTERS)
    assert np.allclose(np.diag(similarity), 1)
    assert (similarity - 2 * np.eye(200)).max() < TWIN_COSINE
    absent = {face: np.asarray(ink("\u0378", face, 40, 64)) for face in FACES}  # unassigned: the box for "no glyph"
    for face in FACES:
        assert all((np.asarray(ink(c, face, 40, 64)) != absent[face]).any() for c in CHARACTERS), face
    assert len({font(face, 40).getname() for face in FACES}) == 16


def test_shape_split_and_factors():
    table = load_table("glyphs", classes=6, per_class=5)
    assert table.images.shape == (30, 32, 32, 3)
    assert table.images.dtype == np.uint8
    assert table.labels.tolist() == sorted(list(range(6)) * 5)
    assert set(table.labels[table.split == "train"]) == {0, 1, 2}
    assert set(table.labels[table.split == "test"]) == {3, 4, 5}
    assert not table.augment.flip
    assert table.augment.crop_scale is None
    c = table.columns
    assert set(c["family"]) <= {face.family for face in FACES}
    assert 26 <= c["size"].min() <= c["size"].max() <= 54
    assert np.abs(c["rotation"]).max() <= 15
    assert np.abs(c["shear"]).max() <= 0.2
    assert 0 <= c["noise"].min() <= c["noise"].max() <= 15
    for hue in ("foreground_hue", "background_hue"):
        assert 0 <= c[hue].min() <= c[hue].max() < 1
    assert {"face", "weight", "slant", "ramp"} <= set(c)


def test_the_seed_decides_alone_and_counts_change_nothing_drawn_before():
    few = Glyphs(classes=4, per_class=3).draw()["images"].reshape(4, 3, 32, 32, 3)
    again = Glyphs(classes=4, per_class=3).draw()["images"].reshape(4, 3, 32, 32, 3)
    more = Glyphs(classes=6, per_class=5).draw()["images"].reshape(6, 5, 32, 32, 3)
    other = Glyphs(classes=4, per_class=3, seed=1).draw()["images"].reshape(4, 3, 32, 32, 3)
    assert (few == again).all()
    assert (few == more[:4, :3]).all()
    assert (few != other).any(axis=(2, 3, 4)).all()


def test_default_is_dark_on_light_and_hard_is_not():
    """Ink covers the middle more than the rim, so that on dark-on-light images the middle is darker."""

    def darker_middle(level):
        images = Glyphs(level=level, classes=40, per_class=5).draw()["images"].astype(float)
        rim = images[:, [0, 1, -2, -1]].mean(axis=(1, 2, 3))
        return (images[:, 12:20, 12:20].mean(axis=(1, 2, 3)) < rim).mean()

    assert darker_middle("default") > 0.9
    assert 0.3 < darker_middle("hard") < 0.7


def test_a_character_stays_inside_its_image():
    """Wide ones are drawn smaller: without the turn, no ink on the rim."""
    from nearkin.data.alphabet import fitting

    for c in "ŒЩЖЉW║":
        for face in FACES:
            pixels = np.asarray(ink(c, face, fitting(c, face, 54, 64), 64))
            assert pixels[[0, -1]].max() == pixels[:, [0, -1]].max() == 0


def test_size_is_settable():
    assert load_table("glyphs", classes=2, per_class=1, size=48).images.shape == (2, 48, 48, 3)


def test_drawn_once_then_read_and_drawn_again_when_damaged(cache_folder, monkeypatch):
    first = load_table("glyphs", classes=2, per_class=2)
    (file,) = (cache_folder / "glyphs").iterdir()
    monkeypatch.setattr(Glyphs, "draw", lambda self: pytest.fail("drawn again"))
    second = load_table("glyphs", classes=2, per_class=2)
    assert (first.images == second.images).all()
    assert first.columns.keys() == second.columns.keys()
    monkeypatch.undo()
    monkeypatch.setenv("NEARKIN_CACHE", str(cache_folder))
    file.write_bytes(file.read_bytes()[:500])
    assert (load_table("glyphs", classes=2, per_class=2).images == first.images).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"classes": 201}, "classes=201 is not between 2 and 200"),
        ({"per_class": 0}, "per_class=0"),
        ({"size": 4}, "size=4"),
        ({"level": "hrad"}, "choices: default, hard"),
        ({"root": "/tmp"}, "takes no root"),
    ],
)
def test_bad_settings(parameters, message):
    with pytest.raises(NearkinError, match=message):
        load_table("glyphs", **parameters)
