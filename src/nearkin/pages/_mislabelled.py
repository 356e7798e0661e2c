"""Images that may be mislabelled: their neighbours agree with each other, and not with the label."""

from collections import Counter

import numpy as np
from markupsafe import Markup

from nearkin.pages._base import Part, Section, Words, attempt
from nearkin.pages._pictured import Cards
from nearkin.pages._pixels import Pictures
from nearkin.pages._sprite import Sprite, named
from nearkin.pages._tested import NEAREST, Tested
from nearkin.present import Column, Table
from nearkin.units import NUMBER, SHARE

LEAST = 0.6  # share of the neighbours that must have one other class
LISTED, SHOWN, BESIDE = 200, 24, 4  # in the table, with pictures, neighbours of each
SHARES = [Column("share", unit=SHARE), Column("own share", "share of its label", SHARE)]
COLUMNS: list[Column | str] = ["row", "file", "class", "neighbours' class", *SHARES, Column("similarity", unit=NUMBER)]
CAUTION = (
    "This is a hint and no verdict: an image that is only hard for the model looks the same here, and a weak model "
    "lists many. Look at an image before its label is changed."
)
CARD = Markup(
    'labelled <strong>{}</strong>, neighbours say <strong>{}</strong><br><span class="file">{}</span><br>'
    '<span class="quiet">{}</span>'
)


def section(tested: Tested, sprite: Sprite) -> Section:
    """The suspects of a run, with pictures that go into the sprite."""
    title, nothing = "Images that may be mislabelled", "Nothing can be said"
    lead = "Images whose neighbours agree with each other and not with the label."
    return attempt("mislabelled", title, lead, nothing, lambda: _parts(tested, sprite))


def _parts(tested: Tested, sprite: Sprite) -> list[Part]:
    table, k = suspects(tested), depth(tested)
    rule = (
        f"An image is listed when at least {100 * LEAST:.0f} % of its {k} nearest neighbours have one and the same "
        f"other class; sorted by that share. Listed: {len(table):,} of {len(tested.query):,} images."
    )
    words = Words(f"{rule}\n\n{CAUTION}")
    if not table.rows:
        return [words]
    total = len(table)
    table.rows = table.rows[:LISTED]
    pictures, cards = Pictures(tested, sprite), []
    for row in table.records()[:SHOWN]:
        number, name, other = row["row"], row["class"], row["neighbours' class"]
        votes, agree = round(row["share"] * k), round(row["own share"] * k)
        counts, file = f"{votes} of {k} neighbours; {agree} agree with the label", tested.image(number)
        near = [(n, f"neighbour: {name}, {tested.image(n)}", "") for n, name in neighbours_of(tested, number, k)]
        groups = [[(number, f"labelled {name}, {file}", "asked")], near]
        cards.append((CARD.format(named(name), named(other), named(file), counts), groups))
    tiles = pictures.tiles(row for _, groups in cards for group in groups for row, *_ in group)
    note = f"Left the image, then its nearest neighbours. Shown: {len(cards):,} of {total:,}; the download has "
    note += f"{len(table):,}."
    return [words, *pictures.gaps(), Cards("mislabelled-images", "", table, tiles, cards, note)]


def depth(tested: Tested) -> int:
    """How many neighbours vote: 10, but no more than a class of middle size has images in the gallery; at least 3."""
    _, sizes = np.unique(tested.labels[tested.gallery], return_counts=True)
    return min(int(np.clip(np.median(sizes), 3, NEAREST)), tested.sets.available)


def suspects(tested: Tested, least: float = LEAST) -> Table:
    """All images that fit the rule: by the share of the other class, then by how few agree with the label, then by the
    similarity of those neighbours."""
    k = depth(tested)
    place, similarity = tested.nearest.place[:, :k], tested.nearest.similarity[:, :k]
    votes, labels = tested.labels[place], tested.labels[tested.query]  # (Q, k), (Q,)
    rows = []
    for q in np.flatnonzero((votes == labels[:, None]).mean(1) <= 1 - least):
        counts = Counter(votes[q].tolist())
        agree = counts.pop(str(labels[q]), 0)
        other, n = max(counts.items(), key=lambda vote: vote[1])  # of equal ones the nearer: counted in order
        if n < least * k - 1e-9:
            continue
        alike = float(similarity[q][votes[q] == other].mean())
        at = int(tested.query[q])
        shares = [n / k, agree / k, round(alike, 4)]
        rows.append([int(tested.rows[at]), tested.file(at), str(labels[q]), other, *shares])
    rows.sort(key=lambda row: (-row[4], row[5], -row[6], row[0]))
    return Table("mislabelled", COLUMNS, rows)


def neighbours_of(tested: Tested, row: int, k: int, most: int = BESIDE) -> list[tuple[int, str]]:
    """Row and class of the nearest neighbours of an image."""
    return [
        (int(tested.rows[p]), str(tested.labels[p])) for p in tested.nearest.place[tested.query_of[row], : min(k, most)]
    ]
