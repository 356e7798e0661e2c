"""What `nearkin list` and `nearkin explain` show of the catalogue."""

from collections.abc import Sequence
from typing import Any

from nearkin.config.catalogue import Catalogue, Entry, shown
from nearkin.present import Column, Shown, Table
from nearkin.registry import PARTS


def list_table(kind: str, entries: Sequence[dict[str, Any]]) -> Table:
    """The parts of a kind, with papers where there are any, else with what each part is."""
    last = "paper" if any("paper" in entry for entry in entries) else "about"
    names = [name for name in ("name", "takes", "gives", "defaults", last) if any(name in entry for entry in entries)]
    return Table(kind, names, [[_words(entry.get(name, "")) for name in names] for entry in entries])


def _words(value: Any) -> str:
    return ", ".join(f"{key}={given}" for key, given in value.items()) if isinstance(value, dict) else str(value)


class Explained(Shown):
    """What a key means.

    Parameters:
        entries: all that goes by the key.
        catalogue: where they are from.
    """

    def __init__(self, entries: Sequence[Entry], catalogue: Catalogue):
        self.entries, self.catalogue = entries, catalogue
        self._classes = [entry for entry in entries if entry.doc]

    @property
    def words(self) -> list[str]:
        """Classes: their docstrings as help() shows them, and how a spec sets them."""
        lines = []
        for entry in self._classes:
            lines += [f"{entry.kind} {entry.key}", entry.doc, ""]
            if entry.choices:
                lines += [f"Stages, for model.cut: {', '.join(entry.choices)}", ""]
            if entry.settings:
                defaults = " ".join(f"{setting.key}={shown(setting.default)}" for setting in entry.settings)
                lines += [f"Defaults: {self.catalogue.word_of(entry.kind)}={entry.key} {defaults}", ""]
        return lines[:-1]

    @property
    def tables(self) -> list[Table]:
        """Settings, parts and groups: what is known of them, and what they have. A hyper-parameter of several classes
        is one table for each kind of class."""
        rest = [entry for entry in self.entries if not entry.doc]
        if sum(entry.kind == "hyper-parameter" for entry in rest) > 1:
            return [self._shared(key, rest) for key in dict.fromkeys(entry.key for entry in rest)]
        return [table for entry in rest for table in self._setting(entry)]

    def _shared(self, key: str, entries: Sequence[Entry]) -> Table:
        rows = [[entry.of, entry.shown, entry.about] for entry in entries if entry.key == key]
        return Table(key, [key.partition(".")[0], "default", "meaning"], rows, key)

    def _setting(self, entry: Entry) -> list[Table]:
        """A setting, a part or a group, in rows of two columns; below them what a part or group has."""
        title, see = entry.kind, ""
        if entry.of:
            title = f"of {self.catalogue.word_of(entry.key.partition('.')[0])}={entry.of}"
        elif entry.kind == "part":
            title = f"{self.catalogue.word_of(entry.key)}=NAME"
            see = f"`nearkin list {PARTS[entry.key].plural}`; `nearkin explain NAME` for one of them"
        elif entry.aliases:
            title = f"in short {' or '.join(entry.aliases)}"
        facts = {
            "meaning": entry.about,
            "default": "" if entry.kind == "group" else entry.shown,
            "source": entry.source,
            "allowed": entry.allowed,
            "see": see,
        }
        rows = [[name, words] for name, words in facts.items() if words]
        tables = [Table(entry.key, [Column("what", entry.key), Column("words", title)], rows)]
        if entry.settings:
            settings = [[setting.key, setting.shown, setting.about] for setting in entry.settings]
            tables.append(Table(f"{entry.key}-settings", ["key", "default", "meaning"], settings))
        return tables
