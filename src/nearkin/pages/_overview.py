"""What was compared and how: data, protocol, choice of the epoch, budgets, and how often the test split was opened."""

from nearkin.errors import and_more
from nearkin.pages._base import Grid, Part, Section, Words
from nearkin.pages._board import Board, by_board
from nearkin.pages._material import Material
from nearkin.pages._members import distinct, final_of, network, protocol, rule, split_words, tallied, times_opened
from nearkin.pages._words import about
from nearkin.present import Table, sentence
from nearkin.studies.budgets import BUDGET, budget_of
from nearkin.studies.readings import PICKED, READINGS
from nearkin.units import COUNT, GAP, counted

MILD = ("values are means over",)  # notes that explain; all others warn


def section(material: Material) -> Section:
    """Warnings in plain words, facts of every data set, budgets."""
    lead = "A fair comparison has the same images, the same choice of the epoch and the same budget for every row."
    overview = by_board(material.boards, "overview", "What was compared, and how", lead, _budgets)
    assert overview is not None
    overview.parts[:0] = [*_warnings(material), _facts(material)]
    return overview


def _warnings(material: Material) -> list[Part]:
    parts = [
        Words(f"{board.where}{sentence(note)}", "plain" if note.startswith(MILD) else "warning")
        for board in material.boards
        for note in dict.fromkeys(board.comparison.notes)
    ]
    if any(PICKED in READINGS[name][0] for name in material.gathered.readings):
        picked = f"This study also reads epochs that were {PICKED}. They are no results: the leaderboard has none."
        parts.append(Words(picked, "warning"))
    if unvalidated := sum(not final_of(member)["validation"] for member in material.trained):
        runs = f"{unvalidated} of {counted(len(material.trained), 'trained run')}"
        parts.append(Words(f"{runs} had no validation images: their epoch is the last.", "warning"))
    if all(part.tone == "plain" for part in parts):
        equal = "All trained rows had equal budgets, seeds and rules, and no epoch was picked on test images."
        parts.insert(0, Words(equal))
    return list(parts)


def _facts(material: Material) -> Grid:
    rows: list[list[str]] = []
    for board in material.boards:
        members = distinct(board.members)
        trained = [member for member in members if not member.untrained] or members
        finals = [final_of(member) for member in trained]
        splits, times = {m.head["split_hash"] for m in members}, times_opened(material.gathered, members)
        seeds, folds = len({m.seed for m in members}), len({m.fold for m in members if m.fold is not None})
        facts = {
            "metric": about(material.metric),
            "data": f"{board.data}, data hash {members[0].head['data_hash']}",
            "images and classes": tallied([split_words(final) or GAP for final in finals]),
            "protocol": tallied([protocol(member) for member in trained]),
            "choice of the epoch": tallied([rule(final) for final in finals]),
            "networks": tallied([network(member) for member in trained]),
            "runs": f"{len(members)} tested, {counted(seeds, 'seed')}" + f", {counted(folds, 'fold')}" * bool(folds),
            "test queries": tallied([COUNT.text(member.queries) for member in members]),
            "test split": f"{and_more(sorted(splits), 3)}: opened {counted(times, 'time')} in this store",
        }
        rows += [[board.data, what, value] for what, value in facts.items()]
    table = Table("overview", ["data", "what", "value"], rows)
    table.notes = [
        "Every opening of the test labels is noted, by whichever command; this page opens none. The test of each run "
        "is one; the more there are, the more the test images have been looked at."
    ]
    return Grid(table if len(material.boards) > 1 else table.only(["what", "value"]), "overview-facts")


def _budgets(board: Board) -> list[Part]:
    """What is equal in all trained rows, as a sentence; the rest as a table."""
    rows = []
    for method in board.methods:
        runs = [m.run for m in method.members if m.done and not m.untrained]
        folds, trials = len({m.fold for m in method.members}), max((m.trials for m in method.members), default=0)
        epochs = max((m.searched_epochs for m in method.members), default=0)
        given = budget_of(runs, len(method.values), folds, trials=trials, searched_epochs=epochs) if runs else {}
        rows.append([method.name, *(given.get(key) for key in BUDGET)])
    notes = ["Untrained networks were given nothing. Trials are runs that chose settings on validation images."]
    table = Table("budgets", ["method", *BUDGET], rows, "What each row was given", notes)
    given_to = [row for row in table if row["network"] is not None]
    equal = {key: given_to[0][key] for key in BUDGET if len({row[key] for row in given_to}) == 1}
    shared = (
        [Words(f"Equal in all trained rows: {'; '.join(f'{key} {equal[key]}' for key in equal)}.")] if equal else []
    )
    unequal = table.only([name for name in table.header if name not in equal])
    return [*shared, Grid(unequal, folded=len(rows) > 6 or len(equal) == len(BUDGET), slice=board.grid)]
