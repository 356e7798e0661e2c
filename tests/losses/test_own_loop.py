"""Losses and miners in a loop of one's own: rates for one's own optimiser, labels as they come, what is refused and in
which words, the conventions of pytorch-metric-learning, and names that a tab completes."""

import inspect

import numpy as np
import pytest
import torch
from loss_cases import make, value_and_gradients
from pytorch_metric_learning import losses as pml
from pytorch_metric_learning import miners as pml_miners
from pytorch_metric_learning import reducers
from torch import nn

import nearkin
from nearkin import losses, miners
from nearkin.engine.objective import Objective
from nearkin.errors import NearkinError
from nearkin.losses.foreign import ForeignLoss
from nearkin.memory import Memory
from nearkin.methods import DRML
from nearkin.miners import as_indices
from nearkin.miners.foreign import ForeignMiner
from nearkin.pairs import Embedded, PairMasks, Pairs, Triplets
from nearkin.registry import LOSSES, MINERS

every_loss = pytest.mark.parametrize("name", LOSSES.names())
every_miner = pytest.mark.parametrize("name", MINERS.names())
CLASSES, DIM = 4, 6
NAMES = np.array(["owl", "ant", "fox", "bee"])  # sorted: ant 0, bee 1, fox 2, owl 3
NUMBERS = torch.tensor([3, 0, 2, 1])


@pytest.fixture
def z():
    return torch.randn(12, DIM, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def y():
    return torch.arange(12) % CLASSES


def make_miner(name):
    return MINERS[name](**({"margin": 0.2} if name == "semihard" else {}))


def generator():
    return torch.Generator().manual_seed(7)


def refused(call, *words):
    """The one line in which a call is refused."""
    with pytest.raises(NearkinError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message
    return message


# -- learning rates -------------------------------------------------------------------------------------------


@every_loss
def test_the_groups_have_the_rates_that_our_optimiser_gives(name):
    loss = make(name)
    rated, ours = loss.parameter_groups(lr=1e-4), loss.parameter_groups()
    assert [group["params"] for group in rated] == [group["params"] for group in ours]
    for group, own in zip(rated, ours, strict=True):
        assert group["lr"] == own.get("lr", 1e-4 * own.get("lr_factor", 1.0))
        assert "lr_factor" not in group


def test_an_optimiser_of_ones_own():
    model, loss = nn.Linear(3, DIM), losses.ProxyAnchor(CLASSES, DIM)
    groups = [{"params": model.parameters()}, *loss.parameter_groups(lr=1e-4)]
    for kind in (torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop):
        optimiser = kind(groups, lr=1e-4)
        assert [group["lr"] for group in optimiser.param_groups] == pytest.approx([1e-4, 1e-2])
        value = loss(model(torch.randn(8, 3)), torch.arange(8) % CLASSES)
        value.backward()
        optimiser.step()
    assert losses.Triplet().parameter_groups(lr=1e-4) == []


def test_rates_of_its_own_stay():
    hist = losses.HIST(CLASSES, DIM)
    assert [(g["name"], g["lr"]) for g in hist.parameter_groups(lr=1e-9)] == [("distributions", 0.05), ("hgnn", 5e-4)]
    assert [g.get("lr") for g in hist.parameter_groups()] == [0.05, 5e-4]


def test_objectives_and_methods_give_rates_too():
    def objective(dim):
        return Objective(losses.ProxyAnchor(CLASSES, dim))

    assert [g["lr"] for g in objective(DIM).parameter_groups(lr=1e-3)] == pytest.approx([0.1])
    assert [g["lr_factor"] for g in objective(DIM).parameter_groups()] == [100.0]
    method = DRML(objective(DIM), [objective(3), objective(3)], 5, 3)
    rates = {g["name"]: g["lr"] for g in method.parameter_groups(lr=1e-3)}
    assert rates == pytest.approx({"loss": 0.1, "decoder": 1e-3})
    assert sum(len(g["params"]) for g in method.parameter_groups(lr=1e-3)) == len(list(method.parameters()))
    assert torch.optim.AdamW(method.parameter_groups(lr=1e-3), lr=1e-3)


def test_a_loss_from_outside_need_not_know_of_rates():
    class Mine(losses.ProxyAnchor):
        def parameter_groups(self):
            return [{"name": "mine", "params": [self.proxies], "lr_factor": 3.0}]

    class Child(Mine):
        def parameter_groups(self):
            """Mine, faster."""
            return [{**group, "lr_factor": 5.0} for group in super().parameter_groups()]

    class Knows(losses.ProxyAnchor):
        def parameter_groups(self, lr=None):
            return [{"name": "mine", "params": [self.proxies], "lr": lr}]

    assert [Mine(CLASSES, DIM).parameter_groups(lr=0.5)[0][k] for k in ("name", "lr")] == ["mine", 1.5]
    assert Mine(CLASSES, DIM).parameter_groups()[0]["lr_factor"] == 3.0
    assert Child(CLASSES, DIM).parameter_groups(lr=0.5)[0]["lr"] == 2.5
    assert Child.parameter_groups.__doc__ == "Mine, faster."
    assert Knows(CLASSES, DIM).parameter_groups(lr=0.5)[0]["lr"] == 0.5


@pytest.mark.parametrize("of", [losses.Loss, losses.HIST, Objective, DRML, nearkin.methods.Method])
def test_the_rate_is_in_the_signature(of):
    assert "lr" in inspect.signature(of.parameter_groups).parameters
    assert "lr" in of.parameter_groups.__doc__


@pytest.mark.parametrize("lr", [-1.0, float("nan"), "fast"])
def test_a_rate_that_is_none(lr):
    refused(lambda: losses.ProxyAnchor(CLASSES, DIM).parameter_groups(lr=lr), f"lr={lr!r}")


# -- labels as they come --------------------------------------------------------------------------------------

SAME = {
    "list": lambda y: y.tolist(),
    "tuple": lambda y: tuple(y.tolist()),
    "numpy": lambda y: y.numpy(),
    "numpy uint16": lambda y: y.numpy().astype(np.uint16),
    "numpy objects": lambda y: y.numpy().astype(object),
    "int32": lambda y: y.int(),
    "uint8": lambda y: y.to(torch.uint8),
    "list of tensors": lambda y: list(y),
    "list of numpy integers": lambda y: list(y.numpy()),
}


@every_loss
@pytest.mark.parametrize("form", SAME)
def test_labels_may_be(name, form, z, y):
    loss = make(name)
    torch.testing.assert_close(loss(z, SAME[form](y), generator=generator()), loss(z, y, generator=generator()))


@every_miner
@pytest.mark.parametrize("form", SAME)
def test_labels_of_a_miner_may_be(name, form, z, y):
    miner = make_miner(name)
    found, wanted = miner(z, SAME[form](y), generator=generator()), miner(z, y, generator=generator())
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


@every_loss
@pytest.mark.parametrize("form", ["list", "U", "O", "S"])
def test_strings(name, form, z, y):
    loss, words = make(name), NAMES[y].tolist() if form == "list" else NAMES[y].astype(form)
    if getattr(loss, "num_classes", None) is None:
        numbered = loss(z, NUMBERS[y], generator=generator())
        torch.testing.assert_close(loss(z, words, generator=generator()), numbered)
    else:
        refused(lambda: loss(z, words), "labels are strings", type(loss).__name__, "0 to 3", "ant")
        refused(lambda: loss(Pairs.of(z, words)), "labels are strings")
        refused(lambda: Objective(loss)(z, words), "labels are strings")


@every_miner
def test_a_miner_takes_strings(name, z, y):
    miner = make_miner(name)
    found = miner(z, NAMES[y].tolist(), generator=generator())
    wanted = miner(z, NUMBERS[y], generator=generator())
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_strings_of_batch_and_references_are_numbered_together(z, y):
    pairs = Pairs.of(z[:2], ["fox", "owl"], ref_emb=z, ref_labels=NAMES[y])
    assert torch.equal(pairs.same, torch.from_numpy(NAMES[y] == np.array([["fox"], ["owl"]])))
    assert pairs.classes == ("ant", "bee", "fox", "owl")
    refused(lambda: Pairs.of(z[:2], ["fox", "owl"], ref_emb=z, ref_labels=y), "strings", "integers")


def test_strings_beside_a_memory(z, y):
    """Earlier batches would have numbered them otherwise."""
    memory = Memory(16, DIM)
    memory.add(z, y, step=1)
    objective = Objective(losses.Contrastive())
    assert objective(z, y.tolist(), memory=memory).isfinite()
    refused(lambda: objective(z, NAMES[y], memory=memory), "labels are strings", "memory")


def test_a_foreign_loss_takes_strings_unless_it_has_proxies(z, y):
    triplet = ForeignLoss(pml.TripletMarginLoss())
    assert triplet(z, NAMES[y]) == triplet(z, y)
    proxies = ForeignLoss(pml.ProxyAnchorLoss(CLASSES, DIM))
    refused(lambda: proxies(z, NAMES[y]), "labels are strings", "ProxyAnchorLoss")


WRONG_LABELS = {
    "none": (lambda y: None, ["labels are missing"]),
    "too few": (lambda y: y[:5], ["12 embeddings", "(5,)", "one label per embedding"]),
    "a column": (lambda y: y[:, None], ["(12, 1)", "one label per embedding", "labels.squeeze(1)"]),
    "one-hot": (lambda y: torch.eye(4)[y], ["(12, 4)", "one label per embedding", "labels.argmax(1)"]),
    "one-hot of integers": (lambda y: torch.eye(4)[y].long().tolist(), ["(12, 4)", "labels.argmax(1)"]),
    "a number": (lambda y: 3, ["shape ()", "one label per embedding"]),
    "floats": (lambda y: y.float(), ["torch.float32", "integers", "labels.long()"]),
    "floats of numpy": (lambda y: y.double().numpy(), ["float64", "integers"]),
    "list of floats": (lambda y: y.double().tolist(), ["float64", "integers"]),
    "complex": (lambda y: y.to(torch.complex64), ["complex64", "integers"]),
    "ragged": (lambda y: [[1], [2, 3]] * 6, ["labels", "list"]),
    "none among them": (lambda y: [None, *y.tolist()[1:]], ["labels", "None"]),
    "words and numbers": (lambda y: ["1", *y.tolist()[1:]], ["labels", "strings and"]),
    "words and numbers of numpy": (lambda y: np.array(["1", *y.tolist()[1:]], dtype=object), ["labels", "strings and"]),
    "a dictionary": (lambda y: {"a": 1}, ["labels", "dict"]),
    "dates": (lambda y: np.full(12, np.datetime64("2020-01-01")), ["datetime64"]),
}


@pytest.mark.parametrize("wrong", WRONG_LABELS)
def test_labels_that_are_none(wrong, z, y):
    change, words = WRONG_LABELS[wrong]
    for part in (
        losses.Triplet(),
        losses.ProxyAnchor(CLASSES, DIM),
        miners.Random(),
        miners.MultiSimilarity(),
        Objective(losses.Contrastive()),
    ):
        refused(lambda part=part: part(z, change(y)), *words)


WRONG_EMBEDDINGS = {
    "numpy": (lambda z: z.numpy(), ["numpy array", "torch.from_numpy(embeddings)"]),
    "list": (lambda z: z.tolist(), ["list", "tensor"]),
    "one vector": (lambda z: z[0], ["(6,)", "a batch is (B, D)"]),
    "three dimensions": (lambda z: z[None], ["(1, 12, 6)", "a batch is (B, D)"]),
    "a map": (lambda z: z[:, :, None, None], ["(12, 6, 1, 1)", "a batch is (B, D)", "embeddings.flatten(1)"]),
    "integers": (lambda z: z.long(), ["torch.int64", "embeddings.float()"]),
    "complex": (lambda z: z.to(torch.complex64), ["torch.complex64"]),
    "nothing": (lambda z: None, ["NoneType", "tensor"]),
    "mixed": (lambda z: Embedded(z, mix="a mix"), ["mixed", "Objective"]),
}


@pytest.mark.parametrize("wrong", WRONG_EMBEDDINGS)
def test_embeddings_that_are_none(wrong, z, y):
    change, words = WRONG_EMBEDDINGS[wrong]
    for part in (losses.Triplet(), losses.ProxyAnchor(CLASSES, DIM), miners.Random(), miners.MultiSimilarity()):
        refused(lambda part=part: part(change(z), y), *words)
        refused(lambda part=part: part(z, y, ref_emb=change(z), ref_labels=y))


def test_what_a_model_of_ours_returns(z, y):
    assert losses.Triplet()(Embedded(z), y) == losses.Triplet()(z, y)
    assert torch.equal(miners.All()(Embedded(z), y).anchor, miners.All()(z, y).anchor)


def test_labels_on_another_device_are_moved(z, y):
    there = Pairs.of(z.to("meta"), y)
    assert there.labels.device.type == "meta"


# -- nothing to compare ---------------------------------------------------------------------------------------

EMPTY_LABELS = {
    "tensor": torch.zeros(0, dtype=torch.long),
    "float": torch.tensor([]),
    "list": [],
    "numpy": np.array([]),
}


@every_loss
@pytest.mark.parametrize("form", EMPTY_LABELS)
def test_an_empty_batch_gives_0(name, form):
    loss = make(name)
    z = torch.zeros(0, DIM, requires_grad=True)
    value = loss(z, EMPTY_LABELS[form])
    assert value.shape == ()
    assert value == 0
    value.backward()
    assert z.grad.shape == (0, DIM)
    tuples = Triplets(*[torch.zeros(0, dtype=torch.long)] * 3)
    if Triplets in loss.accepts:
        assert loss(z, EMPTY_LABELS[form], tuples) == 0
    else:
        refused(lambda: loss(z, EMPTY_LABELS[form], tuples), "Triplets")


@every_loss
def test_an_empty_batch_has_a_graph_where_only_the_loss_is_trained(name):
    loss = make(name)
    if wanted := [p for p in loss.parameters() if p.requires_grad]:
        loss(torch.zeros(0, DIM), []).backward()
        assert all(p.grad is not None and not p.grad.any() for p in wanted)


@every_miner
def test_an_empty_batch_gives_no_tuples(name):
    found = make_miner(name)(torch.zeros(0, DIM), [])
    assert isinstance(found, MINERS[name].gives)
    assert all(part.numel() == 0 for part in found)
    assert all(part.numel() == 0 for part in as_indices(found))


def test_empty_batches_of_other_libraries(z, y):
    none = torch.zeros(0, DIM, requires_grad=True)
    for loss in (pml.TripletMarginLoss(), pml.ProxyAnchorLoss(CLASSES, DIM), pml.NTXentLoss()):
        value = ForeignLoss(loss)(none, [])
        assert value == 0
        value.backward()
    assert ForeignMiner(pml_miners.MultiSimilarityMiner())(none, []).positive.shape == (0, 0)
    assert len(ForeignMiner(pml_miners.TripletMarginMiner())(none, []).anchor) == 0


@every_loss
def test_one_embedding(name):
    assert make(name)(torch.ones(1, DIM), [0]).isfinite()


def test_no_references(z, y):
    z.requires_grad_()
    for name in LOSSES.names():
        loss = make(name)
        if loss.accepts and not loss.needs_square:
            value = loss(z, y, ref_emb=z[:0], ref_labels=y[:0])
            assert value == 0
            value.backward()


# -- the conventions of pytorch-metric-learning ---------------------------------------------------------------

TRIPLETS = (
    losses.Triplet(squared=False, margin=0.2),
    pml.TripletMarginLoss(margin=0.2, reducer=reducers.MeanReducer()),
)
CONTRASTIVE = (losses.Contrastive(), pml.ContrastiveLoss())
MULTI = (losses.MultiSimilarity(beta=50.0), pml.MultiSimilarityLoss())
MINED = {
    "triplet, triplet margin": (*TRIPLETS, pml_miners.TripletMarginMiner(margin=0.3, type_of_triplets="all")),
    "triplet, semihard": (*TRIPLETS, pml_miners.TripletMarginMiner(margin=0.3, type_of_triplets="semihard")),
    "triplet, batch hard": (*TRIPLETS, pml_miners.BatchHardMiner()),
    "contrastive, multi-similarity": (*CONTRASTIVE, pml_miners.MultiSimilarityMiner()),
    "contrastive, pair margin": (*CONTRASTIVE, pml_miners.PairMarginMiner(pos_margin=0.5, neg_margin=1.2)),
    "multi-similarity": (*MULTI, pml_miners.MultiSimilarityMiner()),
    "multi-similarity, pair margin": (*MULTI, pml_miners.PairMarginMiner(pos_margin=0.5, neg_margin=1.2)),
}


@pytest.mark.parametrize("case", MINED)
@pytest.mark.parametrize("references", [False, True])
def test_what_their_miners_give_goes_into_our_losses(case, references, z, y):
    ours, theirs, miner = MINED[case]
    z, more = z.double().requires_grad_(), {}
    if references:
        other = torch.randn(9, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        more = {"ref_emb": other, "ref_labels": torch.arange(9) % CLASSES}
    indices = miner(z, y, *more.values())
    assert any(len(index) for index in indices)
    wanted = theirs(z, y, indices, **more)
    (gradient,) = torch.autograd.grad(wanted, z)
    for value in (
        ours(z, y, indices, **more),
        ours(z, y, indices_tuple=indices, **more),
        ours(z, y, indices, *more.values()),
        ours(z, y.tolist(), [index.numpy() for index in indices], **more),
    ):
        torch.testing.assert_close(value, wanted)
        torch.testing.assert_close(torch.autograd.grad(value, z)[0], gradient)


@pytest.mark.parametrize("pair", [TRIPLETS, CONTRASTIVE, MULTI], ids=["triplet", "contrastive", "multi-similarity"])
def test_references_without_a_miner(pair, z, y):
    ours, theirs = pair
    z, other = z.double(), torch.randn(9, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    labels = torch.arange(9) % CLASSES
    torch.testing.assert_close(
        ours(z, y, ref_emb=other, ref_labels=labels), theirs(z, y, ref_emb=other, ref_labels=labels)
    )
    torch.testing.assert_close(ours(z, y, ref_emb=z, ref_labels=y), theirs(z, y, ref_emb=z, ref_labels=y))
    copy = z.clone()  # not the batch: an anchor and its copy are a pair
    torch.testing.assert_close(
        ours(z, y, ref_emb=copy, ref_labels=y.clone()), theirs(z, y, ref_emb=copy, ref_labels=y.clone())
    )


OURS_IN_THEIRS = {
    "semihard": (miners.Semihard(margin=0.2), TRIPLETS),
    "random": (miners.Random(), TRIPLETS),
    "hard": (miners.Hard(), TRIPLETS),
    "all": (miners.All(), TRIPLETS),
    "multi_similarity": (miners.MultiSimilarity(), MULTI),
    "multi_similarity, contrastive": (miners.MultiSimilarity(), CONTRASTIVE),
}


@pytest.mark.parametrize("case", OURS_IN_THEIRS)
def test_what_our_miners_give_goes_into_their_losses(case, z, y):
    miner, (ours, theirs) = OURS_IN_THEIRS[case]
    z = z.double()
    tuples = miner(z, y)
    indices = as_indices(tuples)
    assert type(indices) is tuple
    assert all(index.dtype == torch.long and index.ndim == 1 for index in indices)
    torch.testing.assert_close(theirs(z, y, indices), ours(z, y, tuples))
    torch.testing.assert_close(ours(z, y, indices), ours(z, y, tuples))
    again = as_indices(indices)  # theirs stay as they are
    assert all(a is b for a, b in zip(again, indices, strict=True))


def test_only_what_a_miner_gives_becomes_indices(z, y):
    for wrong in (None, "abc", z, (1, 2)):
        refused(lambda wrong=wrong: as_indices(wrong), "Triplets", "PairMasks")


class TheirMemory(pml.CrossBatchMemory):
    """Theirs takes losses by the names of their classes; it hands over references as arguments four and five."""

    @classmethod
    def check_loss_support(cls, loss_name):
        """Any loss."""


def test_our_losses_and_miners_inside_their_memory(z, y):
    for (ours, theirs), our_miner in ((CONTRASTIVE, None), (MULTI, None), (TRIPLETS, miners.Hard())):

        def mined(*batch, miner=our_miner):
            return as_indices(miner(*batch))

        memories = [TheirMemory(loss, DIM, 64, miner=mined if our_miner else None) for loss in (ours, theirs)]
        for seed in range(3):
            batch = torch.randn(12, DIM, generator=torch.Generator().manual_seed(seed))
            torch.testing.assert_close(*(memory(batch, y) for memory in memories))


def test_a_foreign_loss_takes_indices_too(z, y):
    theirs, indices = pml.TripletMarginLoss(), pml_miners.BatchHardMiner()(z, y)
    loss = ForeignLoss(theirs)
    assert loss(z, y, indices) == loss(z, y, indices_tuple=indices) == theirs(z, y, indices)
    assert loss(z, y, Triplets(*indices)) == theirs(z, y, indices)
    other = {"ref_emb": z.flip(0).clone(), "ref_labels": y.flip(0)}
    assert loss(z, y, **other) == theirs(z, y, **other)


def test_a_foreign_miner_sees_the_references(z, y):
    theirs = pml_miners.MultiSimilarityMiner()
    other = torch.randn(5, DIM)
    found = as_indices(ForeignMiner(theirs)(z, y, ref_emb=other, ref_labels=y[:5]))
    wanted = theirs(z, y, other, y[:5])
    assert all(
        set(map(tuple, torch.stack(found[i : i + 2]).T.tolist()))
        == set(map(tuple, torch.stack(wanted[i : i + 2]).T.tolist()))
        for i in (0, 2)
    )


def test_pairs_for_triplets_and_triplets_for_pairs(z, y):
    pairs, triplets = pml_miners.MultiSimilarityMiner()(z, y), pml_miners.BatchHardMiner()(z, y)
    refused(lambda: losses.Triplet()(z, y, pairs), "Triplet takes triplets (a, p, n)", "4 index tensors")
    refused(lambda: losses.Quadruplet()(z, y, pairs), "Quadruplet takes triplets (a, p, n)", "4 index tensors")
    refused(
        lambda: losses.MultiSimilarity()(z, y, triplets),
        "MultiSimilarity takes pairs (a1, p, a2, n)",
        "3 index tensors",
    )
    for tuples in (pairs, triplets):
        refused(lambda tuples=tuples: losses.ProxyAnchor(CLASSES, DIM)(z, y, tuples), "ProxyAnchor takes no miner")
        refused(lambda tuples=tuples: losses.NPair()(z, y, tuples), "NPair takes Couples")
        assert losses.Contrastive()(z, y, tuples).isfinite()


INDICES = {
    "two": (lambda a: (a, a), ["2 index tensors", "(a, p, n)", "(a1, p, a2, n)"]),
    "of other lengths": (lambda a: (a, a[:3], a), ["12, 3, 12"]),
    "too high": (lambda a: (a, a, a + 1), ["12", "0 to 11"]),
    "negative": (lambda a: (a - 1, a, a), ["-1", "0 to 11"]),
    "a matrix": (lambda a: (a[None], a[None], a[None]), ["(1, 12)"]),
    "floats": (lambda a: (a, a, a.float()), ["torch.float32"]),
    "words": (lambda a: "abc", ["str"]),
    "of words": (lambda a: ("a", "b", "c"), ["indices"]),
    "a tensor": (lambda a: torch.stack([a, a, a]), ["Tensor"]),
    "a number": (lambda a: 3, ["int"]),
}


@pytest.mark.parametrize("wrong", INDICES)
def test_indices_that_are_none(wrong, z, y):
    change, words = INDICES[wrong]
    refused(lambda: losses.Triplet()(z, y, change(torch.arange(12))), *words)
    refused(lambda: losses.Contrastive()(z, y, indices_tuple=change(torch.arange(12))), *words)


def test_other_calls_that_are_refused(z, y):
    loss, tuples = losses.Triplet(), miners.Hard()(z, y)
    refused(lambda: loss(z, y, tuples, indices_tuple=tuple(tuples)), "tuples", "indices_tuple")
    refused(lambda: loss(z, y, ref_emb=z.clone()), "ref_labels")
    refused(lambda: loss(z, y, ref_labels=y), "ref_emb")
    refused(lambda: loss(z, y, ref_emb=z[:, :3], ref_labels=y), "3", "6", "dimensions")
    refused(lambda: loss(z, y, ref_emb=z, ref_labels=y[:3]), "ref_labels", "(3,)")
    refused(lambda: loss(Pairs.of(z, y), ref_emb=z, ref_labels=y), "Pairs", "ref_emb")
    refused(lambda: losses.LiftedStructure()(z, y, ref_emb=z.clone(), ref_labels=y), "LiftedStructure", "ref_emb")
    refused(lambda: losses.ProxyAnchor(CLASSES, DIM)(z, y, ref_emb=z.clone(), ref_labels=y), "ProxyAnchor", "ref_emb")
    masks = miners.MultiSimilarity()(z[:5], y[:5])
    refused(lambda: losses.MultiSimilarity()(z, y, masks), "(5, 5)", "(12, 12)")


def test_only_pairs_that_the_labels_allow(z, y):
    """What contradicts the labels is refused, not dropped; a pair that is listed twice is one."""
    a, none = torch.arange(12), torch.zeros(0, dtype=torch.long)
    positive, negative = a.roll(CLASSES), a.roll(1)
    assert (y[positive] == y).all()
    assert (y[negative] != y).all()
    twice = torch.cat([a, a])
    value, _ = value_and_gradients(losses.Contrastive(), z, y, (none, none, twice, twice.roll(1)))
    masks = PairMasks(torch.zeros(12, 12, dtype=torch.bool), torch.eye(12).roll(-1, 1).bool())
    assert masks.negative[0, 11]
    assert value == losses.Contrastive()(z, y, masks) > 0
    assert losses.Contrastive()(z, y, (a, positive, a, negative)).isfinite()
    for loss in (losses.Contrastive(), losses.Triplet()):
        refused(
            lambda loss=loss: loss(z, y, (a, negative, negative)), "12 of 12 positive pairs", "two classes", "(0, 11)"
        )
        refused(lambda loss=loss: loss(z, y, (a, positive, positive)), "12 of 12 negative pairs", "one class")
    refused(lambda: losses.Contrastive()(z, y, (a, negative, a, negative)), "positive pairs (a, p) are of two classes")
    refused(lambda: losses.Contrastive()(z, y, (a, positive, a[:3], positive[:3])), "3 of 3 negative pairs (a, n)")
    refused(
        lambda: losses.Contrastive()(z, y, (a, a, a, negative)),
        "12 of 12 positive pairs (a, p) are an image and itself",
    )
    other = {"ref_emb": z.flip(0).clone(), "ref_labels": y.flip(0)}
    refused(lambda: losses.Contrastive()(z, y, (a, negative, none, none), **other), "two classes")
    assert losses.Contrastive()(z, y, (a, a.flip(0), none, none), **other).isfinite()


# -- names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", [losses, miners])
def test_tab_shows_public_names(package):
    assert dir(package) == sorted(package.__all__)


CALLED = {
    "nearkin.losses.margin": "nearkin.losses.Margin",
    "nearkin.losses.histogram": "nearkin.losses.FastAP, nearkin.losses.Histogram",
    "nearkin.losses.base": "nearkin.losses.Loss",
    "nearkin.miners.random": "nearkin.miners.Random",
    "nearkin.miners.hard": "nearkin.miners.Hard, nearkin.miners.HardFloor, nearkin.miners.Softhard",
    "nearkin.miners.all": "nearkin.miners.All",
    "nearkin.miners.foreign": "nearkin.miners.as_indices",
}


@pytest.mark.parametrize("name", CALLED)
def test_a_module_that_is_called_names_the_class(name):
    package, module = name.split(".")[1:]
    module = getattr(getattr(nearkin, package), module)
    refused(lambda: module(4), f"{name} is a module", CALLED[name])
    refused(lambda: module(margin=0.2), f"{name} is a module")
    assert inspect.ismodule(module)


def test_every_submodule_says_so():
    for package in (losses, miners):
        modules = [thing for thing in vars(package).values() if inspect.ismodule(thing)]
        assert len(modules) > 5
        for module in modules:
            refused(module, f"{module.__name__} is a module")
