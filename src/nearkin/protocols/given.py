"""Protocols whose rows are given: by a file, or by the data set as queries and a gallery."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.data.hashing import data_hash
from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.protocols.base import SplitProtocol
from nearkin.protocols.halves import FixedVal
from nearkin.protocols.split import Split, TestRows
from nearkin.registry import PROTOCOLS


def write_split(split: Split, table: Table, name: str) -> str:
    """A split as JSON text: its rows, its hash, and the hash of the data that it divides."""
    content = {"protocol": name, "data": data_hash(table), "rows": len(table), **split.to_dict()}
    return json.dumps(content) + "\n"


@PROTOCOLS.register("file")
class File(SplitProtocol):
    """The rows that a JSON file lists, as `nearkin data split -o FILE` writes it: train, val, query and gallery.

    A run is named by the rows, not by the file. Training and test rows must be disjoint; whether their classes are is
    printed with the split.

    Parameters:
        seed: not used; with a file nothing is random.
        path: the file.
    """

    rule = "best epoch on the validation rows of a file"

    def __init__(self, *, seed: int = 0, path: Path | None = None):
        super().__init__(seed=seed)
        if path is None:
            raise NearkinError(
                "protocol=file needs protocol.path=FILE; `nearkin data split ... -o FILE` writes such a file"
            )
        self.path = path

    def split(self, table: Table) -> Split:
        """The rows of the file, checked against the table."""
        content = self._read()
        split = Split.from_dict(content)
        if content.get("data") is not None and content["data"] != (actual := data_hash(table)):
            raise NearkinError(f"{self.path} divides data {content['data']}, but these are data {actual}")
        rows = np.concatenate([split.train, split.val, split.test.images])
        if len(rows) and (rows.min() < 0 or rows.max() >= len(table)):
            raise NearkinError(f"{self.path} names row {rows.max()}, but the data have {len(table)} rows, from 0 on")
        if len(np.unique(rows)) < len(rows):
            raise NearkinError(
                f"{self.path} has a row in two places: training, validation and test rows must be disjoint"
            )
        return self.complete(table, split.train, split.val, split.test.query, split.test.gallery)

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text())
            if not (isinstance(content, dict) and {"train", "val", "query", "gallery"} <= content.keys()):
                raise ValueError("train, val, query and gallery are needed")
            Split.from_dict(content)
        except OSError as error:
            raise NearkinError(f"protocol.path={self.path} cannot be read: {error.strerror}") from error
        except (ValueError, TypeError, OverflowError) as error:
            why = " ".join(str(error).split())
            raise NearkinError(f"protocol.path={self.path} is not a list of rows: {why}") from error
        return content


@PROTOCOLS.register("query_gallery")
class QueryGallery(FixedVal):
    """Queries search a gallery that they are not part of, as in a shop: In-Shop has both; in other data, a share of the
    test images of every class are queries and the rest is the gallery. A share of the training classes validates.

    Source: In-Shop (Liu et al. 2016) for the roles.

    Parameters:
        seed: draws the queries, the validation classes, and the test half where the data have no official division.
        share: share of the training classes that validate; between 0 and 1.
        queries: share of the test images of each class that are queries, if the data have no roles; between 0 and 1.
            A class has at least one image on either side; a single image of a class is in the gallery.
    """

    rule = "best epoch on held-out training classes"

    def __init__(self, *, seed: int = 0, share: float = 0.1, queries: float = 0.5):
        super().__init__(seed=seed, share=share)
        if not 0 < queries < 1:
            raise NearkinError(f"protocol.queries={queries}: the share of queries must lie between 0 and 1")
        self.queries = queries

    def split(self, table: Table) -> Split:
        """The rows of a table, its test rows in two roles."""
        split = super().split(table)
        if split.test.gallery is not None:
            return split
        rng = np.random.default_rng([self.seed, 4])
        rows = rng.permutation(split.test.query)
        rows = rows[np.argsort(table.labels[rows], kind="stable")]  # class after class, in random order inside
        _, start, size = np.unique(table.labels[rows], return_index=True, return_counts=True)
        query_counts = np.where(size > 1, np.clip(np.rint(self.queries * size), 1, size - 1), 0)
        place = np.arange(len(rows)) - np.repeat(start, size)  # of a row in its class
        query = place < np.repeat(query_counts, size)
        if not query.any():
            raise NearkinError(
                "protocol=query_gallery: every test class has only one image, so no query has a match to find"
            )
        return Split(split.train, split.val, TestRows(np.sort(rows[query]), np.sort(rows[~query])))
