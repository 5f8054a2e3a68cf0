"""Recursive-descent productions for a kernel's body: scopes, labels, instructions, operands."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from tuner.simulator.ptx.instruction import (
    Address,
    Guard,
    Immediate,
    Instruction,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    RegisterBank,
    Symbol,
    Variable,
    Vector,
)
from tuner.simulator.ptx.parse.cursor import Cursor
from tuner.simulator.ptx.parse.declarations import SPACES, call_parameters_of, registers_of, variables_of

IGNORED = (".loc", ".pragma", ".file")
PARAMETER = ".param"  # parameter of a call; treated as a register
VARIABLES = tuple(f".{space}" for space in SPACES)


class Body:
    """A parser of a kernel's body, with the code, registers and variables that it has read so far.

    Registers and labels of nested scopes get unique names.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._scopes: list[dict[str, str]] = []
        self._numbers = itertools.count(1)
        self._place = ""  # place of the last .loc
        self.code: list[Instruction | Label] = []
        self.registers: list[RegisterBank] = []
        self.variables: list[Variable] = []

    def read(self) -> None:
        """Parses a scope ``{ ... }`` at the cursor, nested scopes included.

        Appends instructions and labels to ``code``, and declarations to ``registers`` and ``variables``.

        Raises SimulationError for text that is not PTX.
        """
        self._cursor.expect("{")
        self._scopes.append(self._own_names())
        while not self._cursor.accept("}"):
            self._statement()
        self._scopes.pop()

    def _own_names(self) -> dict[str, str]:
        """Returns the names that the scope at the cursor declares -> unique names; the cursor stays."""
        if not self._scopes:
            return {}
        cursor, number = self._cursor, next(self._numbers)
        position = cursor.position()
        names = dict.fromkeys(_declared(cursor))
        cursor.back_to(position)
        return {name: f"{name}#{number}" for name in names}

    def _statement(self) -> None:
        cursor, text = self._cursor, self._cursor.token.text
        if text == "{":
            self.read()
        elif text == ".reg":
            banks = registers_of(cursor)
            self.registers += [RegisterBank(self._name(b.prefix), b.type, b.count) for b in banks]
        elif text in VARIABLES or text == ".extern":
            self.variables += variables_of(cursor)
        elif text == ".loc":
            self._read_place()
        elif text == PARAMETER:
            banks = call_parameters_of(cursor)
            self.registers += [RegisterBank(self._name(b.prefix), b.type, b.count) for b in banks]
        elif text in IGNORED:
            cursor.skip_statement()
        elif cursor.token.kind == "word" and cursor.ahead().text == ":":
            self.code.append(Label(self._name(text), cursor.take().line))
            cursor.take()
        elif not cursor.accept(";"):
            self.code.append(self._instruction())

    def _read_place(self) -> None:
        """Parses ``.loc 1 14 12``, without a semicolon: file, line and column; line 0 means no place."""
        directive = self._cursor.take()
        self._cursor.integer()
        line, column = self._cursor.integer(), self._cursor.integer()
        self._place = f"{line}:{column}" if line else ""
        while self._cursor.token.line == directive.line and self._cursor.token.kind != "end":
            self._cursor.take()

    def _instruction(self) -> Instruction:
        cursor, first = self._cursor, self._cursor.token
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
        if cursor.accept("{"):
            items = tuple(self._operands("}"))
            cursor.expect("}")
            return Vector(items)
        if cursor.accept("["):
            return self._address()
        if cursor.accept("("):  # operands of a call
            items = tuple(self._operands(")"))
            cursor.expect(")")
            return Vector(items)
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
        base = self._named(cursor.take().text) if cursor.token.kind == "word" else cursor.immediate()
        offset = 0
        if cursor.accept("+") or cursor.token.text == "-":
            offset = cursor.integer()
        coordinates = tuple(self._coordinates()) if cursor.accept(",") else ()
        cursor.expect("]")
        return Address(base, offset, coordinates)

    def _coordinates(self) -> Iterator[Operand]:
        found = self._operand()
        yield from found.items if isinstance(found, Vector) else (found,)

    def _named(self, name: str) -> Register | Symbol:
        """Returns a Register where the name begins with % or is a declared register, else a Symbol."""
        unique = self._name(name)
        is_register = name.startswith("%") or name == "_" or any(b.prefix == unique for b in self.registers)
        return Register(unique) if is_register else Symbol(unique)

    def _name(self, name: str) -> str:
        """Returns the unique name of ``name``, from the innermost scope that declares it."""
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), name)


def _on_registers(instruction: Instruction) -> Instruction:
    """Returns a load or store of a call's parameter as a mov; any other instruction unchanged."""
    name, space, *_ = (*instruction.parts, "")
    if space != "param" or name not in ("ld", "st"):
        return instruction
    places = [each.base if isinstance(each, Address) else each for each in instruction.operands]
    if any(isinstance(each, Symbol) for each in places):
        return instruction  # a parameter of the kernel, or a part of an array
    return replace(instruction, opcode=f"mov.{instruction.parts[-1]}", operands=tuple(places))


def _declared(cursor: Cursor) -> Iterator[str]:
    """Yields the registers and labels declared in the scope at the cursor, without nested scopes."""
    while cursor.token.text != "}":
        if cursor.token.text == "{":
            cursor.skip()
        elif cursor.token.text == ".reg":
            yield from (bank.prefix for bank in registers_of(cursor))
        elif cursor.token.text == PARAMETER:
            yield from (bank.prefix for bank in call_parameters_of(cursor))
        elif cursor.token.kind == "word" and cursor.ahead().text == ":":
            yield cursor.take().text
        else:
            cursor.take()
