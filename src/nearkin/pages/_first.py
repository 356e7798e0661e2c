"""The first screen of a comparison: what it is, who wins, what training gave, whether to trust it, what to do next."""

from collections import Counter
from collections.abc import Sequence

from nearkin.comparison.verdicts import span, tied_for_first
from nearkin.comparison.words import first_words
from nearkin.pages._base import Part
from nearkin.pages._board import Board
from nearkin.pages._leaderboard import means_chart
from nearkin.pages._material import Material
from nearkin.pages._members import distinct, final_of, times_opened
from nearkin.pages._page import Fact
from nearkin.pages._slicing import Slicing
from nearkin.pages._tested import row_name
from nearkin.pages._words import MAP_AT_R, about, called, value_words
from nearkin.statistics.unit import LEAST_SEEDS
from nearkin.statistics.verdict import judge
from nearkin.units import counted

NAMED = 3  # so many of a group are named
DRAWN = 12  # rows of the chart; the leaderboard has all


def title_of(material: Material) -> str:
    """What the page is about."""
    gathered = material.gathered
    data = " and ".join(board.data for board in material.boards)
    if not gathered.axes:
        return f"{counted(len(gathered.tested), 'run')} on {data}"
    return f"{gathered.name}: {counted(len(_trained(material)), 'method')} on {data}"


def lead_of(material: Material) -> list[str]:
    """What was compared, and by which number."""
    trained = _trained(material)
    within = any(member.settings["protocol.name"] == "within" for member in material.gathered.tested)
    tested = f"tested on images {'' if within else 'of classes '}that training never saw"
    if trained:
        seeds = Counter(len(method.values) for board in material.boards for method in board.trained)
        times = counted(min(seeds), "seed") if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)} seeds"
        ways = "One way" if len(trained) == 1 else f"{len(trained)} ways"
        first = f"{ways} to train an image search, {times} each, {tested}."
    else:
        first = f"Untrained networks alone, {tested}: no trained run is tested."
    lead = [f"{first} Compared by {about(material.metric)}"]
    if material.gathered.twin:
        lead.append(f"It repeats a published table in its own way: {material.gathered.twin}.")
    return lead


def definition(metric: str, typical: Sequence[Part]) -> list[str]:
    """What MAP@R is, where the first screen has it beside a typical query and is about another metric."""
    return [MAP_AT_R] if typical and metric != "map_at_r" else []


def _trained(material: Material) -> set[str]:
    return {method.name for board in material.boards for method in board.trained}


def charts(boards: list[Board]) -> list[Part]:
    """The leaderboard of every data set as a picture."""
    slicing = Slicing(most=DRAWN)
    return [
        board.placed(means_chart(board, "first-means", f"Test {called(board.metric)}, mean and 95 % interval", slicing))
        for board in boards
    ]


def facts_of(material: Material) -> list[Fact]:
    """Winner, without training, can I trust it, next."""
    facts = [fact for board in material.boards for fact in (winner(board), *_untrained(board))]
    board = material.boards[0]
    run = (board.trained or board.methods)[0].members[0].run.hash
    shows = "shows one run of the first row: what it finds, what it confuses, and how to use its model"
    return [*facts, _trust(material), ("Next", f"nearkin report {run}", shows)]


def winner(board: Board) -> Fact:
    """Who is first, and whether that can be believed."""
    metric, comparison, rows = board.metric, board.comparison, board.trained or board.methods
    best, heading = rows[0], f"{board.where}Winner"
    if best.interval is None:
        return heading, "unknown", "no row has a value"
    low, high, n = best.interval.low, best.interval.high, best.interval.n
    between = "one seed: no interval" if low is None else f"{span(metric, low, high, cut=best.interval.cut)}, {n} seeds"
    value = f"{value_words(metric, best.interval.mean)} {called(metric)} ({between})"
    end = "lowest mean, low is better" if comparison.sign < 0 else "highest mean"
    if comparison.sign == 0:
        return heading, "none", f"highest mean: {best.name}, {value}; neither end of this metric is the good one"
    first = tied_for_first(comparison)
    if len(rows) > 1 and len(first) == 1:
        return heading, best.name, f"{value}; ahead of every other trained row by more than chance"
    if len(rows) == 1 or not first:
        return heading, best.name, f"{value}; there is nothing to compare it with" if len(rows) == 1 else value
    if all(len(method.values) < LEAST_SEEDS for method in rows):
        return heading, "too early to say", f"{end}: {best.name}, {value}; {first_words(comparison)[0]}"
    names = ", ".join(first) if len(first) <= NAMED else f"{len(first)} of {len(rows)} trained rows"
    return heading, f"a tie: {names}", f"{end}: {best.name}, {value}; the others are too close to be told from it"


def _untrained(board: Board) -> list[Fact]:
    """The best untrained network, and how many trained rows are worse on the seeds that both have."""
    metric, sign = board.metric, board.comparison.sign
    best = next((method for method in board.methods if not method.trained and method.interval is not None), None)
    if best is None or best.interval is None or not board.trained:
        return []
    random = best.members[0].settings.get("model.weights") is None
    words = f"{best.name}: random weights" if random else row_name(best)
    if sign:
        pairs = judge([(method.row, best.row) for method in board.trained])
        gains = [sign * pair.difference.mean for pair in pairs if pair.difference is not None]
        worse = sum(gain < 0 for gain in gains)
        are = f"{worse} of {counted(len(gains), 'trained row')} {'is' if worse == 1 else 'are'} worse"
        words += f"; {are}, on common seeds and not tested" if worse else "; what is better was learned"
    return [(f"{board.where}Without training", value_words(metric, best.interval.mean), words)]


def _trust(material: Material) -> Fact:
    """How the epoch was chosen, and how often anybody looked at the test."""
    finals = [final_of(member) for member in material.trained]
    tested = material.gathered.tested
    times, runs = times_opened(material.gathered, tested), len(distinct(tested))
    looked = f"The test labels were opened {counted(times, 'time')} in this store, for {counted(runs, 'run')} here and "
    return trust_words(finals, f"{looked}any others.")


def trust_words(finals: Sequence[dict], looked: str) -> Fact:
    """Whether the numbers are honest, from how the epochs were chosen."""
    heading = "Can I trust it?"
    if not finals:
        return heading, "yes: nothing was chosen", f"Networks without training have nothing to overfit. {looked}"
    unvalidated = sum(not final["validation"] for final in finals)
    rules = "; ".join(dict.fromkeys(final["rule"] for final in finals))
    if unvalidated:
        runs = f"{unvalidated} of {counted(len(finals), 'run')}"
        return heading, "with care", f"{runs} had no validation images. {looked}"
    return heading, "the test chose nothing", f"The epoch is chosen without the test images: {rules}. {looked}"
