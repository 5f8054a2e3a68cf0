"""Productions of a kernel's body: scopes, labels, instructions, operands."""

import itertools
from collections.abc import Iterator

from tuner.ptx.cursor import Cursor
from tuner.ptx.declarations import SPACES, registers_of, variables_of
from tuner.ptx.instruction import (
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

IGNORED = (".loc", ".pragma", ".param", ".file")
VARIABLES = tuple(f".{space}" for space in SPACES)


class Body:
    """What the parser has seen of a body: everything in a nested scope gets a name of its own."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._scopes: list[dict[str, str]] = []
        self._numbers = itertools.count(1)
        self.code: list[Instruction | Label] = []
        self.registers: list[RegisterBank] = []
        self.variables: list[Variable] = []

    def read(self) -> None:
        """Takes ``{ ... }``."""
        self._cursor.expect("{")
        self._scopes.append(self._own_names())
        while not self._cursor.accept("}"):
            self._statement()
        self._scopes.pop()

    def _own_names(self) -> dict[str, str]:
        """Returns the names that this scope declares, each with one that is unique in the kernel."""
        if not self._scopes:
            return {}
        cursor, number = self._cursor, next(self._numbers)
        place = cursor.place()
        names = dict.fromkeys(_declared(cursor))
        cursor.back_to(place)
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
            self._skip_line()
        elif text in IGNORED:
            cursor.skip_statement()
        elif cursor.token.kind == "word" and cursor.ahead().text == ":":
            self.code.append(Label(self._name(text), cursor.take().line))
            cursor.take()
        elif not cursor.accept(";"):
            self.code.append(self._instruction())

    def _skip_line(self) -> None:
        """Takes a .loc, which has no semicolon."""
        line = self._cursor.token.line
        while self._cursor.token.line == line and self._cursor.token.kind != "end":
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
        return Instruction(opcode, operands, guard, first.line, text)

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
        if cursor.token.text == "(":
            cursor.skip()  # of a call, which is refused by its name
            return Symbol("()")
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
        """Returns a register for a name that begins with % or is declared as one, else a symbol."""
        unique = self._name(name)
        is_register = name.startswith("%") or name == "_" or any(b.prefix == unique for b in self.registers)
        return Register(unique) if is_register else Symbol(unique)

    def _name(self, name: str) -> str:
        """Returns the unique name for a name in the innermost scope that declares it."""
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), name)


def _declared(cursor: Cursor) -> Iterator[str]:
    """Yields the registers and labels of the scope that begins here, not those of scopes within."""
    while cursor.token.text != "}":
        if cursor.token.text == "{":
            cursor.skip()
        elif cursor.token.text == ".reg":
            yield from (bank.prefix for bank in registers_of(cursor))
        elif cursor.token.kind == "word" and cursor.ahead().text == ":":
            yield cursor.take().text
        else:
            cursor.take()
