"""The shipped search-space file, and a strict YAML reader: no repeated keys, aliases or unknown tags."""

from pathlib import Path
from typing import Any

import yaml

from tuner.core.errors import UsageError
from tuner.space.file.shipped import SHIPPED_FILE

LENGTH_LIMIT = 1_000_000  # characters; the default file has some thousand
DEPTH_LIMIT = 20  # nested lists and mappings; the schema needs six
# libyaml's loader, ten times as fast, where PyYAML was built with it
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
TAG_PREFIX = "tag:yaml.org,2002:"
UNTYPED = (f"{TAG_PREFIX}str", f"{TAG_PREFIX}merge")  # tags of scalars that are text, and of <<


def default_space_file() -> Path:
    """Returns the path of the search-space file that is shipped with tuner."""
    return SHIPPED_FILE


def load(text: str, name: str) -> object:
    """Parses a YAML document without aliases, repeated keys, and tags other than YAML's own.

    None for an empty text. Raises UsageError, beginning with ``name``, for any other text, and above 20
    levels or 1 000 000 characters.
    """
    if len(text) > LENGTH_LIMIT:
        raise UsageError(f"{name}: found {len(text)} characters, allowed {LENGTH_LIMIT}")
    try:
        _check_events(text, name)
        root = yaml.compose(text, LOADER)
        _check_nodes(root, name)
        if root is None:
            return None
        return LOADER("").construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # libyaml's own limit, while it reads ahead
        if mark is not None and "nesting depth" in str(error.problem):
            raise _too_deep(f"{name}: {_line(mark)}") from None
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise UsageError(f"{name}: {line}found no YAML ({error.problem or error.context})") from None
    except (yaml.YAMLError, ValueError) as error:  # a character or a number that YAML cannot hold
        reason = " ".join(str(error).split())
        raise UsageError(f"{name}: found no YAML ({reason})") from None


def item_lines(text: str) -> tuple[int, ...]:
    """Returns the line number, from 1, of each item of a document that is a list.

    Also of a mapping whose only value is a list; () for any other document. Raises yaml.YAMLError for text
    that is not YAML.
    """
    root = yaml.compose(text, LOADER)
    if isinstance(root, yaml.MappingNode) and len(root.value) == 1:
        root = root.value[0][1]
    if not isinstance(root, yaml.SequenceNode):
        return ()
    return tuple(item.start_mark.line + 1 for item in root.value)


def dump(document: object) -> str:
    """Returns a document as YAML text.

    ``load`` refuses the text if the document holds the same list or mapping twice, which becomes an alias.
    """
    return str(yaml.safe_dump(document, sort_keys=False, width=110))


def _check_events(text: str, name: str) -> None:
    depth = documents = 0
    for event in yaml.parse(text, LOADER):
        if isinstance(event, yaml.ScalarEvent):  # most of them
            continue
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if documents > 1:
            raise UsageError(f"{name}: {_line(event.start_mark)}: has a second document")
        if isinstance(event, yaml.AliasEvent):  # a few lines of aliases expand to gigabytes
            where = f"{name}: {_line(event.start_mark)}"
            raise UsageError(f"{where}: the alias *{event.anchor} is not supported", "write the values out")
        if depth > DEPTH_LIMIT:
            raise _too_deep(f"{name}: {_line(event.start_mark)}")


def _too_deep(where: str) -> UsageError:
    return UsageError(f"{where}: found deeper nesting, allowed {DEPTH_LIMIT} levels")


def _check_nodes(node: yaml.Node | None, name: str) -> None:
    if isinstance(node, yaml.ScalarNode):
        _value(node, name)
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_nodes(item, name)
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[object] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise UsageError(f"{name}: {_line(key.start_mark)}: a key is a list or a mapping, not text")
        keys = {key.value, _value(key, name)}  # 1 and 0x1 are one key, and so are 1 and "1"
        if seen & keys:
            raise UsageError(f"{name}: {_line(key.start_mark)}: the key {key.value!r} is given twice")
        seen |= keys
    for _, value in node.value:
        _check_nodes(value, name)


def _value(node: yaml.ScalarNode, name: str) -> object:
    """Returns a scalar's value. Raises UsageError for text that its tag does not allow, as !!bool maybe."""
    if node.tag in UNTYPED:
        return node.value
    try:
        return LOADER("").construct_object(node)
    except (LookupError, AttributeError):  # PyYAML reads what it expects, unchecked
        kind = node.tag.removeprefix(TAG_PREFIX)
        where = f"{name}: {_line(node.start_mark)}"
        raise UsageError(f"{where}: found {node.value!r}, allowed what is a !!{kind} in YAML") from None


def _line(mark: Any) -> str:  # of PyYAML, or of libyaml
    if mark is None:
        return "line ?"
    return f"line {mark.line + 1}"
