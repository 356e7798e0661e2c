"""Children that die are noticed, and the cure is named."""

import pytest

from nearkin.engine import precision as traps
from nearkin.errors import NearkinError


def test_a_child_that_is_killed_is_noticed():
    assert traps.survives("pass") == (True, "")
    alive, said = traps.survives("import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert not alive
    assert said == "killed by signal 4"
    assert traps.survives("raise ValueError('no')") == (False, "ValueError: no")


def test_the_cure_is_named_when_it_helps(monkeypatch):
    code = "import os, signal; 'ONEDNN_MAX_CPU_ISA' in os.environ or os.kill(os.getpid(), signal.SIGILL)"
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr(traps, "BF16", code)
    assert "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16" in traps.bf16_trap()
    monkeypatch.setattr(traps, "BF16", "raise SystemExit(1)")
    assert "train.amp=false" in traps.bf16_trap()
    monkeypatch.setattr(traps, "BF16", "pass")
    assert traps.bf16_trap() is None


def test_mixed_precision_is_refused_where_it_kills(tiny, tmp_path, monkeypatch):
    import nearkin

    monkeypatch.setattr("nearkin.runs.fit.bf16_trap", lambda: "a bf16 product kills the process on this CPU")
    with pytest.raises(NearkinError, match=r"train.amp=true: a bf16 product kills"):
        nearkin.train(tiny | {"train.amp": True, "train.device": "cpu"}, runs=tmp_path)
