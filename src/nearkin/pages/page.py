"""Sections -> one HTML file that needs nothing else: styles, scripts, numbers and plotly are inside."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from markupsafe import Markup

import nearkin
from nearkin.errors import NearkinError
from nearkin.pages.base import Chart, Part, Section

# no request can leave the page, whatever is in it
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@dataclass
class Page:
    """What a page says first, and its sections.

    Parameters:
        title: what it is about.
        lead: sentences of the first screen.
        facts: the first screen's figures: what, value, and a word about it.
        sections: all that follows.
    """

    title: str
    lead: list[str]
    facts: list[tuple[str, str, str]]
    sections: list[Section]

    @property
    def parts(self) -> list[Part]:
        """All parts, in order."""
        return [part for section in self.sections for part in section.parts]


def render(page: Page) -> str:
    """The page as HTML."""
    from jinja2 import Environment, StrictUndefined

    check(page)
    template = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(_asset("page.html"))
    charts = any(isinstance(part, Chart) or getattr(part, "plotly", False) for part in page.parts)
    return template.render(
        page=page,
        policy=POLICY,
        version=nearkin.__version__,
        styles=Markup(_assets(".css")),
        scripts=[Markup(_script(text)) for text in ([_plotly()] if charts else []) + _scripts()],
        data=Markup(embedded({part.id: _data(part) for part in page.parts if part.kind or part.table})),
    )


def check(page: Page) -> None:
    """Ids stand once each: links, scripts and numbers find their part by them."""
    ids = [each.id for each in page.sections] + [part.id for part in page.parts if part.id]
    twice = {each for each in ids if ids.count(each) > 1}
    wrong = [each for each in ids if not each.replace("-", "").isalnum() or each != each.lower() or not each.isascii()]
    lacking = [part for part in page.parts if not part.id and (part.kind or part.table)]
    if twice or wrong or lacking:
        raise NearkinError(
            f"ids of a page: {sorted(twice) + wrong or 'a part with numbers has none'}; each once, of a-z, 0-9 and -"
        )


def embedded(value: Any) -> str:
    """JSON that is safe inside <script>: no character in it can end the element. NaN and infinity become null."""
    text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return "".join(UNSAFE.get(c, c) for c in text)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_finite(each) for each in value]
    if hasattr(value, "item"):  # numpy's numbers
        return _finite(value.item())
    return value


def _data(part: Part) -> dict[str, Any]:
    table = part.table
    own = {} if table is None else {"table": {"name": table.name, "header": table.header, "rows": table.rows}}
    return {**own, **part.data()}


def _asset(name: str) -> str:
    return (files("nearkin.pages") / "assets" / name).read_text(encoding="utf-8")


def _names(ending: str) -> list[str]:
    """page.css and page.js first: what they define, others use."""
    found = [file.name for file in (files("nearkin.pages") / "assets").iterdir() if file.name.endswith(ending)]
    return sorted(found, key=lambda name: (not name.startswith("page."), name))


def _assets(ending: str) -> str:
    return "\n".join(_asset(name) for name in _names(ending))


def _scripts() -> list[str]:
    return [_asset(name) for name in _names(".js")]


def _plotly() -> str:
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    return get_plotlyjs()


def _script(text: str) -> str:
    """A script of ours or plotly's: inside a page, `</script` may stand in none."""
    return text.replace("</script", "<\\/script")
