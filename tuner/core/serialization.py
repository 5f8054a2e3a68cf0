"""Values to text and back: dataclasses as JSON, moments and durations, counts, printable text.

JSON follows the annotations of frozen dataclasses; a wrong value is refused with its place in the JSON.
"""

import datetime
import enum
import json
import re
import sys
import types
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tuner.core.errors import UsageError

Kind = TypeVar("Kind")
QUOTED = 60  # characters of what was found
LARGEST = sys.float_info.max  # NaN and infinities are not below this limit
LARGEST_INTEGER = 2**63 - 1  # that a database stores
WORDS: Final = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
MAPPING: Final = "a mapping (key: value)"
FORM: Final = "form"  # key of a field's metadata
IF_CHANGED: Final = "if_changed"  # key of a field's metadata
STORED_AS: Final = "stored_as"  # key of a field's metadata
LEFT_OUT: Final = "left_out"  # key of a field's metadata
UNIT_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
# Control characters but newline and tab, Unicode line separators, and marks that change the writing direction
CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


# Frozen dataclasses <-> JSON, by their annotations; a wrong value is refused with its place in the JSON.


@dataclass(frozen=True)
class Only:
    """An annotation that limits which JSON values a dataclass field accepts: ``Annotated[int, whole(1)]``."""

    words: str  # for messages: "seconds, more than 0"
    takes: Callable[[Any], bool]  # of any JSON value


def whole(least: int, most: int = LARGEST_INTEGER) -> Only:
    """Returns the annotation of a field that accepts whole numbers, ``least`` to ``most``, both included."""
    if most == LARGEST_INTEGER:
        words = f"{least} or more"
    else:
        words = f"a whole number from {least} to {most}"
    return Only(words, lambda found: type(found) is int and least <= found <= most)


def number(words: str, takes: Callable[[float], bool]) -> Only:
    """Returns the annotation of a field that takes numbers (no bools) for which ``takes`` is True.

    ``words``: what is allowed, for messages.
    """
    return Only(words, lambda found: type(found) in (int, float) and takes(found))


@dataclass(frozen=True)
class Form:
    """How a dataclass field is stored in JSON as another type, with the conversion in both directions."""

    kind: Any
    written: Callable[[Any], Any]  # value of the field -> value of ``kind``
    read: Callable[[Any], Any]  # value of ``kind`` -> value of the field; may raise UsageError
    is_flat: bool  # a dataclass, whose keys are in the same JSON object as the other fields


def form(
    kind: Any, written: Callable[[Any], Any], read: Callable[[Any], Any], *, is_flat: bool = False
) -> dict[str, Form]:
    """Returns the ``metadata`` of a ``dataclasses.field`` that JSON stores as the type ``kind``.

    ``written`` and ``read`` convert; ``is_flat``: the keys of the dataclass ``kind`` are in the same object.
    """
    return {FORM: Form(kind, written, read, is_flat)}


def if_changed() -> dict[str, bool]:
    """Returns ``metadata`` for a ``dataclasses.field``: JSON leaves the field out if it has its default."""
    return {IF_CHANGED: True}


def stored_as(key: str) -> dict[str, str]:
    """Returns the ``metadata`` of a ``dataclasses.field`` that JSON stores under the name ``key``."""
    return {STORED_AS: key}


def left_out() -> dict[str, bool]:
    """Returns the ``metadata`` of a ``dataclasses.field`` with a default that JSON does not have."""
    return {LEFT_OUT: True}


def key_of(field: "Field[Any]") -> str:
    """Returns the key of a dataclass field in JSON: that of ``stored_as``, else the name of the field."""
    return str(field.metadata.get(STORED_AS, field.name))


def encode(value: Any) -> Any:
    """Converts a value to what ``json.dumps`` accepts; returns a value of any other type unchanged.

    Dataclasses become dicts, tuples lists, datetimes ISO 8601, bytes ASCII text, enums their values. A field
    marked IF_CHANGED is left out where it has its default.
    """
    match value:
        case enum.Enum():
            return value.value
        case datetime.datetime():
            return value.isoformat()
        case bytes():
            return value.decode("ascii")
        case tuple():
            return list(map(encode, value))
    if not is_dataclass(value):
        return value
    document: dict[str, Any] = {}
    for field in _stored(value):
        inner = getattr(value, field.name)
        other = field.metadata.get(FORM)
        if field.metadata.get(IF_CHANGED) and inner == field.default:
            continue
        written = encode(inner if other is None else other.written(inner))
        document |= written if other is not None and other.is_flat else {key_of(field): written}
    return document


def decode(kind: type[Kind], found: Any, place: str) -> Kind:
    """Converts ``found``, a parsed JSON or YAML value, to the type ``kind``, such as a dataclass.

    Raises UsageError for a value that does not fit: its message begins with ``place`` and the path below,
    names the first thing that is wrong, and counts the others.
    """
    decoder = _Decoder([])
    value = decoder.value(kind, found, place)
    if not decoder.problems:
        return cast(Kind, value)
    others = len(decoder.problems) - 1
    if others:
        raise UsageError(f"{decoder.problems[0]} (and {others} more)")
    raise UsageError(decoder.problems[0])


def known_part(kind: type, found: Any, place: str) -> dict[str, Any]:
    """Returns the entries of the JSON object ``found`` that are fields of the dataclass ``kind``.

    Drops other entries, which other versions write. Raises UsageError, beginning with ``place``, if ``found``
    is not an object.
    """
    document = decode(dict[str, Any], found, place)
    return {key: document[key] for key in _hints(kind) if key in document}


def parsed(text: str | bytes, place: str) -> Any:
    """Parses a JSON text and returns its value.

    Raises UsageError, beginning with ``place``, for invalid JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: is not JSON: {error}") from error


def require_format(head: Any, name: str, version: int, place: str) -> None:
    """Raises UsageError unless ``head``, a file's first JSON object, has this "format" and "version".

    ``name``: the expected format; ``place``: the file, with which messages begin.
    """
    found = head.get("format") if isinstance(head, dict) else None
    if found != name:
        raise UsageError(f"{place}: found format {found!r}, allowed {name!r}")
    if head.get("version") != version:
        raise UsageError(f"{place}: found version {head.get('version')!r} of {name}, allowed {version}")


@dataclass(frozen=True)
class _Decoder:
    """Converts parsed values by annotations, and lists what is wrong in the order in which it is read."""

    problems: list[str]  # one line each; a value with a problem in it is returned as None

    def value(self, kind: Any, found: Any, place: str) -> Any:
        origin = get_origin(kind)
        if origin is Annotated:
            return self._limited(get_args(kind), found, place)
        if origin in (Union, types.UnionType):
            return self._union(get_args(kind), found, place)
        if origin is tuple:
            return self._tuple(get_args(kind), found, place)
        if origin is dict:
            return self._dict(get_args(kind), found, place)
        if is_dataclass(kind):
            return self._dataclass(cast(type, kind), found, place)
        if kind is Any:
            return found
        if kind is float and type(found) in (int, float):
            return float(found) if abs(found) <= LARGEST else self._refuse(place, found, "a finite number")
        if kind is int and type(found) is int and abs(found) > LARGEST_INTEGER:
            return self._refuse(place, found, f"{-LARGEST_INTEGER} to {LARGEST_INTEGER}")
        if kind in WORDS:
            return found if type(found) is kind else self._refuse(place, found, WORDS[kind])
        return self._from_text(kind, found, place)

    def _limited(self, annotation: tuple[Any, ...], found: Any, place: str) -> Any:
        kind, *limits = annotation
        for limit in limits:
            if not limit.takes(found):
                return self._refuse(place, found, limit.words)
        return self.value(kind, found, place)

    def _from_text(self, kind: Any, found: Any, place: str) -> Any:
        """Converts a string to an enum, a datetime with a time zone, or ASCII bytes."""
        try:
            if kind is bytes:
                return found.encode("ascii")
            if kind is not datetime.datetime:
                return kind(found)
            moment = datetime.datetime.fromisoformat(found)
        except (AttributeError, TypeError, ValueError):
            return self._refuse(place, found, f"a {kind.__name__}")
        if moment.tzinfo:
            return moment
        return self._refuse(place, found, "a moment with its zone")

    def _union(self, kinds: tuple[Any, ...], found: Any, place: str) -> Any:
        others = [kind for kind in kinds if kind is not types.NoneType]
        if found is None and len(others) < len(kinds):
            return None
        if len(others) == 1:
            return self.value(others[0], found, place)
        for kind in others:
            if _is_alternative(kind, found):
                return self.value(kind, found, place)
        return self._refuse(place, found, " or ".join(WORDS.get(kind, kind.__name__) for kind in others))

    def _tuple(self, kinds: tuple[Any, ...], found: Any, place: str) -> Any:
        if not isinstance(found, list):
            return self._refuse(place, found, "a list")
        kinds_of_items = (kinds[0],) * len(found) if kinds[-1] is ... else kinds
        if len(kinds_of_items) != len(found):
            return self._refuse(place, found, f"a list of {len(kinds_of_items)}")
        pairs = enumerate(zip(kinds_of_items, found, strict=True))
        return tuple(self.value(kind, item, f"{place}[{number}]") for number, (kind, item) in pairs)

    def _dict(self, kinds: tuple[Any, ...], found: Any, place: str) -> Any:
        if not isinstance(found, dict):
            return self._refuse(place, found, MAPPING)
        entries = {}
        for key, item in found.items():
            inner = _at(place, key)
            name = self.value(kinds[0], key, inner)
            entries[name] = self.value(kinds[1], item, inner)
        return entries

    def _dataclass(self, kind: type, found: Any, place: str) -> Any:
        if not isinstance(found, dict):
            return self._refuse(place, found, MAPPING)
        before = len(self.problems)
        hints = _hints(kind)
        for key in found:  # first: a mistyped key is unknown, and another is missing
            if key not in hints:
                allowed = ", ".join(hints)
                self._add(
                    _at(place, quoted(key).strip("'")), f"found the key {quoted(key)}, allowed {allowed}"
                )
        values = {}
        for field in _stored(kind):
            key = key_of(field)
            other: Form | None = field.metadata.get(FORM)
            if other is not None and other.is_flat:
                flat = {name: found[name] for name in _hints(other.kind) if name in found}
                values[field.name] = self._formed(other, flat, place)
            elif key in found and other is not None:
                values[field.name] = self._formed(other, found[key], _at(place, key))
            elif key in found:
                values[field.name] = self.value(hints[key], found[key], _at(place, key))
            elif field.default is MISSING and field.default_factory is MISSING:
                self._add(_at(place, key), "is missing; it has no default")  # later versions' fields have one
        if len(self.problems) > before:
            return None
        return self._made(kind, values, place)

    def _made(self, kind: type, values: dict[str, Any], place: str) -> Any:
        try:
            return kind(**values)
        except ValueError as error:
            return self._add(place, str(error))

    def _formed(self, other: Form, found: Any, place: str) -> Any:
        before = len(self.problems)
        value = self.value(other.kind, found, place)
        if len(self.problems) > before:
            return None
        try:
            return other.read(value)
        except UsageError as error:
            return self._add(place, str(error))

    def _refuse(self, place: str, found: Any, allowed: str) -> None:
        shown = "nothing" if found is None else quoted(found)
        self._add(place, f"found {shown}, allowed {allowed}")

    def _add(self, place: str, problem: str) -> None:
        self.problems.append(f"{place.rstrip(': ')}: {problem}")


def _is_alternative(kind: Any, found: Any) -> bool:
    """Returns whether ``found`` is read as the alternative ``kind`` of a union type.

    A mapping is read as a dataclass if it has the key of the dataclass's first field.
    """
    if is_dataclass(kind):
        return isinstance(found, dict) and key_of(fields(kind)[0]) in found
    if get_origin(kind) is tuple:
        return isinstance(found, list)
    return type(found) is kind or (kind is float and type(found) is int)


def _stored(kind: Any) -> "list[Field[Any]]":
    return [field for field in fields(kind) if not field.metadata.get(LEFT_OUT)]


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    of_keys: dict[str, Any] = {}
    for field in _stored(kind):
        other: Form | None = field.metadata.get(FORM)
        if other is not None and other.is_flat:
            of_keys |= _hints(other.kind)
        else:
            of_keys[key_of(field)] = hints[field.name]
    return of_keys


def _at(place: str, name: str) -> str:
    """Returns the position of a field for messages, ``place.name``.

    Without the dot if ``place`` ends with a space.
    """
    if place.endswith(" "):
        return f"{place}{name}"
    return f"{place}.{name}"


def quoted(found: object) -> str:
    """Returns ``repr(found)`` for an error message, cut after 60 characters (QUOTED)."""
    text = repr(found)
    if len(text) <= QUOTED:
        return text
    return f"{text[:QUOTED]}..."


def parse_moment(text: str, name: str = "since") -> datetime.datetime:
    """Returns the moment of an ISO 8601 text, in UTC unless it has a zone. Raises UsageError for other text.

    ``name``: the option, with which the message begins.
    """
    try:
        return with_zone(datetime.datetime.fromisoformat(text))
    except ValueError as error:
        raise UsageError(f"{name}: found {text!r}, allowed such as 2026-01-31 or 2026-01-31T12:00") from error


def with_zone(moment: datetime.datetime) -> datetime.datetime:
    """Returns ``moment`` with a time zone: unchanged where it has one, else taken as UTC."""
    if moment.tzinfo:
        return moment
    return moment.replace(tzinfo=datetime.UTC)


def utc_text(moment: datetime.datetime) -> str:
    """Returns a moment as ISO 8601 in UTC, in whole seconds: 2026-01-31T12:00:00Z."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_seconds(text: str) -> float:
    """Returns the seconds of a text such as ``60s``, ``5m``, ``1.5h`` or ``90``.

    Raises UsageError for a text of another form, and for 0.
    """
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smh]?)", text)
    seconds = float(match[1]) * UNIT_S[match[2]] if match else 0.0
    if not seconds > 0:
        raise UsageError(f"budget: found {text!r}, allowed a time such as 60s, 5m or 1h")
    return seconds


def printable_lines(text: str) -> str:
    r"""Returns a text with control characters as escapes such as \u001b; newlines and tabs stay."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable(text: str) -> str:
    r"""Returns a text fit for one line: unprintable characters become escapes such as \n and \x1b."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def count_text(count: int, noun: str) -> str:
    """Returns a count with its noun, in the plural with an s: '1 trial', '2 trials'."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}s"


def seconds_text(seconds: float) -> str:
    """Returns a time, given in seconds, with up to four significant digits and its unit: s, ms, us or ns."""
    scale, unit = next((pair for pair in UNITS if seconds >= pair[0]), (1e-9, "ns"))
    return f"{seconds / scale:.4g} {unit}"


def interval_text(interval_s: tuple[float, float]) -> str:
    """Returns both ends of an interval of times: '1.2 ms .. 1.3 ms'."""
    return f"{seconds_text(interval_s[0])} .. {seconds_text(interval_s[1])}"
