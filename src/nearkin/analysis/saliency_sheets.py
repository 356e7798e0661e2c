"""The tables of `Saliency` in words, per cent as the published tables have them."""

from typing import TYPE_CHECKING

from nearkin.analysis import kobs
from nearkin.analysis.agreement import Aggregate
from nearkin.analysis.over_runs import OVER_CLASSES, few_seeds
from nearkin.comparison.pages import Sheet

if TYPE_CHECKING:
    from nearkin.analysis.saliency import Saliency


def percent(found: Aggregate | None) -> str:
    """87.3 ± 5.1; a dash where nothing is defined."""
    if found is None or found.mean is None:
        return "–"
    return f"{100 * found.mean:.1f}" + ("" if found.spread is None else f" ± {100 * found.spread:.1f}")


def span(found: Aggregate | None) -> str:
    """The 95 % interval of the mean, per cent."""
    if found is None or found.low is None or found.high is None:
        return "–"
    return f"{100 * found.low:.1f} to {100 * found.high:.1f}"


def sheets(found: "Saliency") -> dict[str, Sheet]:
    """Correlation, divergence, groups of pairs, and pairs beside the published values."""
    n = len(found.image_rows)
    head = f"{found.data}: saliency maps of {n:,} test images"
    means = "mean by Fisher's z over images ± tanh of the standard deviation of z"
    made = {
        "correlation": _matrix(found, found.correlation, f"{head}, Pearson correlation, %; {means}"),
        "divergence": _matrix(found, found.divergence, f"{head}, Jensen-Shannon divergence, nats x 100; mean ± std"),
    }
    made["correlation"].notes += [*_undefined(found), _measures(found)]
    if found.by_group:
        rows = [
            [name, str(pairs), percent(r), span(r), percent(d), span(d)]
            for name, (r, d, pairs) in found.by_group.items()
        ]
        header = ["between", "pairs of runs", "correlation %", "95 % interval", "divergence x 100", "95 % interval "]
        made["groups"] = Sheet(f"{head}, by kind of loss", header, rows, 5, [OVER_CLASSES])
    made |= {"published": _published(found)} if len(found.groups) > 1 else {}
    return made


def _matrix(found: "Saliency", cells: dict[tuple[int, int], Aggregate], title: str) -> Sheet:
    names = [group.name for group in found.groups]
    rows = [
        [group.name, group.kind, *(percent(cells.get((min(i, j), max(i, j)))) for j in range(len(names)))]
        for i, group in enumerate(found.groups)
    ]
    notes = ["the diagonal is that of two seeds of one method, the yardstick; a dash: there is one seed"]
    if found.same_seed:
        notes.append(
            "some pairs have one seed, so the same first weights, which makes maps alike; with several seeds "
            "all pairs have two"
        )
    else:
        notes.append("all pairs of runs have two seeds")
    if any(cell.mean == 1 and cell.equal for cell in cells.values()):
        notes.append("100.0 ± 0.0: the maps are equal, and z is infinite")
    return Sheet(title, ["method", "kind", *names], rows, len(names), notes)


def _undefined(found: "Saliency") -> list[str]:
    lost = [
        (found.groups[i].name, found.groups[j].name, cell.undefined)
        for (i, j), cell in found.correlation.items()
        if cell.undefined
    ]
    if not lost:
        return []
    first = f"{lost[0][0]} and {lost[0][1]}: {lost[0][2]:,}"
    more = f" and {len(lost) - 1:,} more pairs" if len(lost) > 1 else ""
    return [f"a constant map has no correlation: images left out of {first}{more}"]


def _measures(found: "Saliency") -> str:
    names: dict[str, list[str]] = {}
    for group, measure in zip(found.groups, found.measures, strict=True):
        names.setdefault(measure.name, []).append(group.name)
    return "measures: " + "; ".join(f"{measure} ({', '.join(own)})" for measure, own in names.items())


def _published(found: "Saliency") -> Sheet:
    """Every pair of methods: ours, what two seeds give, and the published value."""
    rows = []
    for (i, j), r in found.correlation.items():
        if i == j:
            continue
        first, second, beyond = found.groups[i], found.groups[j], found.beyond_seeds.get((i, j))
        gap = "–" if beyond is None or beyond.mean is None else f"{beyond.mean:+.3f}"
        ends = "–" if beyond is None or beyond.low is None else f"{beyond.low:+.3f} to {beyond.high:+.3f}"
        theirs = found.published(i, j)
        rows.append(
            [
                first.name,
                second.name,
                percent(r),
                span(r),
                gap,
                ends,
                str(theirs[0]),
                percent(found.divergence[i, j]),
                str(theirs[1]),
            ]
        )
    correlation, divergence = kobs.tables_of(found.data)
    ids = " and ".join(f"table {t.table} ({t.dataset[0]})" for t in (correlation, divergence) if t is not None)
    notes = [
        f"published: Kobs et al. 2021, {ids}, {divergence.backbone} of {divergence.dim} dimensions; whole numbers, cut "
        "off, not rounded; * the two halves of the printed table differ there",
        "z below seeds: by how much z of the pair is lower than z of two seeds of the same methods; above 0, losses "
        "differ more than seeds do",
        OVER_CLASSES,
        *few_seeds(len(group.members) for group in found.groups if group.kind != "untrained"),
    ]
    if found.data not in kobs.DIVERGENCE:
        notes.append(f"no published table is on {found.data}: that of another data set stands beside it")
    header = [
        "method",
        "against",
        "correlation %",
        "95 % interval",
        "z below seeds",
        "95 % interval ",
        "published %",
        "divergence x 100",
        "published x 100",
    ]
    title = f"{found.data}: pairs of methods, beside two seeds of one method and the published tables"
    return Sheet(title, header, rows, 7, notes)
