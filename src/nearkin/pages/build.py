"""Stored runs -> a page. Reads the store alone: nothing is trained, and no test label is opened."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from nearkin.comparison.gather import Gathered, Member
from nearkin.errors import NearkinError
from nearkin.pages import (
    analyses,
    curves,
    failures,
    first,
    leaderboard,
    literature,
    overview,
    ranks,
    readings,
    reproduce,
    single,
    sizes,
    spectra,
)
from nearkin.pages.base import Section, Words
from nearkin.pages.material import Board, Material, check_stored, material
from nearkin.pages.page import Page
from nearkin.pages.scrub import Scrubber
from nearkin.progress import bar


def build(
    gathered: Gathered,
    *,
    metric: str = "map_at_r",
    by: Sequence[str] | None = None,
    published: str | None = None,
    map: bool = True,
    command: str = "",
) -> Page:
    """The page of a study or of several runs; of one run, its own.

    Parameters:
        gathered: the stored runs.
        metric: what rows are compared by; it must be stored.
        by: what rows are; None: all axes of the study, or what tells the runs apart.
        published: id of a published table that stands beside.
        map: is there a map of the embeddings? It takes the longest.
        command: how the page is made again.
    """
    if published is not None:
        from nearkin.literature.tables import table

        table(published)  # an unknown one is said before work is done
    if len(gathered.members) == 1 and not gathered.axes:
        return _single(gathered, gathered.members[0], metric, map, command)
    found = material(gathered, metric=metric, by=by, published=published, command=command)
    scrub = Scrubber.of(gathered)
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("what was compared", lambda: overview.section(found)),
        ("leaderboard", lambda: leaderboard.section(found)),
        ("ranks", lambda: ranks.section(found)),
        ("curves", lambda: curves.section(found)),
        ("settings", lambda: sizes.section(found)),
        ("correlations", lambda: spectra.section(found)),
        ("readings", lambda: readings.section(found)),
        ("pictures", lambda: _pictures(found, map)),
        ("gaps", lambda: failures.section(found, scrub)),
        ("literature", lambda: literature.section(found)),
        ("analyses", lambda: analyses.sections(gathered)),
        ("how to reproduce", lambda: reproduce.section(found, scrub)),
    ]
    sections = _done(steps, scrub)
    title, lead, facts = first.first_screen(found)
    return Page(scrub(title), lead, facts, sections)


def _single(gathered: Gathered, member: Member, metric: str, with_map: bool, command: str) -> Page:
    from nearkin.comparison.compare import canonical_metric

    metric = canonical_metric(metric)
    if not member.done:
        raise gathered.nothing_tested()
    scrub = Scrubber.of(gathered)
    check_stored(gathered, metric)
    twins = single.twins_of(member, gathered.store)
    select = member.settings.get("train.select") or gathered.select
    alone = Material(gathered, metric, [], command=command)
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("result", lambda: single.result_section(member, twins)),
        ("curves", lambda: single.curve_section(member, metric, select)),
        ("classes", lambda: single.class_section(member, metric)),
        ("pictures", lambda: _run_pictures(member, with_map)),
        ("use", lambda: single.use_section(member, gathered, twins)),
        ("analyses", lambda: analyses.sections(gathered)),
        ("gaps", lambda: failures.section(alone, scrub)),
        ("how to reproduce", lambda: reproduce.run_section(alone, scrub)),
    ]
    openings = gathered.store.openings().get(member.head["split_hash"], 0)
    title, lead, facts = single.first_screen(member, metric, twins, openings)
    return Page(scrub(title), lead, facts, _done(steps, scrub))


def _done(steps: list[tuple[str, Callable[[], Any]]], scrub: Scrubber) -> list[Section]:
    """The sections, with a bar; a step gives one, several or none."""
    sections: list[Section] = []
    with bar("Writing the report", len(steps)) as advance:
        for i, (name, make) in enumerate(steps):
            advance(i, note=name)
            found = make()
            sections += found if isinstance(found, list) else [found] if found is not None else []
        advance(len(steps))
    for part in (part for section in sections for part in section.parts):
        if isinstance(part, Words):  # messages of errors name folders
            part.text = scrub(part.text)
    return sections


def _pictures(found: Material, with_map: bool) -> list[Section]:
    """Neighbours, map and confusion of the best method's first run on every data set."""
    tested, sprite, neighbours, maps, confusion = (
        importlib.import_module(f"nearkin.pages.{name}")
        for name in ("tested", "sprite", "neighbours", "maps", "confusion")
    )
    made = sprite.Sprite()
    sections: list[Section] = []
    for board in found.boards:
        try:
            best, other = tested.chosen(board.comparison)
        except NearkinError as error:
            sections.append(_gap(board, error))
            continue
        own = [
            neighbours.section(best, other, made, id=f"neighbours{board.suffix}"),
            confusion.section(best, made, id=f"confusion{board.suffix}"),
        ]
        if with_map:
            own.append(maps.section(best, made, id=f"map{board.suffix}"))
        for section in own:
            section.title = f"{board.where}{section.title}"
        sections += own
    if len(made):
        sections[-1].parts.append(made.part())
    return sections


def _run_pictures(member: Member, with_map: bool) -> list[Section]:
    tested, sprite, neighbours, maps, confusion, mislabelled = (
        importlib.import_module(f"nearkin.pages.{name}")
        for name in ("tested", "sprite", "neighbours", "maps", "confusion", "mislabelled")
    )
    made = sprite.Sprite()
    try:
        own = tested.Tested.of(member.run, "the network" if member.untrained else member.settings["loss.name"])
    except NearkinError as error:
        return [
            Section(
                "pictures",
                "Pictures",
                "What it finds, in pictures.",
                [Words(f"There are no pictures: {error}.", "warning")],
            )
        ]
    sections = [neighbours.section(own, None, made), confusion.section(own, made), mislabelled.section(own, made)]
    if with_map:
        sections.insert(1, maps.section(own, made))
    if len(made):
        sections[-1].parts.append(made.part())
    return sections


def _gap(board: Board, error: NearkinError) -> Section:
    return Section(
        f"pictures{board.suffix}",
        f"{board.where}Pictures",
        "What the best method finds, in pictures.",
        [Words(f"There are no pictures: {error}.", "warning")],
    )
