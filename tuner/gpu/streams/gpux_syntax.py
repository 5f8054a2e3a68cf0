"""Rewrites GPUX in printed form to the generic form, which MLIR parses without knowing the dialect.

    %s = gpux.create_stream () : () -> !gpux.StreamType
    gpux.launch_func @m::@k blocks in (%a, %b, %c) threads in (%d, %e, %f) args(%s : !gpux.StreamType, %x : T)

becomes

    %s = "gpux.create_stream"() : () -> (!gpux.StreamType)
    "gpux.launch_func"(%s, %a, %b, %c, %d, %e, %f, %x) {kernel = @m::@k, operandSegmentSizes = ...} : ...

The accepted forms are those of Intel's RFC and of its printed examples: operands with or without parentheses,
function types or memref types alone. Text in generic form, strings and comments are unchanged; line breaks
are kept, so that messages name the user's lines. Unknown operations are left for MLIR's parser to reject;
a known operation in another form is an error here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

from tuner.core.errors import CandidateError, Stage

SKIPPED = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')  # strings and comments
SPACE = re.compile(r"(?:\s|//[^\n]*)*")
RESULT = re.compile(r"%[\w$.-]+(?::\d+)?(?:\s*,\s*%[\w$.-]+(?::\d+)?)*\s*=")  # the beginning of an operation
VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
SIMPLE_TYPE = re.compile(r"[!\w][\w.$]*")
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
STREAM_TYPE = "!gpux.StreamType"
TOKEN_TYPE = "!gpu.async.token"  # noqa: S105 # a type of MLIR, no secret
INDEX_TYPE = "index"
OPERATION = re.compile(r"(?<![\w.\"!#@%$])gpux\.([a-z_.]+)")
SYMBOL = re.compile(r"@[\w$.-]+(?:::@[\w$.-]+)*")
OLDER_NAMES = {"stream.destroy": "destroy_stream", "stream.create": "create_stream"}
OLDER = "imex.gpux."
# What is written in another way before operations are read: the older prefix, and a launch of the GPU dialect
# with its stream operand, https://github.com/llvm/llvm-project/pull/213031; strings and comments are skipped
FORMS = re.compile(
    rf"(?P<skipped>{SKIPPED.pattern})|(?P<older>\b{re.escape(OLDER)})"
    r"|(?<![\w.])gpu\.launch_func(?P<tokens>(?:\s+async)?(?:\s*\[[^\]\n]*\])?)"
    rf"\s*<\s*(?P<stream>{VALUE.pattern})\s*:\s*{re.escape(STREAM_TYPE)}\s*>"
)
Operand = tuple[str, str]  # value, type


@dataclass
class TextCursor:
    """A position in MLIR text, which advances past what is read; errors name line and column."""

    text: str
    at: int
    end: int = field(init=False)  # where the text read so far ends, without white space after it

    def __post_init__(self) -> None:
        self.end = self.at

    def skip(self) -> None:
        """Advances past white space and comments."""
        match = SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def sees(self, word: str) -> bool:
        """Skips white space and comments; returns whether the text then continues with ``word``."""
        self.skip()
        return self.text.startswith(word, self.at)

    def takes(self, word: str) -> bool:
        """Advances past ``word`` if the text continues with it, after white space; returns whether it did."""
        is_next = self.sees(word)
        if is_next:
            self.at = self.end = self.at + len(word)
        return is_next

    def require(self, word: str) -> None:
        """Advances past ``word``. Raises CandidateError(BIND) if the text does not continue with it."""
        if not self.takes(word):
            raise self.error(f"{word!r}")

    def matched(self, pattern: re.Pattern[str], what: str) -> str:
        """Skips white space, then reads and returns text that matches ``pattern``.

        Raises CandidateError(BIND) for other text; ``what`` is what the error says was allowed.
        """
        self.skip()
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self.error(what)
        self.at = self.end = match.end()
        return match[0]

    def values(self) -> list[str]:
        """Reads comma-separated SSA values such as ``%a, %b#1``; returns them as a list, [] if none follows.

        A name that begins the next operation, ``%c = ...``, is not read. Raises CandidateError(BIND) for a
        "%" without a name.
        """
        values: list[str] = []
        while self.sees("%") and RESULT.match(self.text, self.at) is None:
            values.append(self.matched(VALUE, "a value"))
            if not self.takes(","):
                break
        return values

    def enclosed(self, opening: str) -> str:
        """Reads from the bracket ``opening`` to its closing bracket; returns the text between them.

        Raises CandidateError(BIND) where a bracket is missing.
        """
        self.require(opening)
        start = self.at
        waiting = [CLOSING[opening]]
        while waiting:
            if self.at >= len(self.text):
                raise self.error(f"{waiting[-1]!r}")
            skipped = SKIPPED.match(self.text, self.at)
            if skipped is not None:
                self.at = skipped.end()
                continue
            letter = self.text[self.at]
            is_arrow = letter == ">" and self.text[self.at - 1] == "-"
            if letter == waiting[-1] and not is_arrow:
                waiting.pop()
            elif letter in CLOSING:
                waiting.append(CLOSING[letter])
            self.at += 1
        self.end = self.at
        return self.text[start : self.at - 1]

    def type(self) -> str:
        """Reads one MLIR type, such as ``memref<4xf32>``; returns its text.

        Raises CandidateError(BIND) if no type follows, or a bracket is missing.
        """
        kind = self.matched(SIMPLE_TYPE, "a type")
        if self.sees("<"):
            return f"{kind}<{self.enclosed('<')}>"
        return kind

    def types(self) -> list[str]:
        """Reads comma-separated MLIR types, with or without parentheses around them; returns their texts.

        Raises CandidateError(BIND) if no type follows, or a bracket is missing.
        """
        if self.takes("("):
            types = [] if self.sees(")") else self._listed()
            self.require(")")
            return types
        return self._listed()

    def error(self, allowed: str) -> CandidateError:
        """Returns the error for the text here: line, column, next word and what is ``allowed``."""
        self.skip()
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - (self.text.rfind("\n", 0, self.at) + 1) + 1
        words = self.text[self.at :].split(maxsplit=1)
        actual = repr(words[0]) if words else "the end"
        return CandidateError(
            Stage.BIND, f"payload: line {line}:{column}: GPUX: found {actual}, allowed {allowed}"
        )

    def _listed(self) -> list[str]:
        types = [self.type()]
        while self.takes(","):
            types.append(self.type())
        return types


def to_generic(text: str) -> str:
    """Returns MLIR text with GPUX operations in generic form, which MLIR parses without knowing GPUX.

    Raises CandidateError(BIND), with line and column, for a known operation in a form that is not accepted.
    """
    text = FORMS.sub(_usual_form, text)
    pieces = []
    at = 0
    while (match := _next_operation(text, at)) is not None:
        name = OLDER_NAMES.get(match[1], match[1])
        if name not in READERS:
            pieces.append(text[at : match.end()])
            at = match.end()
            continue
        cursor = TextCursor(text, match.end())
        written = READERS[name](cursor).text(name)
        lines = text.count("\n", match.start(), cursor.end)
        pieces += [text[at : match.start()], written, "\n" * lines]
        at = cursor.end
    return "".join([*pieces, text[at:]])


def _usual_form(match: re.Match[str]) -> str:
    """Returns a spelling of FORMS in the form that ``to_generic`` reads; line numbers of the text stay."""
    if match["older"]:
        is_type = match.string[: match.start()].endswith("!")
        if is_type:
            return "gpux."
        return f"{'gpux.':>{len(OLDER)}}"
    if match["skipped"]:  # the name of an operation in generic form is a string, too
        if match[0].startswith(f'"{OLDER}'):
            return match[0].replace(OLDER, "gpux.")
        return match[0]
    launch = f"gpux.launch_func{match['tokens']} {match['stream']}"
    return launch + "\n" * (match[0].count("\n") - launch.count("\n"))


def _next_operation(text: str, at: int) -> re.Match[str] | None:
    """Returns the next printed GPUX operation from position ``at`` on, outside of strings and comments.

    None if there is none.
    """
    while (operation := OPERATION.search(text, at)) is not None:
        skipped = SKIPPED.search(text, at)
        if skipped is None or skipped.start() > operation.start():
            return operation
        at = skipped.end()
    return None


@dataclass
class _Operation:
    """One parsed operation: its operands with their types, in generic order, results and attributes."""

    segments: list[list[Operand]]
    results: list[str] = field(default_factory=list)  # types
    attributes: list[str] = field(default_factory=list)  # name = value
    has_sizes: bool = False  # whether the generic form has operandSegmentSizes

    def text(self, name: str) -> str:
        pairs = list(chain.from_iterable(self.segments))
        attributes = list(self.attributes)
        if self.has_sizes:
            sizes = ", ".join(str(len(segment)) for segment in self.segments)
            attributes.append(f"operandSegmentSizes = array<i32: {sizes}>")
        between = f" {{{', '.join(attributes)}}}" if attributes else ""
        if pairs:
            values, kinds = (", ".join(part) for part in zip(*pairs, strict=True))
        else:
            values, kinds = ("", "")
        return f'"gpux.{name}"({values}){between} : ({kinds}) -> ({", ".join(self.results)})'


@dataclass(frozen=True)
class _Signature:
    """The types after the colon: a function type, or memref types alone."""

    inputs: list[str] | None  # None: not given
    outputs: list[str]


def _in_brackets(cursor: TextCursor) -> list[str]:
    values = []
    if cursor.takes("["):
        values = cursor.values()
        cursor.require("]")
    return values


def _read_plain(cursor: TextCursor) -> _Operation:
    is_async, tokens = _tokens(cursor)
    values = _operands(cursor)
    attributes = _attributes(cursor)
    signature = _signature(cursor)
    results: list[str] = []
    if signature is None:  # the short form of an operation on a stream alone
        types = [STREAM_TYPE][: len(values)]
        values = values[: len(types)]
    elif signature.inputs is None:  # the stream's type may be omitted
        types = [*[STREAM_TYPE][: len(values) - len(signature.outputs)], *signature.outputs]
    else:
        types = signature.inputs
        results = signature.outputs
    if len(types) != len(values):
        raise cursor.error(f"{len(values)} types, one for each operand")
    results = [TOKEN_TYPE] if is_async and not results else results
    return _Operation([tokens, list(zip(values, types, strict=True))], results, attributes)


def _operands(cursor: TextCursor) -> list[str]:
    is_enclosed = cursor.takes("(")
    values = cursor.values()
    if is_enclosed:
        cursor.require(")")
    return values


def _tokens(cursor: TextCursor) -> tuple[bool, list[Operand]]:
    """Parses ``async [%t]``; returns whether the operation creates a token, and the tokens it waits for."""
    is_async = cursor.takes("async")
    return is_async, [(token, TOKEN_TYPE) for token in _in_brackets(cursor)]


def _attributes(cursor: TextCursor) -> list[str]:
    if not cursor.sees("{"):
        return []
    inside = cursor.enclosed("{").strip()
    if inside:
        return [inside]
    return []


def _signature(cursor: TextCursor) -> _Signature | None:
    if not cursor.takes(":"):
        return None
    first = cursor.types()
    if cursor.takes("->"):
        return _Signature(first, cursor.types())
    return _Signature(None, first)


def _read_create(cursor: TextCursor) -> _Operation:
    values = _operands(cursor)
    attributes = _attributes(cursor)
    signature = _signature(cursor)
    inputs = (signature.inputs if signature is not None else None) or []
    if len(inputs) != len(values):
        raise cursor.error(f"{len(values)} types, one for each operand")
    return _Operation([list(zip(values, inputs, strict=True))], [STREAM_TYPE], attributes)


def _read_alloc(cursor: TextCursor) -> _Operation:
    is_async, tokens = _tokens(cursor)
    attributes = ["hostShared"] if cursor.takes("host_shared") else []
    values = _operands(cursor)
    symbols = _in_brackets(cursor)
    attributes += _attributes(cursor)
    signature = _signature(cursor)
    if signature is None:
        raise cursor.error("':' and the type of the memref")
    sizes = [(value, INDEX_TYPE) for value in values[1:]]
    symbol_operands = [(value, INDEX_TYPE) for value in symbols]
    token_types = [TOKEN_TYPE] if is_async and len(signature.outputs) == 1 else []
    stream = [(value, STREAM_TYPE) for value in values[:1]]
    results = [*signature.outputs, *token_types]
    return _Operation([tokens, stream, sizes, symbol_operands], results, attributes, has_sizes=True)


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
        stream = arguments[:1]
        arguments = arguments[1:]
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
    arguments: list[Operand] = []
    while cursor.sees("%"):
        value = cursor.matched(VALUE, "a value")
        cursor.require(":")
        arguments.append((value, cursor.type()))
        if not cursor.takes(","):
            break
    cursor.require(")")
    return arguments


READERS: dict[str, Callable[[TextCursor], _Operation]] = {
    "create_stream": _read_create,
    "alloc": _read_alloc,
    "launch_func": _read_launch,
    **dict.fromkeys(("destroy_stream", "dealloc", "memcpy", "memset", "wait"), _read_plain),
}
