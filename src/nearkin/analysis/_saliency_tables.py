"""The tables and charts of `Saliency`, beside the published agreement of saliency maps (Kobs et al. 2021, tables 1 to
5), pair by pair."""

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

from nearkin.analysis._agreement import Aggregate
from nearkin.analysis._over_runs import OVER_CLASSES, few_seeds
from nearkin.analysis._pictures import coloured
from nearkin.present import Chart, Column, Heatmap, Pictures, Table, pivot
from nearkin.units import COUNT, NUMBER, POINTS, SHARE

if TYPE_CHECKING:  # `import nearkin` reads no table
    from nearkin.analysis.saliency import Saliency
    from nearkin.literature.table import Cell, PublishedTable

SIDE_BY_SIDE = 12  # methods of a panel
EMPTY = Aggregate(None)
TITLES = {
    "r": "Pearson correlation; mean by Fisher's z over images ± tanh of the standard deviation of z",
    "jsd": "Jensen-Shannon divergence, nats x 100; mean ± std",
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

    @property
    def numbers(self) -> list[Any]:
        """Its mean and spread, per cent as they are printed, and whether a star marks them."""
        return [*((None, None) if self.value is None else self.value), self.asymmetric and self.value is not None]


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


def published(saliency: "Saliency", i: int, j: int) -> tuple[Published, Published]:
    """The published correlation and divergence of methods i and j, per cent."""
    first, second = (published_name(saliency.methods[k].members[0].settings) for k in (i, j))
    correlation, divergence = published_tables(saliency.data)
    return published_cell(correlation, first, second), published_cell(divergence, first, second)


def spread_columns(name: str, heading: str) -> list[Column]:
    """A mean ± its spread over images, and its interval; correlations in per cent, divergences times 100."""
    look: dict[str, Any] = {"unit": SHARE if name == "r" else POINTS, "digits": 1}
    return [
        Column(name, heading, plus_minus=f"{name}_spread", **look),
        Column(f"{name}_spread", **look),
        Column(f"{name}_low", "95 % interval", to=f"{name}_high", **look),
        Column(f"{name}_high", **look),
    ]


def spread_values(one: Aggregate) -> list[float | None]:
    """The values of these columns."""
    return [one.mean, one.spread, one.low, one.high]


def tables(saliency: "Saliency") -> list[Table]:
    """Correlation and divergence of methods against methods, groups of pairs, and pairs beside the published values;
    all cells of the first two, one by one."""
    head = f"{saliency.data}: saliency maps of {len(saliency.image_rows):,} test images"
    cells = _cells(saliency)
    made = []
    for value, title in TITLES.items():
        table = pivot(
            cells,
            "correlation" if value == "r" else "divergence",
            down="first",
            across="second",
            value=value,
            along=["kind"],
        )
        table.title, table.notes = f"{head}, {title}", _matrix_notes(saliency)
        made.append(table)
    equal = any(cell.mean == 1 and cell.equal for cell in saliency.correlation.values())
    made[0].notes += ["100.0 ± 0.0: the maps are equal, and z is infinite"] * equal
    made[0].notes += [*_undefined(saliency), _measures(saliency)]
    if saliency.by_group:
        made.append(_groups(saliency, f"{head}, by kind of loss"))
    if len(saliency.methods) > 1:
        made.append(_pairs(saliency))
    return [*made, cells]


def _cells(saliency: "Saliency") -> Table:
    """One row per ordered pair of methods, the diagonal too."""
    rows = []
    for i, first in enumerate(saliency.methods):
        for j, second in enumerate(saliency.methods):
            place = (min(i, j), max(i, j))
            r, jsd = (cells.get(place, EMPTY) for cells in (saliency.correlation, saliency.divergence))
            values = [*spread_values(r), *spread_values(jsd), r.n, r.undefined]
            rows.append([first.name, first.kind, second.name, second.kind, *values])
    counts = [Column("images", unit=COUNT), Column("undefined", unit=COUNT)]
    numbers = [*spread_columns("r", "correlation"), *spread_columns("jsd", "divergence x 100")]
    columns = [Column("first", "method"), "kind", Column("second", "against"), "second_kind", *numbers, *counts]
    return Table("cells", columns, rows, detail=True)


def _matrix_notes(saliency: "Saliency") -> list[str]:
    seeds = "all pairs of runs have two seeds"
    if saliency.same_seed:
        seeds = (
            "some pairs have one seed, so the same first weights, which makes maps alike; with several seeds all pairs "
            "have two"
        )
    return ["the diagonal is that of two seeds of one method, the yardstick; a dash: there is one seed", seeds]


def _undefined(saliency: "Saliency") -> list[str]:
    lost = [
        (saliency.methods[i].name, saliency.methods[j].name, one.undefined)
        for (i, j), one in saliency.correlation.items()
        if one.undefined
    ]
    if not lost:
        return []
    first = f"{lost[0][0]} and {lost[0][1]}: {lost[0][2]:,}"
    more = f" and {len(lost) - 1:,} more pairs" if len(lost) > 1 else ""
    return [f"a constant map has no correlation: images left out of {first}{more}"]


def _measures(saliency: "Saliency") -> str:
    names: dict[str, list[str]] = {}
    for method, measure in zip(saliency.methods, saliency.measures, strict=True):
        names.setdefault(measure.name, []).append(method.name)
    return "measures: " + "; ".join(f"{measure} ({', '.join(methods)})" for measure, methods in names.items())


def _groups(saliency: "Saliency", title: str) -> Table:
    """Two seeds, two losses of one kind or of two."""
    rows = [
        [name, pairs, *spread_values(r), *spread_values(jsd)] for name, (r, jsd, pairs) in saliency.by_group.items()
    ]
    numbers = [*spread_columns("r", "correlation"), *spread_columns("jsd", "divergence x 100")]
    return Table("groups", ["between", Column("pairs", "pairs of runs", COUNT), *numbers], rows, title, [OVER_CLASSES])


def _pairs(saliency: "Saliency") -> Table:
    """Every pair of methods: ours, what two seeds give, and the published value."""
    rows = []
    for (i, j), r in saliency.correlation.items():
        if i != j:
            beyond = saliency.beyond_seeds.get((i, j), EMPTY)
            ours, theirs = spread_values(saliency.divergence[i, j]), published(saliency, i, j)
            names = [saliency.methods[i].name, saliency.methods[j].name]
            z = [beyond.mean, beyond.low, beyond.high]
            rows.append([*names, *spread_values(r), *z, *theirs[0].numbers, *ours, *theirs[1].numbers])
    columns = [Column("first", "method"), Column("second", "against"), *spread_columns("r", "correlation")]
    columns += [
        Column("z", "z below seeds", NUMBER, signed=True),
        Column("z_low", "95 % interval", NUMBER, signed=True, to="z_high"),
        Column("z_high", unit=NUMBER),
        *_published_columns("r", "published %"),
        *spread_columns("jsd", "divergence x 100"),
        *_published_columns("jsd", "published x 100"),
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
    return Table("pairs", columns, rows, title, notes)


def _published_columns(name: str, heading: str) -> list[Column]:
    key = f"published_{name}"
    beside: dict[str, Any] = {"plus_minus": f"{key}_spread", "star": f"{key}_asymmetric"}
    return [Column(key, heading, COUNT, **beside), Column(f"{key}_spread", unit=COUNT), Column(f"{key}_asymmetric")]


def charts(saliency: "Saliency", cells: Table) -> list[Chart]:
    """A panel of maps, and, of several runs, correlation and divergence of methods against methods."""
    methods, places = saliency.methods[:SIDE_BY_SIDE], [runs[0] for runs in saliency.places[:SIDE_BY_SIDE]]
    images = [
        [coloured(saliency.maps[place, row], "magma", 0, 1) for place in places]
        for row in range(saliency.maps.shape[1])
    ]
    names = [fill(method.name.replace("_", " "), 16) for method in methods]
    if saliency.pixels is not None:
        images = [[pixels, *row] for pixels, row in zip(saliency.pixels, images, strict=True)]
        names = ["image", *names]
    alt = "Test images, and what moves their embedding, for the first run of every method: bright pixels move it."
    panel = Pictures(name="panel", title="Saliency maps", images=images, captions=[names], alt=alt)
    made: list[Chart] = [panel]
    axes: dict[str, Any] = {"table": cells, "x": "second", "y": "first"}
    for name, value, title in (
        ("correlation", "r", "Pearson correlation of saliency maps, %"),
        ("divergence", "jsd", "Jensen-Shannon divergence of saliency maps, nats x 100"),
    ):
        values = [row[value] for row in cells if row[value] is not None]
        if len(saliency.seeds) > 1 and values:
            band = [min(values), max(values)] if min(values) >= 0 else [-max(map(abs, values)), max(map(abs, values))]
            alt = f"{title}, methods against methods; the diagonal is that of two seeds of one method."
            made.append(Heatmap(name=name, title=title, value=value, band=band, alt=alt, **axes))
    return made
