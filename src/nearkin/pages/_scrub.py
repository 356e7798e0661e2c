"""No folder of this machine reaches a page."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from nearkin.comparison.gather import Gathered

PATH = re.compile(r"(?<![\w./:<-])(?:~|[A-Za-z]:)?[/\\](?:[^/\\\s'\",;:(){}\[\]<>]+[/\\])+")


@dataclass
class Scrubber:
    """Takes the folders of this machine out of texts; the last name of a path stays."""

    folders: list[str] = field(default_factory=list)  # paths that are known as such, whatever is in their names

    @classmethod
    def of(cls, gathered: Gathered) -> "Scrubber":
        """One that knows the folders of these runs."""
        folders = {str(gathered.store.root.resolve()), str(Path.home())}
        for member in gathered.members:
            for value in member.settings.values():
                if isinstance(value, str) and Path(value).is_absolute():
                    folders.add(value)
        return cls(sorted((path for path in folders if len(path) > 1), key=len, reverse=True))

    def __call__(self, text: str) -> str:
        for path in self.folders:
            text = text.replace(path, f"…/{Path(path).name}")
        return PATH.sub("…/", text)
