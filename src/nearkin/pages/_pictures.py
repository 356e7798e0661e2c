"""The sections that look into images: neighbours, the map, confused classes, labels that may be wrong."""

from dataclasses import dataclass, field

from nearkin.comparison.gather import Member
from nearkin.errors import NearkinError
from nearkin.pages import _confusion, _maps, _mislabelled, _neighbours
from nearkin.pages._base import Part, Section, Words
from nearkin.pages._material import Material, untrained_words
from nearkin.pages._sprite import Sprite
from nearkin.pages._tested import Tested, chosen, untrained


@dataclass
class Looked:
    """What was found in the images: sections, and one typical query for the first screen."""

    sections: list[Section] = field(default_factory=list)
    typical: list[Part] = field(default_factory=list)
    sprite: Sprite = field(default_factory=Sprite)

    def finished(self) -> "Looked":
        """The same with the thumbnails, which come into the page once."""
        if len(self.sprite):
            self.sections[-1].parts.append(self.sprite.part())
        return self


def of_boards(material: Material, with_map: bool) -> Looked:
    """The best method's first run on every data set, beside a worse one; on the first screen without training."""
    looked = Looked()
    for board in material.boards:
        try:
            best, other = chosen(board.comparison)
        except NearkinError as error:
            looked.sections.append(_gap(error, board.suffix, board.where))
            continue
        if not looked.typical:
            plain = untrained(board.comparison)
            looked.typical += _typical(best, plain, looked.sprite)
        sections = [
            _neighbours.section(best, other, looked.sprite, id=f"neighbours{board.suffix}"),
            _confusion.section(best, looked.sprite, id=f"confusion{board.suffix}"),
        ]
        if with_map:
            sections.append(_maps.section(best, looked.sprite, id=f"map{board.suffix}"))
        for section in sections:
            section.title = f"{board.where}{section.title}"
        looked.sections += sections
    return looked.finished()


def of_run(member: Member, twins: dict[str, Member], with_map: bool) -> Looked:
    """A single run, on the first screen beside its network without training."""
    looked = Looked()
    try:
        tested = Tested.of(member.run, "the network" if member.untrained else member.settings["loss.name"])
    except NearkinError as error:
        looked.sections.append(_gap(error))
        return looked
    plain = None
    for twin in list(twins.values())[:1]:
        try:
            plain = Tested.of(twin.run, untrained_words(twin))
        except NearkinError:  # its embeddings are gone
            continue
    looked.typical += _typical(tested, plain, looked.sprite)
    sections = [_neighbours.section(tested, None, looked.sprite), _confusion.section(tested, looked.sprite)]
    looked.sections += [*sections, _mislabelled.section(tested, looked.sprite)]
    if with_map:
        looked.sections.insert(1, _maps.section(tested, looked.sprite))
    return looked.finished()


def _typical(best: Tested, plain: Tested | None, sprite: Sprite) -> list[Part]:
    part = _neighbours.typical(best, plain, sprite, "first-query")
    return [] if part is None else [part]


def _gap(error: NearkinError, suffix: str = "", where: str = "") -> Section:
    lead = "What the best method finds, in pictures." if where else "What it finds, in pictures."
    words = Words(f"There are no pictures: {error}.", "warning")
    return Section(f"pictures{suffix}", f"{where}Pictures", lead, [words])
