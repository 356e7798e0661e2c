"""The first screen: what is this, who is first, is it real, what next."""

from collections import Counter

from nearkin.comparison.pages import first_words
from nearkin.comparison.verdicts import span, tied_for_first
from nearkin.pages.material import Board, Material, final_of
from nearkin.pages.words import called, shown_metric, unit
from nearkin.statistics.verdict import judge

Fact = tuple[str, str, str]  # a heading, a value, and a sentence about it
NAMED = 3  # so many of a group are named


def first_screen(material: Material) -> tuple[str, list[str], list[Fact]]:
    """Title, sentences and facts."""
    gathered, boards = material.gathered, material.boards
    trained = {method.name for board in boards for method in board.trained}
    data = " and ".join(board.data for board in boards)
    title = f"{len(gathered.tested)} run{'s' * (len(gathered.tested) != 1)} on {data}"
    if gathered.axes:
        title = f"{gathered.name}: {len(trained)} method{'s' * (len(trained) != 1)} on {data}"
    lead = [_lead(material, trained)]
    if gathered.twin:
        lead.append(f"It repeats a published table in its own way: {gathered.twin}.")
    facts = []
    for board in boards:
        heading, name, words = lead_words(material, board)
        facts += [(f"{board.where}{heading}", name, words), *_untrained(material, board)]
    rules = dict.fromkeys(final_of(member)["rule"] for member in material.trained)
    times, runs = opened(material)
    facts.append(
        (
            "is it real?",
            f"epoch: {'; '.join(rules) or 'untrained networks only'}",
            f"test labels stayed locked until then; they were opened {times:,} times in this store, for these {runs} "
            "runs and any others",
        )
    )
    best = (boards[0].trained or boards[0].methods)[0].members[0].run.hash
    facts.append(
        (
            "what next?",
            f"nearkin report {best}",
            "looks into one run of the first row: its neighbours, its errors, and how to use its model",
        )
    )
    return title, lead, facts


def _lead(material: Material, trained: set[str]) -> str:
    """What was compared, in a sentence."""
    tested = f"tested on images {_unseen(material)}"
    if not trained:
        return f"Untrained networks alone, {tested}, compared by {called(material.metric)}: no trained run is tested."
    seeds = Counter(len(method.values) for board in material.boards for method in board.trained)
    often = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    ways = "One way" if len(trained) == 1 else f"{len(trained)} ways"
    return (
        f"{ways} of learning an image-retrieval embedding, {tested}; {often} seed{'s' * (often != '1')} each, "
        f"compared by {called(material.metric)}."
    )


def lead_words(material: Material, board: Board) -> Fact:
    """Who is first, and whether that can be believed."""
    metric, comparison = material.metric, board.comparison
    best = (board.trained or board.methods)[0]
    mean = "lowest mean, low is better" if comparison.sign < 0 else "highest mean"
    if best.interval is None:
        return mean, best.name, "no value"
    between = span(metric, best.interval.low, best.interval.high, cut=best.interval.cut)
    value = f"{shown_metric(metric, best.interval.mean)} {unit(metric)} {called(metric)}"
    value = " ".join(f"{value} ({between if best.interval.low is not None else 'one seed: no interval'})".split())
    if comparison.sign == 0:
        return mean, best.name, f"{value}; neither end of this metric is the good one"
    first, words = tied_for_first(comparison), " ".join(first_words(comparison))
    if words.startswith("tied for first"):
        named = "; ".join(first) if len(first) <= NAMED else f"{len(first)} of {len(board.trained)} trained rows"
        return "tied for first", named, f"{mean}: {best.name}, {value}"
    if words.startswith("first: "):
        return "first", best.name, f"{value}; {words.removeprefix(f'first: {best.name}, ')}"
    return mean, best.name, f"{value}; {words}" if words else value


def _untrained(material: Material, board: Board) -> list[Fact]:
    """The best untrained network, and how many trained rows are worse on the seeds that both have."""
    metric, sign = material.metric, board.comparison.sign
    best = next((method for method in board.methods if not method.trained and method.interval is not None), None)
    if best is None or best.interval is None or not board.trained:
        return []
    words = "without any training"
    if sign:
        pairs = judge([(method.row, best.row) for method in board.trained])
        known = [pair.difference.mean for pair in pairs if pair.difference is not None]
        worse = sum(sign * difference < 0 for difference in known)
        words += (
            ": what is better was learned"
            if not worse
            else f": {worse} of {len(known)} trained rows are worse, on common seeds and not tested"
        )
    value = f"{shown_metric(metric, best.interval.mean)} {unit(metric)}".strip()
    return [(f"{board.where}untrained network", value, f"{best.name}, {words}")]


def opened(material: Material) -> tuple[int, int]:
    """How often the test splits of these runs were opened, and how many runs there are."""
    openings = material.gathered.store.openings()
    splits = {member.head["split_hash"] for member in material.gathered.tested}
    runs = {member.run.hash for member in material.gathered.tested}
    return sum(openings.get(split, 0) for split in splits), len(runs)


def _unseen(material: Material) -> str:
    within = any(member.settings["protocol.name"] == "within" for member in material.gathered.tested)
    return "that training never saw" if within else "of classes that training never saw"
