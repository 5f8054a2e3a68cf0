"""Productions for declarations: registers, variables, parameters. PTX ISA, "Variables"."""

from tuner.simulator.ptx.instruction import Parameter, RegisterBank, Variable
from tuner.simulator.ptx.parse.cursor import Cursor

BYTES = {
    **{f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)},
    **dict.fromkeys(("f16", "bf16"), 2),
    **dict.fromkeys(("f16x2", "bf16x2", "f32"), 4),
    "pred": 1,
    "f64": 8,
    "b128": 16,
}
SPACES = ("shared", "global", "const", "local")
LINKAGE = (".extern", ".visible", ".weak", ".common", ".internal")


def type_of(cursor: Cursor) -> str:
    """Consumes a type such as ``.b32`` at the cursor; returns its name ``b32``.

    Raises SimulationError for another token.
    """
    name = cursor.token.text.removeprefix(".")
    if not cursor.token.text.startswith(".") or name not in BYTES:
        raise cursor.wrong("a type such as .b32")
    cursor.take()
    return name


def registers_of(cursor: Cursor) -> list[RegisterBank]:
    """Consumes a register declaration, ``.reg .b32 %r<9>, %x;``; returns an entry for each name in it.

    Raises SimulationError for another text.
    """
    cursor.expect(".reg")
    type_name = type_of(cursor)
    banks = []
    while True:
        prefix, count = cursor.word("a register"), None
        if cursor.accept("<"):
            count = cursor.integer()
            cursor.expect(">")
        banks.append(RegisterBank(prefix, type_name, count))
        if not cursor.accept(","):
            break
    cursor.expect(";")
    return banks


def variables_of(cursor: Cursor) -> list[Variable]:
    """Consumes a declaration, ``.extern .shared .align 16 .b8 name[32], other;``; returns its variables.

    The state space is not checked. Raises SimulationError where the rest is no such declaration.
    """
    is_extern = False
    while cursor.token.text in LINKAGE:
        is_extern |= cursor.take().text == ".extern"
    space = cursor.take().text.removeprefix(".")
    align = cursor.integer() if cursor.accept(".align") else 0
    while cursor.token.text in (".attribute", ".v2", ".v4"):
        raise cursor.wrong("a variable of a plain type")
    type_name = type_of(cursor)
    found = []
    while True:
        found.append(_variable(cursor, space, align, type_name, is_extern))
        if not cursor.accept(","):
            break
    cursor.expect(";")
    return found


def _variable(cursor: Cursor, space: str, align: int, type_name: str, is_extern: bool) -> Variable:
    name, item = cursor.word("a name"), BYTES[type_name]
    size = _array_bytes(cursor, item)
    content = _content(cursor, item) if cursor.accept("=") else ()
    size = max(item if size is None else size, len(content))
    return Variable(name, space, align or item, size, is_extern, content)


def _array_bytes(cursor: Cursor, item_bytes: int) -> int | None:
    """Parses array dimensions such as ``[4][8]``; returns the array's bytes, None for a scalar."""
    if cursor.token.text != "[":
        return None
    size = item_bytes
    while cursor.accept("["):
        size *= 0 if cursor.token.text == "]" else cursor.integer()
        cursor.expect("]")
    return size


def _content(cursor: Cursor, item_bytes: int) -> tuple[int, ...]:
    """Parses an initializer: a number, or ``{1, 2, 3}``."""
    if not cursor.accept("{"):
        return _number(cursor, item_bytes)
    content: tuple[int, ...] = ()
    while not cursor.accept("}"):
        content += _number(cursor, item_bytes)
        if cursor.token.text != "}":
            cursor.expect(",")
    return content


def _number(cursor: Cursor, item_bytes: int) -> tuple[int, ...]:
    bits = cursor.immediate().bits
    return tuple((bits & ((1 << 8 * item_bytes) - 1)).to_bytes(item_bytes, "little"))


def call_parameters_of(cursor: Cursor) -> list[RegisterBank]:
    """Consumes a parameter of a call, ``.param .b64 param0;``; returns it as a register, or [] for an array.

    Raises SimulationError for another text.
    """
    parameter = _parameter(cursor)
    cursor.expect(";")
    return [] if parameter.is_array else [RegisterBank(parameter.name, parameter.type, None)]


def parameters_of(cursor: Cursor) -> list[Parameter]:
    """Consumes and returns a kernel's parameters: ``(.param .u64 .ptr .align 1 a, .param .b8 map[128])``.

    Returns [] where the next token is no opening parenthesis. Raises SimulationError for another text inside.
    """
    parameters: list[Parameter] = []
    if not cursor.accept("("):
        return parameters
    while not cursor.accept(")"):
        parameters.append(_parameter(cursor))
        if cursor.token.text != ")":
            cursor.expect(",")
    return parameters


def _parameter(cursor: Cursor) -> Parameter:
    cursor.expect(".param")
    align = cursor.integer() if cursor.accept(".align") else 0
    type_name = type_of(cursor)
    while cursor.token.text in (".ptr", ".global", ".shared", ".const", ".local", ".align"):
        if cursor.take().text == ".align":
            cursor.integer()  # alignment of the pointee
    name = cursor.word("a parameter's name")
    size = _array_bytes(cursor, BYTES[type_name])
    item = BYTES[type_name]
    return Parameter(name, type_name, align or item, item if size is None else size, size is not None)
