"""The stored networks without training that stand beside a run."""

from nearkin.comparison.gather import Member
from nearkin.config.parse import flatten
from nearkin.runs.store import Run, Store

NETWORK = ("model.backbone", "model.weights", "model.pool", "data.size", "data.crop")
POOLED = "pooled feature"


def twins_of(member: Member, store: Store) -> dict[str, Member]:
    """The stored untrained networks like this one, tested on the same images: name -> one, of the same seed where there
    is one; first the pooled feature, which a person would take instead of training."""
    if member.untrained:
        return {}
    twins: dict[str, Member] = {}
    for run in store.runs():
        try:
            text = (run.path / "spec.yaml").read_text(errors="replace")
        except OSError:  # damaged, or just removed
            continue
        if "epochs: 0\n" not in text or member.head["data_hash"] not in text or not run.tested:
            continue  # most runs are none: do not parse them
        if run.damage() is not None:
            continue
        words = flatten(run.stored)
        same = all(words.get(key) == member.settings.get(key) for key in NETWORK)
        pooled = words["model.head"] == "none"
        same_head = pooled or all(words[key] == member.settings[key] for key in ("model.head", "model.dim"))
        if words.get("train.epochs") != 0 or not same or not same_head or not _same_test(member.run, run):
            continue
        name = POOLED if pooled else "random head"
        twin = Member({}, words["train.seed"], words.get("protocol.fold"), run, name)
        if name not in twins or twin.seed == member.seed:
            twins[name] = twin
    return dict(sorted(twins.items(), key=lambda twin: twin[0] != POOLED))


def _same_test(first: Run, second: Run) -> bool:
    """Are the same rows queries and gallery? The training rows of the two may differ."""
    if first.head()["split_hash"] == second.head()["split_hash"]:
        return True
    rows = [
        {key: split.get(key) for key in ("query", "gallery")}
        for split in (first.read_json("split.json"), second.read_json("split.json"))
    ]
    return rows[0] == rows[1] and rows[0]["query"] is not None
