"""Sections -> one HTML file that needs nothing else: styles, scripts, numbers and plotly are inside."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from markupsafe import Markup

import nearkin
from nearkin.errors import NearkinError
from nearkin.pages._base import Figure, Part, Section

# no request can leave the page, whatever is in it
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})

Fact = tuple[str, str, str]  # a heading, an answer, and a sentence about it


@dataclass
class Page:
    """What a page says first, and its sections.

    Parameters:
        title: what it is about.
        lead: sentences of the first screen.
        facts: the first screen's answers: what, the answer, and a sentence about it.
        sections: all that follows.
        first: the first screen's pictures.
    """

    title: str
    lead: list[str]
    facts: list[Fact]
    sections: list[Section]
    first: list[Part] = field(default_factory=list)

    @property
    def parts(self) -> list[Part]:
        """All parts, in order."""
        return [*self.first, *(part for section in self.sections for part in section.parts)]


def render(page: Page) -> str:
    """The page as HTML."""
    from jinja2 import Environment, StrictUndefined

    check(page)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    (template,) = _assets(".html")
    charts = any(isinstance(part, Figure) for part in page.parts)
    return environment.from_string(template).render(
        page=page,
        policy=POLICY,
        version=nearkin.__version__,
        styles=Markup("\n".join(_assets(".css"))),
        scripts=[Markup(script) for script in _scripts(charts)],
        data=Markup(embedded({part.id: _data(part) for part in page.parts if part.kind or part.table is not None})),
    )


def check(page: Page) -> None:
    """Ids stand once each: links, scripts and numbers find their part by them."""
    ids = [section.id for section in page.sections] + [part.id for part in page.parts if part.id]
    twice = {id for id in ids if ids.count(id) > 1}
    wrong = [id for id in ids if not id.replace("-", "").isalnum() or id != id.lower() or not id.isascii()]
    lacking = [part for part in page.parts if not part.id and (part.kind or part.table is not None)]
    if twice or wrong or lacking:
        raise NearkinError(
            f"ids of a page: {sorted(twice) + wrong or 'a part with numbers has none'}; each once, of a-z, 0-9 and -"
        )


def embedded(value: Any) -> str:
    """JSON that is safe inside <script>: no character in it can end the element. NaN and infinity become null."""
    text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(UNSAFE)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_finite(item) for item in value]
    if hasattr(value, "item"):  # numpy's numbers
        return _finite(value.item())
    return value


def _data(part: Part) -> dict[str, Any]:
    table = part.table
    numbers = {} if table is None else {"table": {"name": table.name, "header": table.header, "rows": table.rows}}
    return {**numbers, **part.data()}


def _assets(ending: str) -> list[str]:
    """The files of assets/ with that ending; page.css and page.js first: what they define, others use."""
    assets = [file for file in (files("nearkin.pages") / "assets").iterdir() if file.name.endswith(ending)]
    assets.sort(key=lambda file: (not file.name.startswith("page."), file.name))
    return [file.read_text(encoding="utf-8") for file in assets]


def _scripts(charts: bool) -> list[str]:
    """Plotly, where there are charts, and ours; inside a page, `</script` may stand in none."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    scripts = [*([get_plotlyjs()] if charts else []), *_assets(".js")]
    return [text.replace("</script", "<\\/script") for text in scripts]
