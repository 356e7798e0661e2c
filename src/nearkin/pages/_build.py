"""Stored runs -> a page. Reads the store alone: nothing is trained, and no test label is opened."""

from collections.abc import Callable, Sequence
from typing import Any

from nearkin.comparison.compare import canonical_metric
from nearkin.comparison.gather import Gathered, Member
from nearkin.fitting.fitted import Fitted
from nearkin.pages import (
    _analyses,
    _curves,
    _failures,
    _first,
    _fit,
    _leaderboard,
    _literature,
    _overview,
    _pictures,
    _ranks,
    _readings,
    _reproduce,
    _single,
    _sizes,
    _spectra,
)
from nearkin.pages._base import Section, Words
from nearkin.pages._material import Material, material
from nearkin.pages._members import check_stored, times_opened
from nearkin.pages._page import Page
from nearkin.pages._scrub import Scrubber
from nearkin.pages._twins import twins_of
from nearkin.progress import bar

Step = tuple[str, Callable[[], Any]]


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
        return _of_one_run(gathered, gathered.members[0], canonical_metric(metric), map, command)
    stored = material(gathered, metric=metric, by=by, published=published, command=command)
    boards, scrub, looks = stored.boards, Scrubber.of(gathered), _pictures.Looks(map)
    steps: list[Step] = [
        ("leaderboard", lambda: _leaderboard.section(boards)),
        ("what was compared", lambda: _overview.section(stored)),
        ("ranks", lambda: _ranks.section(boards)),
        ("curves", lambda: _curves.section(boards)),
        ("settings", lambda: _sizes.section(boards)),
        ("correlations", lambda: _spectra.section(boards)),
        ("readings", lambda: _readings.section(boards)),
        ("pictures", lambda: looks.of_boards(boards)),
        ("gaps", lambda: _failures.section(gathered, scrub)),
        ("literature", lambda: _literature.section(stored)),
        ("analyses", lambda: _analyses.sections(gathered)),
        ("how to reproduce", lambda: _reproduce.section(stored, scrub)),
    ]
    sections = _sections(steps, scrub)
    first = [*_first.charts(boards), *looks.typical]
    lead = [*_first.lead_of(stored), *_first.definition(stored.metric, looks.typical)]
    return Page(scrub(_first.title_of(stored)), lead, _first.facts_of(stored), sections, first)


def _of_one_run(gathered: Gathered, member: Member, metric: str, with_map: bool, command: str) -> Page:
    if not member.done:
        raise gathered.nothing_tested()
    check_stored(gathered, metric)
    scrub, looks = Scrubber.of(gathered), _pictures.Looks(with_map)
    twins = twins_of(member, gathered.store)
    select = member.settings.get("train.select") or gathered.select
    steps: list[Step] = [
        ("result", lambda: _single.result_section(member, twins)),
        ("curves", lambda: _single.curve_section(member, metric, select)),
        ("classes", lambda: _single.class_section(member, metric)),
        ("pictures", lambda: looks.of_run(member, twins.values())),
        ("use", lambda: _single.use_section(member, gathered, twins)),
        ("analyses", lambda: _analyses.sections(gathered)),
        ("gaps", lambda: _failures.section(gathered, scrub)),
        ("how to reproduce", lambda: _reproduce.section(Material(gathered, metric, command=command), scrub)),
    ]
    sections = _sections(steps, scrub)
    title, lead, facts = _single.first_screen(member, metric, twins, times_opened(gathered, [member]))
    return Page(scrub(title), [*lead, *_first.definition(metric, looks.typical)], facts, sections, looks.typical)


def build_of_fit(fitted: Fitted, *, map: bool = True, command: str = "") -> Page:
    """The page of a fit: what its model is worth, class by class, and how it was chosen.

    Parameters:
        fitted: the fit.
        map: is there a map of the embeddings? It takes the longest.
        command: how the page is made again.
    """
    gathered = _fit.gathered_of(fitted)
    scrub, looks, model = Scrubber.of(gathered), _pictures.Looks(map), _fit.member_of(fitted.run)
    made = scrub(_fit.command_of(fitted))
    steps: list[Step] = [
        ("result", lambda: _fit.result_section(fitted)),
        ("classes", lambda: _fit.class_section(fitted)),
        ("choice", lambda: _fit.choice_section(fitted)),
        ("pictures", lambda: _fit.pictures(fitted, looks)),
        ("use", lambda: _single.use_section(model, gathered, {})),
        (
            "how to reproduce",
            lambda: _reproduce.section(Material(gathered, "map_at_r", command=command, made=made), scrub),
        ),
    ]
    sections = _sections(steps, scrub)
    title, lead, facts = _fit.first_screen(fitted)
    return Page(scrub(title), lead, facts, sections, [*_fit.first_charts(fitted), *looks.typical])


def _sections(steps: Sequence[Step], scrub: Scrubber) -> list[Section]:
    """The sections, with a bar; a step gives one, several or none."""
    sections: list[Section] = []
    with bar("Writing the report", len(steps)) as advance:
        for i, (name, make) in enumerate(steps):
            advance(i, note=name)
            result = make()
            sections += result if isinstance(result, list) else [result] if result is not None else []
        advance(len(steps))
    for part in (part for section in sections for part in section.parts):
        if isinstance(part, Words):  # messages of errors name folders
            part.text = scrub(part.text)
    return sections
