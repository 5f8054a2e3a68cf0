"""Frozen dataclasses <-> JSON, by their annotations; what does not fit is refused by its place."""

import datetime
import enum
import types
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tuner.core.errors import UsageError

Kind = TypeVar("Kind")
QUOTED = 60  # characters of what was found
LARGEST = 1e300  # no number of ours; NaN and infinities are not below it
LARGEST_INTEGER = 2**63 - 1  # that a database keeps


def encode(value: Any) -> Any:
    """Returns what json takes: objects for dataclasses, lists for tuples, texts for moments, enums, bytes."""
    match value:
        case enum.Enum():
            return value.value
        case datetime.datetime():
            return value.isoformat()
        case bytes():
            return value.decode("ascii")
        case tuple():
            return [encode(item) for item in value]
    if is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    return value


def decode(kind: type[Kind], found: Any, place: str) -> Kind:
    """Reads a value of a type. Raises UsageError with the place of the first thing that does not fit."""
    return cast(Kind, _decode(kind, found, place))


def _decode(kind: Any, found: Any, place: str) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        return _union(get_args(kind), found, place)
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind), found, place)
    if is_dataclass(kind):
        return _dataclass(cast(type, kind), found, place)
    if kind is float and type(found) in (int, float):
        return float(found) if abs(found) < LARGEST else _refuse(place, found, "a finite number")
    if kind is int and type(found) is int and abs(found) > LARGEST_INTEGER:
        return _refuse(place, found, f"{-LARGEST_INTEGER} to {LARGEST_INTEGER}")
    if kind in (str, int, float, bool, type(None)):
        return found if type(found) is kind else _refuse(place, found, kind.__name__)
    return _from_text(kind, found, place)


def _from_text(kind: Any, found: Any, place: str) -> Any:
    """Reads an enum, a moment or ASCII bytes."""
    try:
        if kind is bytes:
            return found.encode("ascii")
        if kind is not datetime.datetime:
            return kind(found)
        moment = datetime.datetime.fromisoformat(found)
    except (AttributeError, TypeError, ValueError):
        return _refuse(place, found, f"a {kind.__name__}")
    return moment if moment.tzinfo else _refuse(place, found, "a moment with its zone")


def _union(kinds: tuple[Any, ...], found: Any, place: str) -> Any:
    """Reads the one of several types that fits: dataclasses are told apart by their fields."""
    for kind in kinds:
        if is_dataclass(kind) and isinstance(found, dict):
            if found.keys() <= {field.name for field in fields(kind)}:
                return _decode(kind, found, place)
        elif type(found) is kind or (kind is float and type(found) is int):
            return _decode(kind, found, place)
    return _refuse(place, found, " or ".join(kind.__name__ for kind in kinds))


def _tuple(kinds: tuple[Any, ...], found: Any, place: str) -> Any:
    if not isinstance(found, list):
        return _refuse(place, found, "a list")
    each = (kinds[0],) * len(found) if kinds[-1] is ... else kinds
    if len(each) != len(found):
        return _refuse(place, found, f"a list of {len(each)}")
    pairs = enumerate(zip(each, found, strict=True))
    return tuple(_decode(kind, item, f"{place}[{number}]") for number, (kind, item) in pairs)


def _dataclass(kind: type, found: Any, place: str) -> Any:
    if not isinstance(found, dict):
        return _refuse(place, found, f"the fields of a {kind.__name__}")
    hints = get_type_hints(kind)
    wanted = [field.name for field in fields(kind)]
    required = {field.name for field in fields(kind) if field.default is MISSING}
    if not required <= set(found) <= set(wanted):  # a field that came later has a default
        return _refuse(place, sorted(found), f"the fields {', '.join(sorted(wanted))}")
    values = {name: _decode(hints[name], found[name], f"{place}.{name}") for name in wanted if name in found}
    try:
        return kind(**values)
    except ValueError as error:
        raise UsageError(f"{place}: {error}") from error


def _refuse(place: str, found: Any, allowed: str) -> Any:
    raise UsageError(f"{place}: found {quoted(found)}, allowed {allowed}")


def quoted(found: object) -> str:
    """Returns what was found as a message shows it: its beginning only, where it is long."""
    text = repr(found)
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}..."
