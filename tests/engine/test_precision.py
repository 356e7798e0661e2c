"""Half precision: children that die are noticed and the cure is named; fp16 scales, skips, resumes."""

import json

import pytest
import torch

import nearkin
from nearkin.config.spec import make_spec
from nearkin.engine import precision as traps
from nearkin.engine.distributed import Ranks
from nearkin.errors import NearkinError
from nearkin.runs.prepare import prepare


def test_a_child_that_is_killed_is_noticed():
    assert traps.survives("pass") == (True, "")
    alive, said = traps.survives("import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert not alive
    assert said == "killed by signal 4"
    assert traps.survives("raise ValueError('no')") == (False, "ValueError: no")


def test_the_cure_is_named_when_it_helps(monkeypatch):
    code = "import os, signal; 'ONEDNN_MAX_CPU_ISA' in os.environ or os.kill(os.getpid(), signal.SIGILL)"
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr(traps, "TRIAL", code)
    cure = "start Python with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
    assert traps.trap("bf16") == f"a bf16 product fails on this CPU (killed by signal 4); {cure}"
    monkeypatch.setattr(traps, "TRIAL", "raise SystemExit(1)")
    assert "train.amp=false" in traps.trap("fp16")
    monkeypatch.setattr(traps, "TRIAL", "pass")
    assert traps.trap("bf16") is None


@pytest.mark.parametrize(("amp", "kind"), [(True, "bf16"), ("bf16", "bf16"), ("fp16", "fp16")])
def test_mixed_precision_is_refused_where_it_kills(tiny, tmp_path, monkeypatch, amp, kind):
    monkeypatch.setattr("nearkin.runs.fit.trap", lambda kind: f"a {kind} product fails on this CPU")
    with pytest.raises(NearkinError, match=f"train.amp={kind}: a {kind} product fails"):
        nearkin.train(tiny | {"train.amp": amp, "train.device": "cpu"}, runs=tmp_path)


def test_true_and_bf16_are_one_setting(tiny):
    true, bf16, fp16, off, plain = (
        prepare(make_spec(tiny | words)).hash
        for words in ({"train.amp": True}, {"train.amp": "bf16"}, {"train.amp": "fp16"}, {"train.amp": False}, {})
    )
    assert true == bf16
    assert off == plain
    assert len({true, fp16, plain}) == 3
    with pytest.raises(NearkinError, match=r"train\.amp='fp8': choices: bf16, fp16, true, false"):
        make_spec(tiny | {"train.amp": "fp8"})


# -- fp16 on this CPU ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def works():
    if traps.trap("fp16") is not None:
        pytest.skip("fp16 does not work on this CPU")


@pytest.fixture
def fp16(tiny, works, monkeypatch):
    """Words of a run in fp16 on a CPU, where that works."""
    monkeypatch.setattr("nearkin.runs.fit.trap", lambda kind: None)
    return tiny | {
        "data.per_class": 6,
        "data.size": 16,
        "epochs": 2,
        "loss": "multi_similarity",
        "train.device": "cpu",
        "train.amp": "fp16",
        "dim": 8,
    }


def steps_of(run):
    lines = [json.loads(line) for line in (run.path / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if "step" in line]


def gradients_of(words, folder, monkeypatch):
    """The gradients that reach the optimiser in the first step."""
    found = []
    step = torch.optim.AdamW.step

    def noted(self, *args):
        found.append([p.grad.clone() for group in self.param_groups for p in group["params"] if p.grad is not None])
        return step(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", noted)
        nearkin.train(words, runs=folder, test=False)
    return found[0]


def test_the_optimiser_sees_the_gradient_of_full_precision(fp16, tmp_path, monkeypatch):
    """Also in two passes, and clipped: what is bounded is the gradient, not its multiple."""
    words = fp16 | {"model.freeze_bn": True, "train.batch": 12, "sampler.per_class": 3}
    words |= {"epochs": 1, "train.batches_per_epoch": 1}
    expected = gradients_of(words | {"train.amp": False}, tmp_path / "0", monkeypatch)
    size = torch.cat([g.flatten() for g in expected]).norm()
    for number, more in enumerate(({}, {"train.chunk": 5})):
        found = gradients_of(words | more, tmp_path / f"fp16 {number}", monkeypatch)
        apart = torch.cat([(f - e).flatten() for f, e in zip(found, expected, strict=True)]).norm()
        assert 0 < apart < 0.05 * size  # three digits, times the steepness of the loss
    clipped = gradients_of(words | {"train.clip": 0.01, "train.clip_by": "norm"}, tmp_path / "clipped", monkeypatch)
    assert torch.cat([g.flatten() for g in clipped]).norm() == pytest.approx(0.01, rel=1e-3)


def overflow_at(monkeypatch, *steps):
    """The gradients of these steps overflow on some rank: what the ranks add up is infinite for all of them."""
    counter = iter(range(10**6))

    def reduce(self, network, objective):
        if next(counter) in steps:
            next(p.grad for p in network if p.grad is not None)[(0,) * 4] = torch.inf

    monkeypatch.setattr(Ranks, "reduce", reduce)


def test_a_step_that_overflows_is_left_out_and_the_log_tells(fp16, tmp_path, monkeypatch):
    overflow_at(monkeypatch, 1, 2)
    taken = []
    step = torch.optim.AdamW.step
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self, *args: (taken.append(1), step(self, *args))[1])
    run = nearkin.train(fp16, runs=tmp_path)
    log = steps_of(run)
    assert [line["skipped"] for line in log[:4]] == [False, True, True, False]
    assert [line["scale"] for line in log[:4]] == [65536, 32768, 16384, 16384]
    assert len(taken) == len(log) - 2
    assert all(value.isfinite().all() for value in run.load("model.pt")["model"].values())


def test_gradients_that_always_overflow_end_the_run(fp16, tmp_path, monkeypatch):
    overflow_at(monkeypatch, *range(100))
    with pytest.raises(NearkinError, match=r"train\.amp=fp16: gradients are infinite at every scale.*bf16 or false"):
        nearkin.train(fp16 | {"epochs": 10}, runs=tmp_path)


def test_the_scale_is_in_the_checkpoint(fp16, tmp_path, monkeypatch):
    """Stopped after a step that lowered the scale: the run ends with the bits of one that never stopped."""

    def stop(entry):
        if entry.get("step") == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        overflow_at(patch, 1)
        whole = nearkin.train(fp16, runs=tmp_path / "whole")
        overflow_at(patch, 1)
        with pytest.raises(KeyboardInterrupt):
            nearkin.train(fp16, runs=tmp_path / "parts", watch=stop)
    parts = nearkin.train(fp16, runs=tmp_path / "parts")
    assert [line["scale"] for line in steps_of(parts)] == [line["scale"] for line in steps_of(whole)]
    assert steps_of(parts)[-1]["scale"] == 32768
    one, two = (run.load("model.pt")["model"] for run in (whole, parts))
    assert all(torch.equal(one[key], two[key]) for key in one)
