"""The tables of `Saliency`, beside the published agreement of saliency maps (Kobs et al. 2021, tables 1 to
5), pair by pair."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from nearkin.analysis._alike import Aggregate
from nearkin.analysis._over_runs import OVER_CLASSES, few_seeds, interval_columns
from nearkin.present import Column, Table, pivot
from nearkin.units import COUNT, NUMBER, POINTS, SHARE

if TYPE_CHECKING:  # `import nearkin` reads no table
    from nearkin.analysis.saliency import Saliency
    from nearkin.literature.table import Cell, PublishedTable

TITLES = {
    "r": ("correlation", "Pearson correlation; mean by Fisher's z over images ± tanh of the standard deviation of z"),
    "jsd": ("divergence", "Jensen-Shannon divergence, nats x 100; mean ± std"),
}
NAMES = {  # our loss -> what the tables call it
    "contrastive": "Contrastive",
    "triplet": "Triplet",
    "nt_xent": "NTXent",
    "fastap": "FastAP",
    "snr_contrastive": "SNR Con.",
    "proxy_nca_pp": "ProxyNCA",
    "norm_softmax": "N. Softmax",
    "cosface": "CosFace",
    "arcface": "ArcFace",
    "soft_triple": "SoftTriple",
}
CORRELATION = {"cub": "kobs_t2", "cars196": "kobs_t1"}
DIVERGENCE = {"cub": "kobs_t5", "cars196": "kobs_t4", "sop": "kobs_t3"}
ELSEWHERE = "cub"  # beside data that are not in the tables


@dataclass(frozen=True)
class Published:
    """A published cell, and whether the two halves of its table differ there."""

    value: "Cell | None"
    asymmetric: bool = False

    def values(self, name: str) -> dict[str, Any]:
        """Its mean and spread, per cent as they are printed, and whether a star marks them, as columns NAME, ..."""
        mean, spread = (None, None) if self.value is None else self.value
        return {name: mean, f"{name}_spread": spread, f"{name}_asymmetric": self.asymmetric and mean is not None}


def published_name(settings: Mapping[str, Any]) -> str | None:
    """What the tables call a run with these settings (dotted keys); None where they have no such loss.

    Their ProxyNCA is that of pytorch-metric-learning, the softmax over all proxies: our proxy_nca_pp.
    """
    if settings.get("train.epochs") == 0:
        return None if settings.get("model.head") != "linear" else "None"
    loss = settings["loss.name"]
    if loss == "margin":
        return "Margin/class" if settings.get("loss.per_class", True) else "Margin"
    if loss == "multi_similarity":
        return "MS+Miner" if settings.get("miner.name") == "multi_similarity" else "MS"
    return NAMES.get(loss)


def published_tables(data: str) -> "tuple[PublishedTable | None, PublishedTable]":
    """The published correlations and divergences on a data set; those on CUB where there are none."""
    from nearkin.literature.tables import table

    if data not in DIVERGENCE:
        data = ELSEWHERE
    return (table(CORRELATION[data]) if data in CORRELATION else None), table(DIVERGENCE[data])


def published_cell(table: "PublishedTable | None", first: str | None, second: str | None) -> Published:
    """The cell of two losses by their published names; null cells are read from the other half of the table."""
    from nearkin.literature.table import Cell

    if table is None or first is None or second is None or first == second:
        return Published(None)
    i, j = table.row(first), table.find(second)
    value = table.rows[i].cells[j]
    uneven = any(flag.kind == "not symmetric" and (i, j) in flag.cells for flag in table.flags)
    return Published(value if isinstance(value, Cell) else None, uneven)


def published(saliency: "Saliency", names: tuple[str, str]) -> tuple[Published, Published]:
    """The published correlation and divergence of two methods, per cent."""
    settings = {method.name: method.members[0].settings for method in saliency.methods}
    first, second = (published_name(settings[name]) for name in names)
    correlation, divergence = published_tables(saliency.data)
    return published_cell(correlation, first, second), published_cell(divergence, first, second)


def aggregate_columns(name: str, heading: str) -> list[Column]:
    """A mean ± its spread over images, and its interval; correlations in per cent, divergences times 100."""
    look: dict[str, Any] = {"unit": SHARE if name == "r" else POINTS, "digits": 1}
    mean, spread = Column(name, heading, plus_minus=f"{name}_spread", **look), Column(f"{name}_spread", **look)
    return [mean, spread, *interval_columns(before=f"{name}_", **look)]


def aggregate_values(name: str, one: Aggregate) -> dict[str, float | None]:
    """The values of these columns."""
    return {name: one.mean, f"{name}_spread": one.spread, f"{name}_low": one.low, f"{name}_high": one.high}


R, JSD = aggregate_columns("r", "correlation"), aggregate_columns("jsd", "divergence x 100")


def tables(saliency: "Saliency") -> list[Table]:
    """Correlation and divergence of methods against methods, groups of pairs, and pairs beside the published values;
    all cells of the first two, one by one."""
    head = f"{saliency.data}: saliency maps of {len(saliency.image_rows):,} test images"
    cells, sheets = _cells(saliency), []
    for value, (name, title) in TITLES.items():
        about: dict[str, Any] = {"title": f"{head}, {title}", "notes": saliency.pairs.notes}
        sheets.append(pivot(cells, name, down="first", across="second", value=value, along=["kind"], **about))
    equal = any(cell.mean == 1 and cell.equal for cell in saliency.correlation.values())
    sheets[0].notes += ["100.0 ± 0.0: the maps are equal, and z is infinite"] * equal
    sheets[0].notes += [*_undefined(saliency), _measures(saliency)]
    if saliency.by_group:
        sheets.append(_groups(saliency, f"{head}, by kind of loss"))
    if len(saliency.methods) > 1:
        sheets.append(_pairs(saliency))
    return [*sheets, cells]


def _cells(saliency: "Saliency") -> Table:
    """One row per ordered pair of methods, the diagonal too."""
    records = []
    for first, second in product(saliency.methods, repeat=2):
        names = (first.name, second.name)
        names = names if names in saliency.correlation else names[::-1]
        r, jsd = (cells.get(names, Aggregate(None)) for cells in (saliency.correlation, saliency.divergence))
        about = {"first": first.name, "kind": first.kind, "second": second.name, "second_kind": second.kind}
        counts = {"images": r.n, "undefined": r.undefined}
        records.append(about | aggregate_values("r", r) | aggregate_values("jsd", jsd) | counts)
    counts_columns = [Column("images", unit=COUNT), Column("undefined", unit=COUNT)]
    names_columns = [Column("first", "method"), "kind", Column("second", "against"), "second_kind"]
    return Table.of_records("cells", [*names_columns, *R, *JSD, *counts_columns], records, detail=True)


def _undefined(saliency: "Saliency") -> list[str]:
    lost = [(*names, one.undefined) for names, one in saliency.correlation.items() if one.undefined]
    if not lost:
        return []
    first, second, images = lost[0]
    more = f" and {len(lost) - 1:,} more pairs" if len(lost) > 1 else ""
    return [f"a constant map has no correlation: images left out of {first} and {second}: {images:,}{more}"]


def _measures(saliency: "Saliency") -> str:
    names: dict[str, list[str]] = {}
    for method, measure in zip(saliency.methods, saliency.measures, strict=True):
        names.setdefault(measure.name, []).append(method.name)
    return "measures: " + "; ".join(f"{measure} ({', '.join(methods)})" for measure, methods in names.items())


def _groups(saliency: "Saliency", title: str) -> Table:
    """Two seeds, two losses of one kind or of two."""
    records = [
        {"between": name, "pairs": pairs} | aggregate_values("r", r) | aggregate_values("jsd", jsd)
        for name, (r, jsd, pairs) in saliency.by_group.items()
    ]
    columns = ["between", Column("pairs", "pairs of runs", COUNT), *R, *JSD]
    return Table.of_records("groups", columns, records, title=title, notes=[OVER_CLASSES])


def _pairs(saliency: "Saliency") -> Table:
    """Every pair of methods: ours, what two seeds give, and the published value."""
    records = []
    for names, r in saliency.correlation.items():
        if names[0] != names[1]:
            beyond = saliency.beyond_seeds.get(names, Aggregate(None))
            record = {"first": names[0], "second": names[1], **aggregate_values("z", beyond)}
            record |= aggregate_values("r", r) | aggregate_values("jsd", saliency.divergence[names])
            for name, cell in zip(("r", "jsd"), published(saliency, names), strict=True):
                record |= cell.values(f"published_{name}")
            records.append(record)
    columns = [
        Column("first", "method"),
        Column("second", "against"),
        *R,
        Column("z", "z below seeds", NUMBER, signed=True),
        *interval_columns(NUMBER, "z_", signed=True),
        *_published_columns("published_r", "published %"),
        *JSD,
        *_published_columns("published_jsd", "published x 100"),
    ]
    correlation, divergence = published_tables(saliency.data)
    ids = " and ".join(f"table {t.table} ({t.dataset[0]})" for t in (correlation, divergence) if t is not None)
    notes = [
        f"published: Kobs et al. 2021, {ids}, {divergence.backbone} of {divergence.dim} dimensions; whole numbers, cut "
        "off, not rounded; * the two halves of the printed table differ there",
        "z below seeds: by how much z of the pair is lower than z of two seeds of the same methods; above 0, losses "
        "differ more than seeds do",
        OVER_CLASSES,
        *few_seeds(len(method.members) for method in saliency.methods if method.kind != "untrained"),
    ]
    if saliency.data not in DIVERGENCE:
        notes.append(f"no published table is on {saliency.data}: that of another data set stands beside it")
    title = f"{saliency.data}: pairs of methods, beside two seeds of one method and the published tables"
    return Table.of_records("pairs", columns, records, title=title, notes=notes)


def _published_columns(name: str, heading: str) -> list[Column]:
    beside: dict[str, Any] = {"plus_minus": f"{name}_spread", "star": f"{name}_asymmetric"}
    return [Column(name, heading, COUNT, **beside), Column(f"{name}_spread", unit=COUNT), Column(f"{name}_asymmetric")]
