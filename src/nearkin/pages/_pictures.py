"""The sections that look into images: samples, neighbours, confused classes, labels that may be wrong, the map."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from nearkin.comparison.gather import Member
from nearkin.errors import NearkinError
from nearkin.pages import _confusion, _maps, _mislabelled, _neighbours, _sheets
from nearkin.pages._base import Part, Section, Words
from nearkin.pages._board import Board
from nearkin.pages._members import untrained_words
from nearkin.pages._sprite import Sprite
from nearkin.pages._tested import Tested, chosen, untrained

SectionOf = Callable[[Tested, Sprite], Section]


@dataclass
class Looks:
    """Looks into the images of runs: sections, and one typical query for the first screen.

    Parameters:
        with_map: is there a map of the embeddings? It takes the longest.
    """

    with_map: bool
    typical: list[Part] = field(default_factory=list)
    sprite: Sprite = field(default_factory=Sprite)

    def of_boards(self, boards: list[Board]) -> list[Section]:
        """The best method's first run on every data set, beside a worse one; on the first screen without training."""
        sections: list[Section] = []
        for board in boards:
            try:
                best, other = chosen(board.comparison)
                sections += board.about(self._look(best, other, None if self.typical else untrained(board.comparison)))
            except NearkinError as error:
                sections += board.about([_gap(error, "What the best method finds, in pictures.")])
        return self._finished(sections)

    def of_run(self, member: Member, twins: Iterable[Member]) -> list[Section]:
        """A single run, on the first screen beside its network without training."""
        try:
            tested = Tested.of(member.run, "the network" if member.untrained else member.settings["loss.name"])
        except NearkinError as error:
            return [_gap(error, "What it finds, in pictures.")]
        plain = None
        for twin in list(twins)[:1]:
            try:
                plain = Tested.of(twin.run, untrained_words(twin))
            except NearkinError:  # its embeddings are gone
                continue
        return self._finished(self._look(tested, None, plain, _mislabelled.section))

    def _look(self, best: Tested, other: Tested | None, plain: Tested | None, *more: SectionOf) -> list[Section]:
        self.typical = self.typical or _neighbours.typical(best, plain, self.sprite)
        further = [_confusion.section, *more, *([_maps.section] if self.with_map else [])]
        neighbours = _neighbours.section(best, other, self.sprite)
        return [neighbours, _sheets.samples(best, self.sprite), *(make(best, self.sprite) for make in further)]

    def _finished(self, sections: list[Section]) -> list[Section]:
        """The same with the thumbnails, which come into the page once."""
        if len(self.sprite):
            sections[-1].parts.append(self.sprite)
        return sections


def _gap(error: NearkinError, lead: str) -> Section:
    return Section("pictures", "Pictures", lead, [Words(f"There are no pictures: {error}.", "warning")])
