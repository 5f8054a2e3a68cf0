"""Syntax tree of PTX, which ``tuner.gpu.ptxsim.ptx.parser`` creates: modules, kernels, instructions."""

from dataclasses import dataclass
from typing import TypeAlias

TEXT_LIMIT = 120  # characters of an instruction in a message


@dataclass(frozen=True, slots=True)
class Register:
    """A register or special register operand: ``%r1``, ``%tid.x``; the name ``_`` discards a result."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant operand; ``bits`` is an integer's value, or a floating-point number's IEEE 754 encoding."""

    bits: int
    is_f32: bool = False
    is_f64: bool = False


@dataclass(frozen=True, slots=True)
class Symbol:
    """An operand that is the name of a variable, a parameter or a label."""

    name: str


@dataclass(frozen=True, slots=True)
class Negated:
    """A negated predicate operand: ``!%p1``."""

    register: Register


@dataclass(frozen=True, slots=True)
class Pair:
    """An operand of two destination registers: ``%p1|%p2``."""

    first: Register
    second: Register


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector operand: ``{%r1, %r2}``."""

    items: tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Address:
    """An address operand: ``[base + offset]``, or ``[map, {x, y}]`` of a tensor copy."""

    base: "Register | Symbol | Immediate"
    offset: int = 0  # bytes
    coordinates: tuple["Operand", ...] = ()


Operand: TypeAlias = Register | Immediate | Symbol | Negated | Pair | Vector | Address


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard predicate, ``@%p1`` or ``@!%p1``: only lanes where it holds execute."""

    register: Register
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of PTX, with its operands and its line in the text."""

    opcode: str  # "ld.global.v4.b32"
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    text: str  # as written, on one line
    place: str = ""  # source line and column by the last .loc directive: "14:12"

    @property
    def parts(self) -> tuple[str, ...]:
        """Returns the opcode split at its dots, the modifiers last: ``("ld", "global", "v4", "b32")``."""
        return tuple(self.opcode.split("."))

    @property
    def short_text(self) -> str:
        """Returns the instruction as written, cut to TEXT_LIMIT characters, with its source line if known."""
        text = self.text if len(self.text) <= TEXT_LIMIT else f"{self.text[:TEXT_LIMIT]}..."
        if self.place:
            return f"{text} (at line {self.place})"
        return text


@dataclass(frozen=True, slots=True)
class Label:
    """A label in PTX text, a possible target of branches, with its line."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class RegisterBank:
    """Declared registers of one type: ``.reg .b32 %r<9>``; ``count`` is None for a single register."""

    prefix: str
    type: str  # "b32"
    count: int | None


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable in shared, global, constant or local memory, with its size and initial bytes."""

    name: str
    space: str  # "shared", "global", "const", "local"
    align_bytes: int
    bytes: int  # 0: dynamic shared memory, sized by the launch
    is_extern: bool
    content: tuple[int, ...] = ()  # initial bytes; zeros follow


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter of a kernel, with its type and its size."""

    name: str
    type: str  # of one element
    align_bytes: int
    bytes: int
    is_array: bool  # passed by value as bytes


@dataclass(frozen=True, slots=True)
class PtxKernel:
    """A parsed kernel, one ``.entry`` of a PTX file: parameters, declarations, instructions and labels."""

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Instruction | Label, ...]
    registers: tuple[RegisterBank, ...]
    variables: tuple[Variable, ...]  # declared in the kernel's body
    max_threads: tuple[int, ...] | None  # .maxntid, x y z
    required_threads: tuple[int, ...] | None  # .reqntid
    cluster: tuple[int, ...] | None  # .reqnctapercluster
    line: int


@dataclass(frozen=True, slots=True)
class PtxModule:
    """A parsed PTX file: its kernels and its module-level variables."""

    name: str  # of the file, for messages
    version: str
    target: str  # "sm_90a"
    kernels: tuple[PtxKernel, ...]
    variables: tuple[Variable, ...]
