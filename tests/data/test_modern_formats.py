"""AVIF and HEIC are read; where their reader is missing, one sentence says so, with the number of files."""

import numpy as np
import pytest
from PIL import Image, features
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.data import data_hash, images_from, load_table, modern, open_images, read_image, verify
from nearkin.errors import NearkinError

SIDES = (40, 32)


def smooth(seed=0):
    coarse = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(SIDES, Image.Resampling.BICUBIC)


def save(image, path, **options):
    """Save an image; .heic by pillow-heif, which is an extra."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".heic", ".heif"):
        pytest.importorskip("pillow_heif").register_heif_opener()
    elif not features.check("avif"):
        pytest.skip("this Pillow has no AVIF")
    image.save(path, quality=90, **options)
    return path


@pytest.mark.parametrize("ending", [".avif", ".heic", ".heif"])
def test_it_is_read(tmp_path, ending):
    path = save(smooth(), tmp_path / f"x{ending}")
    pixels = read_image(path)
    assert pixels.shape == (32, 40, 3)
    assert np.abs(pixels.astype(int) - np.asarray(smooth())).mean() < 8
    assert modern.kind_of(path.read_bytes()) == ("AVIF" if ending == ".avif" else "HEIC")
    assert (read_image(path.rename(tmp_path / "renamed.jpg")) == pixels).all()


@pytest.mark.parametrize("ending", [".avif", ".heic"])
def test_it_is_upright(tmp_path, ending):
    told = Image.Exif()
    told[0x0112] = 6
    image = smooth().transpose(Image.Transpose.ROTATE_90)
    pixels = read_image(save(image, tmp_path / f"x{ending}", exif=told.tobytes()))
    assert pixels.shape == (32, 40, 3)
    assert np.abs(pixels.astype(int) - np.asarray(smooth())).mean() < 8


def test_transparent_ones_lie_on_white(tmp_path):
    image = smooth()
    image.putalpha(0)
    assert read_image(save(image, tmp_path / "x.avif")).min() > 250


@pytest.mark.parametrize("ending", [".avif", ".heic"])
def test_they_count_as_images(tmp_path, picture, ending):
    picture(tmp_path / "x" / "a" / "1.png", 1)
    save(smooth(2), tmp_path / "x" / "a" / f"2{ending}")
    picture(tmp_path / "x" / "b" / "3.png", 3)
    save(smooth(4), tmp_path / "x" / "b" / f"4{ending}")
    table = load_table("folder", tmp_path / "x")
    assert len(table) == len(images_from(tmp_path / "x")) == 4
    assert verify(table).ok
    assert len(open_images(table, resize=16)) == 4


@pytest.fixture
def without_heif(monkeypatch):
    monkeypatch.setattr(modern, "has_heif", lambda: False)


@pytest.fixture
def phone(tmp_path, picture):
    """Two readable photographs and three in HEIC, by their first bytes."""
    for i, name in enumerate(("a/1.png", "b/1.png")):
        picture(tmp_path / "x" / name, i)
    for name in ("a/2.heic", "a/3.HEIC", "b/4.heif"):
        (tmp_path / "x" / name).write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + name.encode() * 40)
    return tmp_path / "x"


ADVICE = "pip install 'nearkin[heic]'"


@pytest.mark.usefixtures("without_heif")
def test_without_the_extra_one_sentence_says_how_many(phone):
    table = load_table("folder", phone)
    report = verify(table)
    (problem,) = (line for line in report.problems if "HEIC" in line)
    assert problem.startswith("3 HEIC files unreadable: a/2.heic, a/3.HEIC, b/4.heif")
    assert ADVICE in problem
    with pytest.raises(NearkinError, match="3 HEIC files cannot be read") as error:
        open_images(table, resize=16)
    assert ADVICE in str(error.value)
    assert "data.on_error=skip" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(open_images(table, resize=16, on_error="skip")) == 2
    with pytest.raises(NearkinError, match="HEIC needs the package pillow-heif"):
        read_image(phone / "a" / "2.heic")


def test_the_hash_does_not_depend_on_the_extra(phone, monkeypatch):
    before = data_hash(load_table("folder", phone))
    monkeypatch.setattr(modern, "has_heif", lambda: False)
    monkeypatch.setenv("NEARKIN_CACHE", str(phone.parent / "other-cache"))
    assert data_hash(load_table("folder", phone)) == before


@pytest.mark.usefixtures("without_heif")
def test_embedding_says_it_too(phone, tmp_path):
    run = nearkin.train(
        "dataset=glyphs data.classes=16 data.per_class=6 dim=4 epochs=0", runs=tmp_path / "runs", test=False
    )
    with pytest.raises(NearkinError, match="3 HEIC files cannot be read"):
        nearkin.embed(run, phone)
    done = CliRunner().invoke(
        app, ["embed", run.hash, str(phone), "-o", str(tmp_path / "e.npz"), "--runs", str(tmp_path / "runs"), "--skip"]
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.count("skipped: ") == 3


def test_a_damaged_one_is_named(tmp_path):
    pytest.importorskip("pillow_heif")
    data = save(smooth(), tmp_path / "x.heic").read_bytes()
    (tmp_path / "x.heic").write_bytes(data[: len(data) // 2])
    with pytest.raises(NearkinError, match=r"x\.heic cannot be read") as error:
        read_image(tmp_path / "x.heic")
    assert "\n" not in str(error.value)
