"""Rewrites GPUX in printed form to the generic form, which MLIR parses without knowing the dialect.

    %s = gpux.create_stream () : () -> !gpux.StreamType
    gpux.launch_func @m::@k blocks in (%a, %b, %c) threads in (%d, %e, %f) args(%s : !gpux.StreamType, %x : T)

becomes

    %s = "gpux.create_stream"() : () -> (!gpux.StreamType)
    "gpux.launch_func"(%s, %a, %b, %c, %d, %e, %f, %x) {kernel = @m::@k, operandSegmentSizes = ...} : ...

The accepted forms are those of Intel's RFC and of its printed examples: operands with or without parentheses,
function types or memref types alone. Text in generic form, strings and comments are unchanged; line breaks
are kept, so that messages name the user's lines. Text that the grammar does not cover is left for MLIR's
parser to reject.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tuner.programs.lower.streams.text_cursor import SKIPPED, VALUE, TextCursor

STREAM_TYPE = "!gpux.StreamType"
TOKEN_TYPE = "!gpu.async.token"  # noqa: S105 # a type of MLIR, no secret
INDEX_TYPE = "index"
OPERATION = re.compile(r"(?<![\w.\"!#@%$])gpux\.([a-z_.]+)")
SYMBOL = re.compile(r"@[\w$.-]+(?:::@[\w$.-]+)*")
OLDER_NAMES = {"stream.destroy": "destroy_stream", "stream.create": "create_stream"}
OLDER_PREFIX = re.compile(r"\bimex\.gpux\.")


def to_generic(text: str) -> str:
    """Returns MLIR text with GPUX operations in generic form, which MLIR parses without knowing GPUX.

    GPUX is Intel's dialect of GPU work on named streams. Operations of unknown names stay as they are, for
    MLIR's parser to reject. Raises CandidateError(BIND), with line and column, for an incomplete operation of
    a known form.
    """
    text = OLDER_PREFIX.sub("gpux.", text)
    parts, at = [], 0
    while (match := _next_operation(text, at)) is not None:
        cursor = TextCursor(text, match.end())
        name = OLDER_NAMES.get(match[1], match[1])
        read = READERS.get(name)
        if read is None:
            parts.append(text[at : match.end()])
            at = match.end()
            continue
        written = read(cursor).text(name)
        lines = text.count("\n", match.start(), cursor.end)
        parts += [text[at : match.start()], written, "\n" * lines]
        at = cursor.end
    return "".join([*parts, text[at:]])


def _next_operation(text: str, at: int) -> re.Match[str] | None:
    """Returns the next printed operation from position ``at`` that is not in a string or a comment."""
    while (found := OPERATION.search(text, at)) is not None:
        skipped = SKIPPED.search(text, at)
        if skipped is None or skipped.start() > found.start():
            return found
        at = skipped.end()
    return None


Operand = tuple[str, str]  # value, type


@dataclass
class _Operation:
    """One parsed operation: its operands with their types, in generic order, results and attributes."""

    segments: list[list[Operand]]
    results: list[str] = field(default_factory=list)  # types
    attributes: list[str] = field(default_factory=list)  # name = value
    has_sizes: bool = False  # whether the generic form has operandSegmentSizes

    def text(self, name: str) -> str:
        """Returns the operation in generic form."""
        pairs = [pair for segment in self.segments for pair in segment]
        attributes = list(self.attributes)
        if self.has_sizes:
            sizes = ", ".join(str(len(segment)) for segment in self.segments)
            attributes.append(f"operandSegmentSizes = array<i32: {sizes}>")
        between = f" {{{', '.join(attributes)}}}" if attributes else ""
        values, kinds = (", ".join(part) for part in zip(*pairs, strict=True)) if pairs else ("", "")
        return f'"gpux.{name}"({values}){between} : ({kinds}) -> ({", ".join(self.results)})'


@dataclass(frozen=True)
class _Signature:
    """The types after the colon: a function type, or memref types alone."""

    inputs: list[str] | None  # None: not given
    outputs: list[str]


def _signature(cursor: TextCursor) -> _Signature | None:
    """Returns the types after the colon; None if no colon follows."""
    if not cursor.takes(":"):
        return None
    first = cursor.types()
    return _Signature(first, cursor.types()) if cursor.takes("->") else _Signature(None, first)


def _attributes(cursor: TextCursor) -> list[str]:
    if not cursor.sees("{"):
        return []
    inside = cursor.enclosed("{").strip()
    return [inside] if inside else []


def _tokens(cursor: TextCursor) -> tuple[bool, list[Operand]]:
    """Parses ``async [%t]``; returns whether the operation creates a token, and the tokens it waits for."""
    is_async = cursor.takes("async")
    tokens: list[str] = []
    if cursor.sees("["):
        cursor.require("[")
        tokens = cursor.values()
        cursor.require("]")
    return is_async, [(token, TOKEN_TYPE) for token in tokens]


def _operands(cursor: TextCursor) -> list[str]:
    """Parses operands with or without parentheses."""
    if not cursor.takes("("):
        return cursor.values()
    found = cursor.values()
    cursor.require(")")
    return found


def _typed(cursor: TextCursor, values: list[str], defaults: list[str]) -> tuple[list[Operand], list[str]]:
    """Parses the types of operands; ``defaults``: types of the leading operands that a short form omits."""
    signature = _signature(cursor)
    if signature is None:
        return list(zip(values, defaults, strict=False)), []
    kinds = signature.inputs
    if kinds is None:
        kinds = [*defaults[: len(values) - len(signature.outputs)], *signature.outputs]
    if len(kinds) != len(values):
        raise cursor.error(f"{len(values)} types, one for each operand")
    return list(zip(values, kinds, strict=True)), signature.outputs if signature.inputs is not None else []


def _read_plain(cursor: TextCursor) -> _Operation:
    """Parses ``wait``, ``dealloc``, ``memcpy``, ``memset``, ``destroy_stream``: a stream, then memrefs."""
    is_async, tokens = _tokens(cursor)
    values = _operands(cursor)
    attributes = _attributes(cursor)
    pairs, results = _typed(cursor, values, [STREAM_TYPE])
    made = [TOKEN_TYPE] if is_async and not results else []
    return _Operation([tokens, pairs], [*results, *made], attributes)


def _read_create(cursor: TextCursor) -> _Operation:
    """Parses ``create_stream``, whose type may be omitted."""
    values = _operands(cursor)
    attributes = _attributes(cursor)
    signature = _signature(cursor)
    inputs = (signature.inputs if signature is not None else None) or []
    if len(inputs) != len(values):
        raise cursor.error(f"{len(values)} types, one for each operand")
    return _Operation([list(zip(values, inputs, strict=True))], [STREAM_TYPE], attributes)


def _read_alloc(cursor: TextCursor) -> _Operation:
    """Parses ``alloc``: a stream, dynamic sizes, and layout symbols in brackets."""
    is_async, tokens = _tokens(cursor)
    attributes = ["hostShared"] if cursor.takes("host_shared") else []
    values = _operands(cursor)
    symbols: list[str] = []
    if cursor.takes("["):
        symbols = cursor.values()
        cursor.require("]")
    attributes += _attributes(cursor)
    signature = _signature(cursor)
    if signature is None:
        raise cursor.error("':' and the type of the memref")
    indices = [[(value, INDEX_TYPE) for value in part] for part in (values[1:], symbols)]
    made = [TOKEN_TYPE] if is_async and len(signature.outputs) == 1 else []
    stream = [(value, STREAM_TYPE) for value in values[:1]]
    return _Operation([tokens, stream, *indices], [*signature.outputs, *made], attributes, has_sizes=True)


def _read_launch(cursor: TextCursor) -> _Operation:
    """Parses ``launch_func``: its stream is before the kernel, or first among ``args``."""
    is_async, tokens = _tokens(cursor)
    stream = [(value, STREAM_TYPE) for value in cursor.values()]
    kernel = cursor.matched(SYMBOL, "@module::@kernel")
    cursor.takes(",")
    sizes = [*_sizes(cursor, "blocks"), *_sizes(cursor, "threads")]
    shared: list[Operand] = []
    if cursor.takes("dynamic_shared_memory_size"):
        shared = [(cursor.matched(VALUE, "a value"), "i32")]
    arguments = _arguments(cursor)
    if not stream:
        stream, arguments = arguments[:1], arguments[1:]
    attributes = [f"kernel = {kernel}", *_attributes(cursor)]
    segments = [tokens, stream, *[[(size, INDEX_TYPE)] for size in sizes], shared, arguments]
    return _Operation(segments, [TOKEN_TYPE] if is_async else [], attributes, has_sizes=True)


def _sizes(cursor: TextCursor, word: str) -> list[str]:
    cursor.require(word)
    cursor.require("in")
    sizes = _operands(cursor)
    if len(sizes) != 3:
        raise cursor.error(f"three sizes of {word}, not {len(sizes)}")
    return sizes


def _arguments(cursor: TextCursor) -> list[Operand]:
    """Parses ``args(%a : T, %b : T)``; returns [] if no ``args`` follows."""
    if not cursor.takes("args"):
        return []
    cursor.require("(")
    found: list[Operand] = []
    while cursor.sees("%"):
        value = cursor.matched(VALUE, "a value")
        cursor.require(":")
        found.append((value, cursor.type()))
        if not cursor.takes(","):
            break
    cursor.require(")")
    return found


READERS: dict[str, Callable[[TextCursor], _Operation]] = {
    "create_stream": _read_create,
    "destroy_stream": _read_plain,
    "alloc": _read_alloc,
    "dealloc": _read_plain,
    "memcpy": _read_plain,
    "memset": _read_plain,
    "wait": _read_plain,
    "launch_func": _read_launch,
}
