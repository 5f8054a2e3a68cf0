"""PTX as values: modules, kernels, instructions and their operands. Made by ``tuner.ptx.parser``."""

from dataclasses import dataclass
from typing import TypeAlias

TEXT_LIMIT = 120  # characters of an instruction in a message


@dataclass(frozen=True, slots=True)
class Register:
    """A register, special ones included: ``%r1``, ``%tid.x``, ``_`` for a result that is not wanted."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A number. ``bits`` of a float are its IEEE pattern."""

    bits: int
    is_f32: bool = False
    is_f64: bool = False


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a variable, a parameter or a label."""

    name: str


@dataclass(frozen=True, slots=True)
class Negated:
    """``!%p1``."""

    register: Register


@dataclass(frozen=True, slots=True)
class Pair:
    """``%p1|%p2``: two results."""

    first: Register
    second: Register


@dataclass(frozen=True, slots=True)
class Vector:
    """``{%r1, %r2}``."""

    items: tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Address:
    """``[base + offset]``, with the coordinates of a tensor copy where it has them."""

    base: "Register | Symbol | Immediate"
    offset: int = 0  # bytes
    coordinates: tuple["Operand", ...] = ()


Operand: TypeAlias = Register | Immediate | Symbol | Negated | Pair | Vector | Address


@dataclass(frozen=True, slots=True)
class Guard:
    """``@%p1`` or ``@!%p1``: the lanes that execute the instruction."""

    register: Register
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction with its place in the text."""

    opcode: str  # "ld.global.v4.b32"
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    text: str  # as written, on one line

    @property
    def parts(self) -> tuple[str, ...]:
        """Returns the opcode's words: ``("ld", "global", "v4", "b32")``."""
        return tuple(self.opcode.split("."))

    @property
    def short_text(self) -> str:
        """Returns the text, cut where it is long."""
        return self.text if len(self.text) <= TEXT_LIMIT else f"{self.text[:TEXT_LIMIT]}..."


@dataclass(frozen=True, slots=True)
class Label:
    """A place that branches go to."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class RegisterBank:
    """``.reg .b32 %r<9>``: registers of one type; ``count`` is None for a single one."""

    prefix: str
    type: str  # "b32"
    count: int | None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in shared, global, constant or local memory."""

    name: str
    space: str  # "shared", "global", "const", "local"
    align_bytes: int
    bytes: int  # 0: as many as the launch gives
    is_extern: bool
    content: tuple[int, ...] = ()  # initial bytes; zeros follow


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel."""

    name: str
    type: str  # of one element
    align_bytes: int
    bytes: int
    is_array: bool  # passed by value as bytes


@dataclass(frozen=True, slots=True)
class Kernel:
    """One ``.entry``."""

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Instruction | Label, ...]
    registers: tuple[RegisterBank, ...]
    variables: tuple[Variable, ...]  # of its own
    max_threads: tuple[int, ...] | None  # .maxntid, x y z
    required_threads: tuple[int, ...] | None  # .reqntid
    line: int


@dataclass(frozen=True, slots=True)
class Module:
    """A PTX file."""

    name: str  # of the file, for messages
    version: str
    target: str  # "sm_90a"
    kernels: tuple[Kernel, ...]
    variables: tuple[Variable, ...]
