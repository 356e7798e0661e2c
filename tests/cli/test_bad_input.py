"""Over a hundred bad inputs, over all commands: exit code 2, one line, no traceback."""

import shutil

import numpy as np
import pytest
from PIL import Image

import nearkin
from nearkin.cli import app as cli

SMALL = ["data.classes=16", "data.per_class=6", "train.batch=8"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with what bad inputs refer to: EMPTY, FILE, broken images, odd YAML, a tested run and a trial."""
    here = tmp_path_factory.mktemp("bad")
    rng = np.random.default_rng(0)
    (here / "EMPTY").mkdir()
    (here / "FILE").write_text("a file")
    (here / "IMAGES" / "a").mkdir(parents=True)
    for i in range(3):
        Image.fromarray(rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)).save(here / "IMAGES" / "a" / f"{i}.png")
    shutil.copytree(here / "IMAGES", here / "BROKEN")
    (here / "BROKEN" / "a" / "3.jpg").write_text("no image")
    (here / "BAD.yaml").write_text("loss: [1, 2")
    (here / "LIST.yaml").write_text("- a\n- b\n")
    (here / "BINARY.yaml").write_bytes(bytes(range(256)))
    (here / "STUDY.yaml").write_text("base: {dataset: glyphs}\naxes: {loss: [triplet]}\n")
    (here / "TWICE.yaml").write_text("axes: {loss: [triplet, triplet]}\n")
    (here / "OUTSIDE.yaml").write_text("name: ../../x\n")
    (here / "bad.csv").write_text("file,class\na.png,b\n")
    np.save(here / "EMB.npy", rng.normal(size=(20, 4)))
    np.save(here / "NAN.npy", np.full((20, 4), np.nan))
    np.save(here / "LABELS.npy", np.arange(20) % 4)
    np.save(here / "FEW.npy", np.arange(7))
    (here / "TEXT.npy").write_text("1 2 3")
    (here / "EMB.xyz").write_text("?")
    words = {
        "dataset": "glyphs",
        "data.classes": 16,
        "data.per_class": 6,
        "train.batch": 8,
        "sampler.per_class": 2,
        "dim": 4,
        "epochs": 1,
        "loss": "triplet",
    }
    told = {"RUN": nearkin.train(words, runs=here / "runs").hash}
    told["TRIAL"] = nearkin.train(words, runs=here / "runs", purpose="trial").hash
    told["BEGUN"] = "0123456789ab"
    shutil.copytree(here / "runs" / told["RUN"], here / "runs" / told["BEGUN"])
    for name in ("final.json", "result.json", "test.parquet", "embeddings.npz"):
        (here / "runs" / told["BEGUN"] / name).unlink()
    (here / "runs" / "damaged").mkdir()
    (here / "runs" / "damaged" / "spec.yaml").write_text("{")
    return here, told


TRAIN = """
margin
los=x
loss=nope
loss=
loss.alhpa=3
loss.alpha=x
loss=no_such_package.Loss
dim=0
dim=x
dim=9999999
epochs=
epochs=-1
epochs=1 epochs=2
lr=0
lr=-1
lr=abc
seed=-1
seed=1.5
train.batch=1
train.batch=100000
sampler=balanced sampler.per_class=1000
sampler=nope
sampler.nope=3
miner=nope
miner=semihard loss=proxy_anchor
miner=multi_similarity loss=triplet
regulariser=rho loss=proxy_anchor
regulariser=nope
memory.size=-1
memory.size=10 loss=proxy_anchor
method=nope
method=drml dim=7
model.head=nope
model.pool=mean
model.head=none cut=all loss=contrastive
weights=/no/such.pth
weights=FILE
weights=imagenet backbone=resnet50
backbone=nope
backbone=timm/resnet18
backbone=os.path
backbone=collections.OrderedDict
backbone=no_module.Net
cut=nowhere
protocol=nope
protocol.share=2
protocol=within protocol.val_share=0.9
dataset=nope
dataset=cub
dataset=cub root=/nope
dataset=cub root=EMPTY
dataset=cars196 root=EMPTY
dataset=sop root=EMPTY
dataset=inshop root=EMPTY
dataset=imagenet root=EMPTY
data.keep=64
data.cache=packed
data.cache=zip
dataset=folder
dataset=folder root=EMPTY
dataset=folder root=FILE
dataset=folder root=IMAGES
dataset=csv root=EMPTY
dataset=csv root=bad.csv
data.classes=0
data.classes=7
data.size=4
data.on_error=maybe
train.select=recall
train.select=nope
train.select=pi_ratio
train.select=recall@9999
train.device=tpu
train.device=cuda
train.optimiser=lion
train.schedule=linear
train.groups.nope.lr=1
train.groups.loss.l=1
train.patience=1 train.eval_every=2
train.clip=-1
train.chunk=4
train.chunk=0
purpose=maybe
nothing.at.all=1
no_such.yaml
BAD.yaml
LIST.yaml
BINARY.yaml
--runs FILE
--runs FILE/below
--nope
""".strip().splitlines()
OTHERS = """
nope
--nope
embed
embed nope IMAGES
embed RUN /nope
embed RUN EMPTY
embed RUN IMAGES -o x.csv
embed RUN IMAGES -o FILE/x.npz
embed RUN IMAGES -o EMPTY
embed RUN BROKEN
embed BEGUN IMAGES
embed damaged IMAGES
evaluate
evaluate nope.npy
evaluate nope
evaluate EMB.npy
evaluate EMB.npy EMB.npy
evaluate EMB.npy FEW.npy
evaluate NAN.npy LABELS.npy
evaluate TEXT.npy LABELS.npy
evaluate EMB.xyz LABELS.npy
evaluate EMB.npy LABELS.npy --k x
evaluate EMB.npy LABELS.npy --k 0
evaluate EMB.npy LABELS.npy --k 1000
evaluate EMB.npy LABELS.npy --metrics nope
evaluate EMB.npy LABELS.npy --metrics recall@x
evaluate EMB.npy LABELS.npy --distance l2
evaluate EMB.npy LABELS.npy --metrics nmi --distance l2
evaluate EMB.npy LABELS.npy --bootstrap -1
evaluate EMB.npy LABELS.npy --query 0,1,999
evaluate EMB.npy LABELS.npy --query nope
evaluate EMB.npy LABELS.npy --per-query out.csv
evaluate EMB.npy LABELS.npy --per-query /no/x.parquet
evaluate EMB.npy LABELS.npy --budget 1
evaluate TRIAL
evaluate BEGUN
test
test nope
test TRIAL
test BEGUN
test damaged
test RUN --metrics nope
test RUN --k a
test RUN --k 99999
test RUN --distance l2
study
study nope.yaml
study BAD.yaml
study LIST.yaml
study TWICE.yaml
study OUTSIDE.yaml
study STUDY.yaml los=x
study STUDY.yaml --workers 0
study STUDY.yaml --csv x.xlsx
study STUDY.yaml --csv FILE/x.csv
runs
runs nope
runs show nope
runs show damaged
runs rm nope --yes
runs rm
runs list --sort nope
runs list --where x
runs list --where nope=1
data
data verify
data verify nope
data verify cub
data verify folder --root EMPTY
data verify folder --root /nope
data verify csv --root bad.csv
data dedupe nope
list
list nope
analyse
analyse nope RUN
analyse prototypes nope
analyse prototypes RUN
explain nope
cache
cache clear --older -1
""".strip().splitlines()
EMPTY_NAMES = [["runs", "show", ""], ["runs", "rm", "", "--yes"], ["test", ""], ["embed", "", "IMAGES"]]
CASES = [["train", *line.split(), *(w for w in SMALL if w.split("=")[0] not in line)] for line in TRAIN]
CASES += [line.split() for line in OTHERS] + EMPTY_NAMES


def test_there_are_over_a_hundred():
    assert len(CASES) > 150


@pytest.mark.parametrize("words", CASES, ids=" ".join)
def test_bad_input(words, place, monkeypatch, capsys):
    here, told = place
    monkeypatch.chdir(here)
    words = [told.get(word, word) for word in words]
    before = {p: p.stat().st_mtime_ns for p in (here / "runs").rglob("*") if p.is_file() and p.name != "lock"}
    monkeypatch.setattr("sys.argv", ["nearkin", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err.strip()
    assert ended.value.code == 2, said
    lines = said.splitlines()
    if len(words) > 1 or words[0] in ("nope", "--nope"):  # a command without words shows its help
        assert len(lines) == 1, said
        assert said.startswith("nearkin: ")
        assert len(said) > 25
    assert "Traceback" not in said
    assert before.items() <= {p: p.stat().st_mtime_ns for p in (here / "runs").rglob("*") if p.is_file()}.items()
