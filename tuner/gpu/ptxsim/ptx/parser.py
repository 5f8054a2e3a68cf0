"""PTX text -> ``PtxModule`` by recursive descent; covers the PTX of LLVM, of nvcc and hand-written PTX.

``parse`` reads the statements of a module. Declarations (registers, variables, parameters) have a function
each; ``Body`` reads a kernel's instructions and labels.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from tuner.gpu.ptxsim.ptx.lexer import Cursor
from tuner.gpu.ptxsim.ptx.syntax_tree import (
    Address,
    Guard,
    Immediate,
    Instruction,
    Label,
    Negated,
    Operand,
    Pair,
    Parameter,
    PtxKernel,
    PtxModule,
    Register,
    RegisterBank,
    Symbol,
    Variable,
    Vector,
)

# Productions for declarations: registers, variables, parameters. PTX ISA, "Variables".

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
IGNORED = (".loc", ".pragma", ".file")
PARAMETER = ".param"  # parameter of a call; treated as a register
VARIABLES = tuple(f".{space}" for space in SPACES)
SIZES = (".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".reqnctapercluster")
EXPLICIT = ".explicitcluster"  # the launch need not specify the cluster's size


def type_of(cursor: Cursor) -> str:
    """Consumes a type such as ``.b32``; returns its name ``b32``.

    Raises SimulationError for another token.
    """
    name = cursor.token.text.removeprefix(".")
    if not cursor.token.text.startswith(".") or name not in BYTES:
        raise cursor.wrong("a type such as .b32")
    cursor.take()
    return name


def registers_of(cursor: Cursor) -> list[RegisterBank]:
    """Consumes a register declaration, ``.reg .b32 %r<9>, %x;``; returns an entry per name."""
    cursor.expect(".reg")
    type_name = type_of(cursor)
    banks = []
    while True:
        prefix = cursor.word("a register")
        count = None
        if cursor.accept("<"):
            count = cursor.integer()
            cursor.expect(">")
        banks.append(RegisterBank(prefix, type_name, count))
        if not cursor.accept(","):
            break
    cursor.expect(";")
    return banks


def variables_of(cursor: Cursor) -> list[Variable]:
    """Consumes a declaration, ``.extern .shared .align 16 .b8 name[32], other;``; returns its variables."""
    is_extern = False
    while cursor.token.text in LINKAGE:
        is_extern |= cursor.take().text == ".extern"
    space = cursor.take().text.removeprefix(".")
    align = cursor.integer() if cursor.accept(".align") else 0
    if cursor.token.text in (".attribute", ".v2", ".v4"):
        raise cursor.wrong("a variable of a plain type")
    item = BYTES[type_of(cursor)]
    variables = []
    while True:
        name = cursor.word("a name")
        size = _array_bytes(cursor, item)
        content = _content(cursor, item) if cursor.accept("=") else ()
        size = max(item if size is None else size, len(content))
        variables.append(Variable(name, space, align or item, size, is_extern, content))
        if not cursor.accept(","):
            break
    cursor.expect(";")
    return variables


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
    """Parses the initializer of a variable, a number or ``{1, 2, 3}``; returns its numbers."""
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
    """Consumes a call's parameter, ``.param .b64 param0;``; returns it as a register; [] for an array."""
    parameter = _parameter(cursor)
    cursor.expect(";")
    if parameter.is_array:
        return []
    return [RegisterBank(parameter.name, parameter.type, None)]


def parameters_of(cursor: Cursor) -> list[Parameter]:
    """Consumes a kernel's parameters: ``(.param .u64 .ptr .align 1 a, .param .b8 map[128])``.

    [] without any.
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
    item = BYTES[type_name]
    size = _array_bytes(cursor, item)
    return Parameter(name, type_name, align or item, item if size is None else size, size is not None)


class Body:
    """A parser of a kernel's body; registers and labels of nested scopes get unique names."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._scopes: list[dict[str, str]] = []
        self._numbers = itertools.count(1)
        self._place = ""  # line and column in the source by the last .loc
        self.code: list[Instruction | Label] = []
        self.registers: list[RegisterBank] = []
        self.variables: list[Variable] = []

    def read(self) -> None:
        """Parses a scope ``{ ... }`` at the cursor, nested scopes included, into this object."""
        self._cursor.expect("{")
        self._scopes.append(self._own_names())
        while not self._cursor.accept("}"):
            self._statement()
        self._scopes.pop()

    def _own_names(self) -> dict[str, str]:
        """Returns the names that the scope at the cursor declares -> unique names; the cursor stays."""
        if not self._scopes:
            return {}
        cursor = self._cursor
        number = next(self._numbers)
        names: list[str] = []
        position = cursor.position()
        while cursor.token.text != "}":
            if cursor.token.text == "{":
                cursor.skip_brackets()  # a nested scope
            elif cursor.token.text == ".reg":
                names += [bank.prefix for bank in registers_of(cursor)]
            elif cursor.token.text == PARAMETER:
                names += [bank.prefix for bank in call_parameters_of(cursor)]
            elif cursor.token.kind == "word" and cursor.ahead().text == ":":
                names.append(cursor.take().text)
            else:
                cursor.take()
        cursor.back_to(position)
        return {name: f"{name}#{number}" for name in names}

    def _statement(self) -> None:
        cursor = self._cursor
        text = self._cursor.token.text
        if text == "{":
            self.read()
        elif text == ".reg":
            self._declare(registers_of(cursor))
        elif text in VARIABLES or text == ".extern":
            self.variables += variables_of(cursor)
        elif text == ".loc":
            self._read_place()
        elif text == PARAMETER:
            self._declare(call_parameters_of(cursor))
        elif text in IGNORED:
            cursor.skip_statement()
        elif cursor.token.kind == "word" and cursor.ahead().text == ":":
            self.code.append(Label(self._name(text), cursor.take().line))
            cursor.take()
        elif not cursor.accept(";"):
            self.code.append(self._instruction())

    def _declare(self, banks: list[RegisterBank]) -> None:
        self.registers += [RegisterBank(self._name(bank.prefix), bank.type, bank.count) for bank in banks]

    def _read_place(self) -> None:
        """Parses ``.loc 1 14 12``, without a semicolon: file, line and column; line 0 means no location."""
        directive = self._cursor.take()
        self._cursor.integer()
        line = self._cursor.integer()
        column = self._cursor.integer()
        self._place = f"{line}:{column}" if line else ""
        while self._cursor.token.line == directive.line and self._cursor.token.kind != "end":
            self._cursor.take()

    def _instruction(self) -> Instruction:
        cursor = self._cursor
        first = self._cursor.token
        guard = None
        if cursor.accept("@"):
            is_negated = cursor.accept("!")
            guard = Guard(Register(self._name(cursor.word("a predicate"))), is_negated)
        if cursor.token.text.startswith((".", "%")):
            raise cursor.wrong("an instruction; a directive of that name is not known")
        opcode = cursor.word("an instruction")
        operands = tuple(self._operands(";"))
        text = cursor.text_from(first)
        cursor.expect(";")
        return _on_registers(Instruction(opcode, operands, guard, first.line, text, self._place))

    def _operands(self, end: str) -> Iterator[Operand]:
        while self._cursor.token.text != end:
            yield self._operand()
            if self._cursor.token.text != end:
                self._cursor.expect(",")

    def _operand(self) -> Operand:
        cursor = self._cursor
        for opening, closing in (("{", "}"), ("(", ")")):  # parentheses: operands of a call
            if cursor.accept(opening):
                items = tuple(self._operands(closing))
                cursor.expect(closing)
                return Vector(items)
        if cursor.accept("["):
            return self._address()
        if cursor.accept("!"):
            return Negated(Register(self._name(cursor.word("a predicate"))))
        if cursor.token.kind != "word":
            return cursor.immediate()
        named = self._named(cursor.take().text)
        if cursor.accept("|"):
            second = Register(self._name(cursor.word("a predicate")))
            return Pair(Register(named.name), second)
        return named

    def _address(self) -> Address:
        cursor = self._cursor
        base: Register | Symbol | Immediate
        if cursor.token.kind == "word":
            base = self._named(cursor.take().text)
        else:
            base = cursor.immediate()
        offset = 0
        if cursor.accept("+") or cursor.token.text == "-":
            offset = cursor.integer()
        coordinates: tuple[Operand, ...] = ()
        if cursor.accept(","):
            last = self._operand()
            coordinates = last.items if isinstance(last, Vector) else (last,)
        cursor.expect("]")
        return Address(base, offset, coordinates)

    def _named(self, name: str) -> Register | Symbol:
        unique = self._name(name)
        is_register = name.startswith("%") or name == "_" or any(b.prefix == unique for b in self.registers)
        if is_register:
            return Register(unique)
        return Symbol(unique)

    def _name(self, name: str) -> str:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), name)


def _on_registers(instruction: Instruction) -> Instruction:
    """Returns a load or store of a call's parameter as a mov; any other instruction unchanged."""
    name, space, *_ = (*instruction.parts, "")
    if space != "param" or name not in ("ld", "st"):
        return instruction
    operands = tuple(
        operand.base if isinstance(operand, Address) else operand for operand in instruction.operands
    )
    if any(isinstance(operand, Symbol) for operand in operands):
        return instruction  # a parameter of the kernel, or a part of an array
    return replace(instruction, opcode=f"mov.{instruction.parts[-1]}", operands=operands)


def parse(source: str, name: str = "kernel.ptx") -> PtxModule:
    """Returns the kernels and variables of PTX text.

    ``name``: of the file, for messages. Raises SimulationError (SYNTAX) for text that is not PTX, and for PTX
    that is not supported, such as vector variables.
    """
    cursor = Cursor(source, name)
    cursor.expect(".version")
    version = cursor.take().text
    cursor.expect(".target")
    target = cursor.word("a chip such as sm_90")
    while cursor.accept(","):
        cursor.word("an option of .target")
    if cursor.accept(".address_size") and cursor.integer() != 64:
        raise cursor.wrong(".address_size 64 before it")
    kernels: list[PtxKernel] = []
    variables: list[Variable] = []
    while cursor.token.kind != "end":
        _module_statement(cursor, kernels, variables)
    return PtxModule(name, version, target, tuple(kernels), tuple(variables))


def _module_statement(cursor: Cursor, kernels: list[PtxKernel], variables: list[Variable]) -> None:
    ahead = 0
    while cursor.ahead(ahead).text in LINKAGE:
        ahead += 1
    directive = cursor.ahead(ahead).text
    if directive in VARIABLES:
        variables += variables_of(cursor)
    elif directive == ".entry":
        kernels.append(_kernel(cursor))
    elif directive == ".func":  # only calls of CUDA's functions are simulated
        while cursor.token.text not in ("{", ";"):
            cursor.take()
        if not cursor.accept(";"):
            cursor.skip_brackets()
    elif directive == ".section":
        cursor.take()
        cursor.word("a section's name")
        cursor.skip_brackets()
    elif directive == ".file":
        line = cursor.token.line
        while cursor.token.line == line and cursor.token.kind != "end":
            cursor.take()
    else:
        raise cursor.wrong(".entry, .func, .shared, .global, .const or .section")


def _kernel(cursor: Cursor) -> PtxKernel:
    while cursor.token.text in LINKAGE:
        cursor.take()
    line = cursor.expect(".entry").line
    name = cursor.word("a kernel's name")
    parameters = parameters_of(cursor)
    sizes = {}  # performance directives: PTX ISA, "Performance-Tuning Directives"
    while cursor.token.text != "{":
        if cursor.accept(EXPLICIT):
            continue
        if cursor.token.text not in SIZES:
            raise cursor.wrong(f"{{ or {', '.join(SIZES)}, {EXPLICIT}")
        directive = cursor.take().text
        numbers = [cursor.integer()]
        while cursor.accept(","):
            numbers.append(cursor.integer())
        sizes[directive] = tuple(numbers)
    body = Body(cursor)
    body.read()
    return PtxKernel(
        name=name,
        parameters=tuple(parameters),
        body=tuple(body.code),
        registers=tuple(body.registers),
        variables=tuple(body.variables),
        max_threads=sizes.get(".maxntid"),
        required_threads=sizes.get(".reqntid"),
        cluster=sizes.get(".reqnctapercluster"),
        line=line,
    )
