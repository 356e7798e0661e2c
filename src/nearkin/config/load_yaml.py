"""YAML that may be anyone's: read in bounded time and memory, or refused in one line.

A few hundred bytes of aliases, each a list of the one before, stand for billions of values, and deep nesting ends the
process inside libyaml. Both are seen in the stream of events, before any value is built.
"""

from typing import Any

import yaml

from nearkin.errors import NearkinError

SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same, ten times as fast, where libyaml is
PLAIN = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")}  # none can be changed
MERGE = "tag:yaml.org,2002:merge"
LARGEST = 2**20  # characters
DEEPEST = 50  # levels; a spec has 4
MOST = 100_000  # values, counted as often as aliases repeat them
SHORT = 40  # characters of a word that is likely to come again
HARMLESS = 200  # levels that a text may have at most, so that it need not be looked through

_tags: dict[tuple[str, Any], str] = {}  # what a word is: a text, a number, ...
_values: dict[tuple[str, str], Any] = {}  # tag and word -> its value


class Loader(SAFE):
    """The safe loader, quicker where a thousand specs are read for one list of runs: the same words come again and
    again, and most values are texts."""

    def get_single_data(self) -> Any:
        """What the text holds, once no mapping in it names a key twice: YAML itself lets the last one win."""
        node = self.get_single_node()
        if node is None:
            return None
        _check_keys(node)
        return self.construct_document(node)

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """The tag of a value; that of a word that came before is known."""
        if kind is not yaml.ScalarNode or len(value) > SHORT:
            return super().resolve(kind, value, implicit)
        key = value, implicit
        if key not in _tags:
            _keep(_tags, key, super().resolve(kind, value, implicit))
        return _tags[key]

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """The value of a node; a text is one already, that of a word that came before is known."""
        if type(node) is not yaml.ScalarNode or node.tag not in PLAIN or len(node.value) > SHORT:
            return super().construct_object(node, deep)
        key = node.tag, node.value
        if key not in _values:
            _keep(_values, key, super().construct_object(node, deep))
        return _values[key]


def _check_keys(root: Any) -> None:
    """Refuse a mapping with two equal keys. A merge (`<<: *base`) may be overridden: it has not happened yet."""
    nodes, seen = [root], {id(root)}  # an alias leads to the same node again
    while nodes:
        node = nodes.pop()
        if type(node) is yaml.MappingNode:
            lines: dict[tuple[str, str], int] = {}  # key -> where it stands first
            for key, _ in node.value:
                if type(key) is not yaml.ScalarNode or key.tag == MERGE:
                    continue
                line = key.start_mark.line + 1
                if (key.tag, key.value) in lines:
                    first = lines[key.tag, key.value]
                    where = f"twice in line {line}" if first == line else f"twice, in lines {first} and {line}"
                    raise NearkinError(f"{key.value!r} is given {where}; leave one of them out")
                lines[key.tag, key.value] = line
            inner = [part for pair in node.value for part in pair]
        else:
            inner = node.value if type(node) is yaml.SequenceNode else []
        for part in inner:
            if type(part) is not yaml.ScalarNode and id(part) not in seen:
                seen.add(id(part))
                nodes.append(part)


def _keep(known: dict[Any, Any], key: Any, value: Any) -> None:
    if len(known) >= MOST:
        known.clear()
    known[key] = value


def load_yaml(text: str) -> Any:
    """What a YAML text holds; a NearkinError where it is none, or larger than any settings are."""
    if len(text) > LARGEST:
        raise NearkinError(f"it is too large for settings: {len(text):,} characters, at most {LARGEST:,}")
    try:
        if "*" in text or _most_levels(text) > HARMLESS:
            _check(text)
        return yaml.load(text, Loader=Loader)
    except NearkinError:
        raise
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:  # ValueError: a 13th month
        raise NearkinError(f"it is not YAML: {' '.join(str(error).split())}") from error


def _most_levels(text: str) -> int:
    """More levels than the text can have: each takes a bracket, or a character of a line."""
    longest = max(map(len, text.splitlines()), default=0)
    return text.count("[") + text.count("{") + longest


def _check(text: str) -> None:
    """Refuse deep nesting, and aliases that stand for too much."""
    anchors: dict[str, int] = {}  # anchor -> how many values it stands for
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]  # anchor and values so far, from the outside in
    for event in yaml.parse(text, Loader=SAFE):
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            open_nodes.append((event.anchor, 1))
            if len(open_nodes) > DEEPEST:
                raise NearkinError(f"its values lie more than {DEEPEST} levels deep")
            continue
        if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            anchor, values = open_nodes.pop()
        elif isinstance(event, yaml.ScalarEvent):
            anchor, values = event.anchor, 1
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise NearkinError(f"the alias *{event.anchor} stands inside what it repeats, or before it")
            anchor, values = None, anchors[event.anchor]
        else:
            continue
        if anchor is not None:
            anchors[anchor] = values
        outer, before = open_nodes[-1]
        open_nodes[-1] = outer, before + values
        if before + values > MOST:
            raise NearkinError(f"its aliases stand for more than {MOST:,} values")
