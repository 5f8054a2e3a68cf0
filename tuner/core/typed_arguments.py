"""Checks arguments of public functions against their annotations: a wrong type is a UsageError of one line.

``@typed_arguments`` stands on each function that users call from Python. A function checks itself what a type
cannot say, such as the least number of trials.
"""

import collections.abc
import functools
import inspect
import numbers
import operator
import reprlib
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from tuner.core.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")
NUMBER_LIMIT = 2**63  # of databases, and of C
LINE_LIMIT = 60  # characters of a value in a message
PLAIN = (str, int, float, complex, bytes, types.NoneType, tuple, list, dict, set, frozenset, Path)
NUMBERS: dict[Any, Any] = {int: numbers.Integral, float: numbers.Real}  # also of other libraries
NOUNS = {  # name of a type -> what a message calls its values
    "str": "a text",
    "int": "an integer",
    "float": "a number",
    "bool": "True or False",
    "NoneType": "None",
    "Path": "a path",
    "Problem": "such as tuner.Matmul(512, 512, 512)",
    "datetime": "a datetime",
}


def typed_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: the function raises UsageError for an argument whose type its annotation does not allow.

    Also for integers of more than 64 bits, and for text with NUL. Integers of other types, such as numpy's,
    are passed on as int. A call that does not fit the signature raises TypeError.
    """
    signature = inspect.signature(function)
    module: dict[str, Any] = function.__globals__

    @functools.cache
    def annotation(name: str) -> Any:
        given = signature.parameters[name].annotation
        return eval(given, module) if isinstance(given, str) else given  # noqa: S307 - of our own sources

    @functools.wraps(function)
    def checked(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{function.__name__}: {error}; {_by_keyword(signature)}") from None
        for name, given in bound.arguments.items():
            if signature.parameters[name].kind is not inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = typed(name, given, annotation(name))
        return function(*bound.args, **bound.kwargs)

    return checked


def _by_keyword(signature: inspect.Signature) -> str:
    """Returns which arguments a function takes, for the message of a call that does not fit."""
    names = []
    for name, parameter in signature.parameters.items():
        match parameter.kind:
            case inspect.Parameter.KEYWORD_ONLY:
                names.append(f"{name}=")
            case inspect.Parameter.VAR_KEYWORD:
                names.append(f"{name} by keyword, such as shape='512x512x512'")
            case _:
                names.append(name)
    return f"it takes {', '.join(names)}"


def typed(name: str, given: Any, annotation: Any) -> Any:
    """Returns the value of the argument ``name``, an integer of another type (numpy's) as int.

    Raises UsageError if ``annotation`` does not allow the value, for an integer of more than 64 bits, and for
    a text or path with NUL or invalid Unicode.
    """
    if not isinstance(given, int) and isinstance(given, numbers.Integral):
        given = operator.index(given)
    if isinstance(given, int) and not -NUMBER_LIMIT <= given < NUMBER_LIMIT:
        raise UsageError(f"{name}: found {shown(given)}, allowed a number of 64 bits")
    if not _is_allowed(given, annotation):
        raise UsageError(f"{name}: found {shown(given)}, allowed {_allowed_text(annotation)}")
    if isinstance(given, str | Path) and not _is_storable(str(given)):
        raise UsageError(f"{name}: found {shown(given)}, allowed a text of Unicode without NUL")
    return given


def _is_allowed(given: Any, annotation: Any) -> bool:
    """Returns whether a value is of an annotated type: an int is a float, a list is a tuple."""
    origin = typing.get_origin(annotation)
    of = typing.get_args(annotation)
    if annotation in (Any, object, inspect.Parameter.empty):
        return True
    if origin in (types.UnionType, typing.Union):
        return any(_is_allowed(given, alternative) for alternative in of)
    if origin is typing.Literal:
        return isinstance(given, str) and given in of
    if origin is collections.abc.Callable:
        return callable(given)
    if origin is tuple:
        return isinstance(given, tuple | list) and all(_is_allowed(item, of[0]) for item in given)
    if origin is collections.abc.Sequence:
        is_sequence = isinstance(given, collections.abc.Sequence) and not isinstance(given, str | bytes)
        return is_sequence and all(_is_allowed(item, of[0]) for item in given)
    if origin is collections.abc.Mapping:
        is_mapping = isinstance(given, collections.abc.Mapping)
        return is_mapping and all(
            _is_allowed(key, of[0]) and _is_allowed(item, of[1]) for key, item in given.items()
        )
    if isinstance(given, bool):
        return annotation is bool
    if annotation in NUMBERS:
        return isinstance(given, NUMBERS[annotation])
    return given is None if annotation is None else isinstance(given, origin or annotation)


def _allowed_text(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    of = typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        words = list(dict.fromkeys(map(_allowed_text, of)))
        return f"{', '.join(words[:-1])} or {words[-1]}"
    if origin is typing.Literal:
        return ", ".join(map(str, of))
    if origin is collections.abc.Callable:
        return "a function"
    if origin in (tuple, collections.abc.Sequence):
        if of[0] is Any:
            return "a tuple"
        return f"a tuple of values, each {_allowed_text(of[0])}"
    if origin is collections.abc.Mapping:
        keys, values = map(_allowed_text, of)
        return f"a dictionary with keys {keys} and values {values}"
    name = getattr(annotation, "__name__", "NoneType")
    return NOUNS.get(name, f"a {name}")


def shown(given: Any) -> str:
    """Returns a value as one short line for messages: plain values as Python writes them, abbreviated.

    A type, or the type of any other value, is written as "module.Name".
    """
    if not isinstance(given, PLAIN):
        named = given if isinstance(given, type) else type(given)
        return f"{named.__module__}.{named.__qualname__}"
    if (
        isinstance(given, int) and not -NUMBER_LIMIT <= given < NUMBER_LIMIT
    ):  # Python writes none of 4,300 digits
        return f"an integer of {given.bit_length()} bits"
    try:
        text = reprlib.repr(str(given) if isinstance(given, Path) else given)
    except ValueError:  # such an integer in it
        return f"builtins.{type(given).__name__}"
    return " ".join(text.split())[:LINE_LIMIT]


def _is_storable(text: str) -> bool:
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")  # as file names are
    except UnicodeEncodeError:
        return False
