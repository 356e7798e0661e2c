"""The settings of a run that are the same for all parts: network, memory, training.

Every setting says what it means and where its default comes from; None leaves it open, and runs/defaults.py fills it.
`nearkin explain KEY` and docs/settings.md show these words.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from nearkin.config.born import born, unset
from nearkin.config.bounds import known_device, one_of
from nearkin.config.parts import Settings, is_stored
from nearkin.consent import is_path
from nearkin.errors import NearkinError
from nearkin.registry import BACKBONES, HEADS


class Frozen(Settings):
    """Settings that do not change once they are made; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ModelSpec(Frozen):
    """The network: `model.*`."""

    backbone: str = born(
        "convnet",
        about="The image network without its classifier: a registered name (`nearkin list backbones`), `timm/NAME` for "
        "a model of the package timm, or the import path of a class of your own.",
        source="convnet is small enough to train from random weights on one CPU core.",
    )
    weights: str | None = born(
        None,
        about="What the backbone starts from: null is random numbers, `imagenet` the weights that come in a Python "
        "package (efficientnet_lite0, efficientnet_lite1) or lie under their well-known name in the folder "
        "NEARKIN_WEIGHTS (`nearkin doctor --weights` lists the names); anything else is a local checkpoint (.pth, .pt "
        "or .safetensors), or the model.pt of a run, whose head is left out. Given weights change the defaults of "
        "train.lr, train.batch, model.pool, model.dim and model.freeze_bn. A file counts by its content, not by its "
        "name. Weights of a run that learned from this run's test images or classes are refused.",
    )
    pool: Literal["avg", "max", "both"] | None = unset(
        "avg",
        about="How the last feature map of the backbone becomes one vector: its average, its maximum, or the sum of "
        "both.",
        filled="avg from random weights, both from given weights",
        source="both as in the code of ProxyAnchor.",
    )
    head: str | None = unset(
        "linear",
        about="What turns the pooled feature into the embedding. `linear` is one layer; `none` takes the pooled "
        "feature itself, and model.dim is not read; `pca`, `pca_whitening`, `lda`, `nca`, `lmnn`, `mcml`, `pola`, "
        "`schultz_joachims`, `kwok_tsang`, `itml` and `mmc` are computed from the "
        "untrained features of the training images and need epochs=0; `drml` belongs to method=drml; an import path "
        "names a class of your own.",
        filled="the method's head (drml), else linear",
    )
    dim: int | None = unset(
        ge=1,
        about="The number of dimensions of an embedding. More can tell more classes apart, and cost memory and time in "
        "every search.",
        filled="128 from random weights; from given weights the width of the pooled feature (EfficientNet-Lite: 1280) "
        "where the head begins as that feature, else 512",
        source="128 measured on glyphs; the width measured on CUB's training classes and on groceries "
        "(docs/recipe.md); 512 as in the code of ProxyAnchor.",
        read=lambda run: run.spec.model.head != "none",
    )
    init: Literal["kaiming", "torch", "pca"] | None = unset(
        "kaiming",
        about="What a linear head starts from. `kaiming`: normal numbers of variance 2/D, bias 0; `torch`: what "
        "PyTorch's layer does by itself, uniform in ±1/√F, which is √(6F/D) times smaller (F features, D dimensions) "
        "and matters for losses on raw vectors; `pca`: the first D principal axes of the pooled features of training "
        "images (of at most 4,096, drawn by the seed), so that training starts from what the untrained "
        "network retrieves; where D is above F, the other dimensions start at 0. Other heads do not read it; the head "
        "of method=drml refuses pca.",
        filled="kaiming from random weights, pca from given weights",
        source="kaiming as in the codes of ProxyAnchor, HIST and DRML; torch as in those of Roth et al. and Musgrave "
        "et al. 2020; pca measured on CUB's training classes and on groceries (docs/recipe.md).",
        read=lambda run: run.head_takes("init"),
    )
    parts: int = born(
        4,
        ge=1,
        about="Into how many parts a drml head cuts feature and embedding; it must divide the width of both. Other "
        "heads do not read it.",
        source="Zheng et al. 2021.",
        read=lambda run: run.head_takes("parts"),
    )
    pre_norm: Literal["none", "layer"] = born(
        "none",
        about="What stands between pooling and head: nothing, or a LayerNorm without parameters.",
        source="layer as in ProxyNCA++ (Teh et al. 2020).",
    )
    norm: Literal["none", "layer"] | None = unset(
        "none",
        about="What follows the head: nothing, or a LayerNorm without parameters. The L2 normalisation that retrieval "
        "needs happens in any case and has no setting.",
        filled="the loss's: layer for hist, none for all others",
        source="Lim et al. 2022 for hist.",
    )
    freeze_bn: bool | None = unset(
        about="Keep the mean and variance of every BatchNorm of the backbone as they are; its scale and shift still "
        "train, unless model.bn_affine=false. With true, no image depends on the others of its batch inside the "
        "network, which train.chunk needs.",
        filled="false from random weights, true from given weights",
        source="Frozen statistics as in the code of Roth et al. 2020.",
        read=lambda run: run.trained and run.spec.model.cut != "all",
    )
    bn_affine: bool = born(
        True,
        about="Whether scale and shift of every BatchNorm of the backbone train. false freezes them as given, and "
        "needs model.freeze_bn=true.",
        source="They train in the codes of Roth et al. 2020 and, after the warm-up, of ProxyAnchor.",
        read=lambda run: run.trained and run.spec.model.cut != "all",
    )
    cut: str = born(
        "none",
        about="How much of the backbone is frozen. `none`: all of it trains. The name of a stage: all stages up to and "
        "including it are frozen; their output is computed once, kept in the cache as float16, and only the rest "
        "trains. `all`: the head alone trains, on pooled features. A cut makes epochs many times faster and the "
        "network less able to learn; it is meant for given weights.",
    )
    views: int = born(
        2,
        ge=1,
        about="With a cut, in how many versions each training image is computed, because images behind a cut cannot be "
        "augmented anew at every step: 1 is the plain image, 2 adds its mirror image, more add random crops (where "
        "the data must not be mirrored, crops take that place too). Every time an image is used, one of its versions "
        "is drawn. Time and disk grow with it; without a cut it is not read.",
        read=lambda run: run.trained and run.spec.model.cut != "none",
    )

    @model_validator(mode="after")
    def _known(self, info: ValidationInfo) -> "ModelSpec":
        for registry, name in ((BACKBONES, self.backbone), (HEADS, self.head)):
            if name is not None and not (is_path(name) and is_stored(info)):  # imported when it is built
                registry[name]
        return self


class MemorySpec(Frozen):
    """Cross-batch memory (memory.py): `memory.*`."""

    size: int = born(
        0,
        ge=0,
        about="How many embeddings of the last batches are kept, as further references that the batch is compared "
        "with; 0: no memory. A loss that cannot use one refuses it and names those that can.",
        source="The method is that of Wang et al. 2020.",
        read=lambda run: run.trained,
    )
    warmup: int = born(
        1,
        ge=0,
        about="For how many epochs the memory is filled but not used yet, because embeddings change fast at first.",
        source="Wang et al. 2020 wait 1,000 steps, about an epoch of SOP.",
        read=lambda run: run.spec.memory.size > 0,
    )


class GroupSpec(Frozen):
    """Settings of one parameter group (backbone, head, loss, ...) that differ from the common ones:
    `train.groups.NAME.*`."""

    lr: float | None = born(
        None,
        ge=0,
        about="The learning rate of this group. null: that of the loss where it brings one (proxies learn at 50 or 100 "
        "times train.lr, as docs/definitions.md says), else train.lr.",
        null=lambda run: run.spec.train.lr if run.group in ("backbone", "head") else None,
    )
    weight_decay: float | None = born(
        None,
        ge=0,
        about="The weight decay of this group. null: train.weight_decay.",
        null=lambda run: run.spec.train.weight_decay,
    )
    eps: float | None = born(
        None,
        gt=0,
        about="The ε of this group. null: train.eps.",
        read=lambda run: run.spec.train.optimiser != "sgd",
        null=lambda run: run.spec.train.eps,
    )


class TrainSpec(Frozen):
    """Optimiser, epochs, batches, selection: `train.*`."""

    optimiser: Literal["sgd", "rmsprop", "adam", "adamw"] = born(
        "adamw",
        about="The rule by which gradients change the weights: one of PyTorch's optimisers.",
        source="ProxyAnchor's code.",
        read=lambda run: run.trained,
    )
    lr: float | None = unset(
        gt=0,
        about="The learning rate: how far one step moves the weights of backbone and head. Losses may multiply it for "
        "parameters of their own; train.groups sets it for one group.",
        filled="1e-3 from random weights, 3e-4 from given weights, 1e-3 where the head alone trains (cut=all)",
        source="Measured on glyphs (batches of 32 x 4) and on CUB at 128 px.",
        read=lambda run: run.trained,
    )
    weight_decay: float = born(
        1e-4,
        ge=0,
        about="How strongly the optimiser draws all weights towards 0.",
        source="The codes of ProxyAnchor and of Psomas 2020.",
        read=lambda run: run.trained,
    )
    momentum: float = born(
        0.9,
        ge=0,
        lt=1,
        about="The momentum of sgd and rmsprop; adam and adamw do not read it.",
        source="Musgrave et al. 2020, a metric learning reality check.",
        read=lambda run: run.trained and run.spec.train.optimiser in ("sgd", "rmsprop"),
    )
    eps: float = born(
        1e-8,
        gt=0,
        about="The ε that keeps the divisions of adam, adamw and rmsprop finite; sgd does not read it.",
        source="PyTorch's.",
        read=lambda run: run.trained and run.spec.train.optimiser != "sgd",
    )
    epochs: int | None = unset(
        ge=0,
        about="How many epochs are trained. An epoch is one pass of the sampler, about as many steps as the training "
        "images fill batches, or train.batches_per_epoch steps. 0 is the untrained network: it is embedded and "
        "tested, and loss, sampler and optimiser do not count.",
        filled="8 from random weights and for heads alone, 12 from given weights",
        source="Measured on glyphs and on CUB's training classes (docs/recipe.md); heads alone (cut=all) overfit early "
        "there.",
    )
    batches_per_epoch: int | None = unset(
        ge=1,
        about="How many steps make an epoch; null: one pass of the sampler. All of training is then epochs x "
        "batches_per_epoch steps, however many images there are. Validation, schedule, warm-up and patience count in "
        "these epochs.",
        filled="none: one pass of the sampler; from given weights and with fewer than 32 training classes, unless "
        "train.epochs is set, so few that no class is shown more than 400 times in all",
        source="Measured on CUB's training classes and on groceries (docs/recipe.md).",
        read=lambda run: run.trained,
    )
    batch: int | None = unset(
        ge=2,
        about="How many images stand in a batch: those that a loss on pairs compares with each other in one step. "
        "Another batch gives another result. Where it does not fit into memory, set train.chunk, not this.",
        filled="128 from random weights, 96 from given weights; fewer where the training images cannot fill it",
        source="Measured on glyphs (32 x 4) and on CUB at 128 px.",
        read=lambda run: run.trained,
    )
    chunk: int | None = born(
        None,
        ge=1,
        about="How many images of a batch pass through the network at a time; null: the whole batch. It saves memory "
        "at the price of a second forward pass, and the gradient stays that of the whole batch. It needs "
        "model.freeze_bn=true (or a network without BatchNorm), and no mixup.",
        source="Two passes as in Gao et al. 2021, gradient caching.",
        read=lambda run: run.trained,
    )
    schedule: Literal["constant", "step", "cosine"] = born(
        "constant",
        about="How the learning rate changes: not at all; times train.gamma after every train.step epochs; or along "
        "half a cosine from train.lr down to 0 over all epochs.",
        read=lambda run: run.trained,
    )
    step: int = born(
        10,
        ge=1,
        about="Of schedule=step: the epochs between two drops of the learning rate.",
        source="ProxyAnchor's code.",
        read=lambda run: run.trained and run.spec.train.schedule == "step",
    )
    gamma: float = born(
        0.5,
        gt=0,
        le=1,
        about="Of schedule=step: the factor of every drop.",
        source="ProxyAnchor's code.",
        read=lambda run: run.trained and run.spec.train.schedule == "step",
    )
    warmup: int | None = unset(
        0,
        ge=0,
        about="For how many of the epochs, at the beginning, only new parameters train: head, proxies, and a backbone "
        "from random weights. A backbone with given weights waits.",
        filled="0 from random weights, 2 epochs from given weights, at most a quarter of them",
        source="The head before the network as Kumar et al. 2022 have it; measured on CUB's training classes and on "
        "groceries (docs/recipe.md).",
        read=lambda run: run.warms_up,
    )
    warmup_counts: bool = born(
        True,
        about="Do the warm-up epochs count among train.epochs? With false they come before the first epoch: the "
        "schedule stands still, and nothing is validated until they are over.",
        source="They count in ProxyAnchor's code; in HIST's (Lim et al. 2022) they come before.",
        read=lambda run: run.trained and bool(run.spec.train.warmup),
    )
    clip: float | None = born(
        None,
        gt=0,
        about="The bound on gradients, against steps that are far too large; null: no bound. train.clip_by says what "
        "it bounds.",
        read=lambda run: run.trained,
    )
    clip_by: Literal["value", "norm"] = born(
        "value",
        about="What train.clip bounds: every entry of the gradient (value), or the length of the whole gradient, all "
        "parameters together (norm).",
        source="ProxyAnchor's code clips by value, at 10.",
        read=lambda run: run.trained and run.spec.train.clip is not None,
    )
    average: float | None = unset(
        0.0,
        ge=0,
        lt=1,
        about="The decay of a moving average of the weights, of the network and of the loss's parameters: after every "
        "step m = d m + (1 - d) θ. Validation measures the averaged weights and the stored model has them; training "
        "goes on from θ. 0: nothing is averaged.",
        filled="0 from random weights, 0.995 from given weights",
        source="Izmailov et al. 2018 for averaged weights; even over the first 1/(1 - d) steps, as Tarvainen and "
        "Valpola 2017 begin; measured on CUB's training classes and on groceries (docs/recipe.md).",
        read=lambda run: run.trained,
    )
    blend: Literal["auto"] | Annotated[float, Field(ge=0, le=1)] | None = unset(
        1.0,
        about="How far the stored network goes from its first weights θ0 towards the trained ones θ1, as a number a in "
        "θ0 + a (θ1 - θ0). 1 is the trained network, 0 the network as it began; between them a pretrained network "
        "keeps more of what it knew. auto tries several a on the validation images and keeps the one that train.select "
        "likes best.",
        filled="1 from random weights, 0.85 from given weights",
        source="Wortsman et al. 2022, WiSE-FT; measured on CUB's training classes and on groceries (docs/recipe.md).",
        read=lambda run: run.trained,
    )
    groups: dict[str, GroupSpec] = born(
        {},
        about="Settings of single parameter groups, as in train.groups.head.lr=1e-3: backbone, head, loss (proxies, "
        "β); distributions and hgnn of loss=hist; decoder of method=drml.",
        read=lambda run: run.trained,
    )
    eval_every: int = born(
        1,
        ge=1,
        about="Every how many epochs the network is measured on the validation images; the last epoch always is. Only "
        "measured epochs can be chosen. Raise it when validation takes longer than an epoch.",
        read=lambda run: run.selects,
    )
    patience: int | None = born(
        None,
        ge=1,
        about="Training stops early when this many epochs have passed since the best validation result; null: it never "
        "does. The best epoch is chosen either way, so patience only saves time. At least train.eval_every; a "
        "protocol without validation images does not read it. A rule that stops when more than p epochs have passed, "
        "as that of Musgrave et al. 2020, is p + 1 here.",
        read=lambda run: run.selects,
    )
    select: str = born(
        "map_at_r",
        about="The metric on validation images by which the epoch is chosen, as in recall@1 or nmi (`nearkin list "
        "metrics`). The table of a study is sorted by it. With protocol=standard nothing validates, and the last "
        "epoch is taken.",
        source="MAP@R is Musgrave et al.'s, 2020: it reads a query's whole neighbourhood, not the first neighbour "
        "alone.",
        read=lambda run: run.selects,
    )
    seed: int = born(
        0,
        ge=0,
        about="Draws the first weights, the batches, crops, dropout and all that loss and miner draw. Two seeds differ "
        "like two repetitions. It does not divide the classes, which is protocol.seed, nor draw the glyphs, which is "
        "data.seed.",
    )
    device: str = born(
        "auto",
        about="What computes: cpu, cuda (an NVIDIA GPU; cuda:1 is the second one), mps (Apple's). auto is cuda, else "
        "mps, else the CPU; `nearkin doctor` says what is there. The workers of a study spread over the GPUs. It is "
        "not part of a run's name: a run that was begun on one device may go on on another, to rounding.",
    )
    amp: Literal["bf16", "fp16", True, False] = born(
        False,
        about="Compute the network in half precision where PyTorch holds that to be safe: faster on newer GPUs, a "
        "little less exact. bf16 (or true) is bfloat16. fp16 is for older GPUs: its range is small, so the loss is "
        "scaled up and the gradients down again, and a step whose gradients overflow is left out, which the log tells. "
        "Losses, weights and evaluation stay float32. Some CPUs kill the process at the first product in half "
        "precision; `nearkin doctor` tries that.",
        read=lambda run: run.trained,
    )
    loaders: int | None = born(
        None,
        ge=0,
        about="How many threads cut the crops of the next batches while the device computes; 0: none, each batch is "
        "loaded when its turn comes. null: 0 on a CPU, where they would take the cores away from the network, else one "
        "less than there are cores, at least 1 and at most 8. No bit of a result depends on it, and it is not part of "
        "a run's name.",
    )
    curve: bool = born(
        False,
        about="Keep the embeddings of the test images after every epoch, without their labels, so that the test can "
        "draw a curve over epochs (curve.json). The choice of the epoch never sees it. It is not part of a run's "
        "name, and a run that is stored already gets no curve afterwards; one that was begun without it does not go on "
        "with it, nor the other way round, because the curve would lack epochs.",
    )

    @field_validator("device")
    @classmethod
    def _is_a_device(cls, name: str) -> str:
        known_device(name)
        return name

    @field_validator("amp", mode="before")
    @classmethod
    def _is_a_precision(cls, amp: Any) -> Any:
        one_of("bf16", "fp16", "true", "false", **{"train.amp": str(amp).lower()})
        stored = {"bf16": True, "true": True, "false": False}  # as it was before there was fp16
        return stored.get(str(amp).lower(), "fp16")

    @model_validator(mode="after")
    def _stops_on_validation(self) -> "TrainSpec":
        if self.patience is not None and self.patience < self.eval_every:
            raise NearkinError(
                f"train.patience={self.patience} is below train.eval_every={self.eval_every}: training would stop "
                f"before it is validated again; at least {self.eval_every}"
            )
        return self
