"""Modifiers and operands of an instruction during decoding, and the steps that decoders make of them.

Decoders raise UnsupportedInstruction for forms that are not simulated.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from tuner.gpu.ptxsim.memory.global_memory import WINDOW_BITS, WINDOWS
from tuner.gpu.ptxsim.ptx.defects import UnsupportedInstruction, unsupported
from tuner.gpu.ptxsim.ptx.dtypes import TYPES, UNSIGNED, Array, Indices, PtxType, read_bits, write_bits
from tuner.gpu.ptxsim.ptx.geometry import Geometry
from tuner.gpu.ptxsim.ptx.layout import Layout
from tuner.gpu.ptxsim.ptx.syntax_tree import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)
from tuner.gpu.ptxsim.state.resident_blocks import ResidentBlocks

# Scopes and cache operators, which have no effect: the simulated memory is coherent.
SCOPES = ("cta", "cluster", "gpu", "sys")
CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc")
HINTS = (
    *("L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"),
    *("L2::evict_first", "L2::evict_last", "L2::evict_normal", "L2::64B", "L2::128B", "L2::256B"),
)
Step: TypeAlias = Callable[[ResidentBlocks], None]
Reader: TypeAlias = Callable[[ResidentBlocks], Array]
Writer: TypeAlias = Callable[[ResidentBlocks, Array], None]
PREDICATE = TYPES["pred"]
SPECIAL_REGISTERS = frozenset(Geometry((1, 1, 1), (1, 1, 1), (0,)).special_registers())
U16 = TYPES["u16"]
U32 = TYPES["u32"]
S32 = TYPES["s32"]
U64 = TYPES["u64"]
SharedReader: TypeAlias = Callable[[ResidentBlocks, Indices], Indices]  # lanes -> shared addresses


class Modifiers:
    """The modifiers of an opcode, such as ``f32`` of ld.global.f32, that no decoder has consumed yet."""

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction
        self._left = list(instruction.parts[1:])

    def take(self, *names: str) -> str | None:
        """Consumes the first of ``names`` that the opcode still has, and returns it.

        None if it has none of them.
        """
        for name in names:
            if name in self._left:
                self._left.remove(name)
                return name
        return None

    def has(self, *names: str) -> bool:
        """Consumes all of ``names`` that the opcode still has; returns whether there were any."""
        taken = list(map(self.take, names))
        return any(taken)

    def need(self, names: Iterable[str], what: str) -> str:
        """Consumes the first of ``names`` that the opcode still has, and returns it.

        Raises UnsupportedInstruction, with ``what``, if it has none of them.
        """
        name = self.take(*names)
        if name is None:
            raise unsupported(self._instruction, f"this instruction without {what}: {', '.join(names)}")
        return name

    def need_each(self, *names: str) -> None:
        """Consumes all of ``names``. Raises UnsupportedInstruction if the opcode lacks one."""
        for name in names:
            self.need((name,), "it")

    def type(self, *allowed: str) -> PtxType:
        """Consumes the last modifier, a type, and returns the type.

        ``allowed``: names of types, () for any. Raises UnsupportedInstruction for another type, or without a
        type.
        """
        if not self._left or self._left[-1] not in TYPES:
            raise unsupported(
                self._instruction, f".{self._left[-1]}" if self._left else "this instruction without a type"
            )
        name = self._left.pop()
        if allowed and name not in allowed:
            raise unsupported(self._instruction, f".{name}, only {', '.join(allowed)}")
        return TYPES[name]

    def vector(self) -> int:
        """Consumes .v2, .v4 or .v8; returns the vector's number of elements, 1 without such a modifier."""
        return int((self.take("v2", "v4", "v8") or "v1")[1:])

    def space(self) -> str:
        """Consumes the state space; returns its name, such as "shared"; "generic" without one.

        "global" for .const, as constants are in global memory.
        """
        for name in ("global", "shared", "local", "param", "const"):
            if self.has(name, f"{name}::cta", f"{name}::cluster", f"{name}::entry"):
                if name == "const":
                    return "global"
                return name
        return "generic"

    def take_memory_order(self) -> bool:
        """Consumes ordering, scope and cache modifiers; returns whether the access is strong (PTX ISA)."""
        is_strong = self.has("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
        is_weak = self.has("weak")
        self.has(*SCOPES)
        self.has(*CACHES)
        self.has(*HINTS)
        return is_strong and not is_weak

    def finish(self) -> None:
        if self._left:
            raise self.unknown(f".{self._left[0]}")

    def unknown(self, construct: str) -> UnsupportedInstruction:
        return unsupported(self._instruction, construct)


class Operands:
    """The operands and modifiers of an instruction during decoding; makes readers and writers of operands.

    A reader returns an operand's values in the lanes of resident blocks; a writer sets a register of the
    active lanes. Positions of operands count from 0; the destination comes first.
    """

    def __init__(self, instruction: Instruction, layout: Layout, symbols: dict[str, int]) -> None:
        self.instruction = instruction
        self.modifiers = Modifiers(instruction)
        self._layout = layout
        self._symbols = symbols  # variable or parameter -> address in its state space

    def __len__(self) -> int:
        return len(self.instruction.operands)

    def need(self, *counts: int) -> None:
        if len(self) not in counts:
            raise self.unsupported(f"this instruction with {len(self)} operands")

    def operand(self, number: int) -> Operand:
        if number >= len(self):
            raise self.unsupported(f"this instruction with {len(self)} operands")
        return self.instruction.operands[number]

    def source(self, number: int, type_: PtxType) -> Reader:
        return self.reader(self.operand(number), type_)

    def destination(self, number: int, type_: PtxType) -> Writer:
        return self.writer(self.operand(number), type_)

    def items(self, number: int) -> tuple[Operand, ...]:
        """Returns the elements of the vector operand at position ``number``.

        Of a scalar, the operand alone.
        """
        operand = self.operand(number)
        if isinstance(operand, Vector):
            return operand.items
        return (operand,)

    def names(self, number: int) -> tuple[str, ...]:
        return tuple(map(self.register, self.items(number)))

    def register(self, operand: Operand) -> str:
        """Returns the name of a register operand.

        Raises UnsupportedInstruction unless it is a declared register or "_".
        """
        if not isinstance(operand, Register):
            raise self.unsupported("an operand that is not a register there")
        self.width(operand.name)
        return operand.name

    def pair(self, number: int) -> tuple[Operand, Operand | None]:
        """Returns (a, b) for the operand ``a|b`` at position ``number``; (a, None) for ``a``."""
        operand = self.operand(number)
        if isinstance(operand, Pair):
            return (operand.first, operand.second)
        return (operand, None)

    def constant(self, number: int) -> int:
        """Returns the integer constant at position ``number``; of a float, its IEEE 754 bits.

        Raises UnsupportedInstruction for an operand that is not a constant.
        """
        operand = self.operand(number)
        if not isinstance(operand, Immediate):
            raise self.unsupported("an operand that is not a number there")
        return operand.bits

    def width(self, name: str) -> "np.dtype[np.generic]":
        """Returns the numpy type of a register's bits: unsigned, bool for a predicate, uint64 for "_".

        "_" discards what is written to it. Raises UnsupportedInstruction for a register that is not declared.
        """
        if name == "_":
            return UNSIGNED[8]
        width = self._layout.width(name)
        if width is None:
            raise self.unsupported(f"the register {name.split('#')[0]}, which is not declared")
        return width

    def reader(self, operand: Operand, type_: PtxType) -> Reader:
        """Returns a function that reads ``operand`` as values of ``type_`` in the lanes of resident blocks.

        Raises UnsupportedInstruction for a vector, an address, an undeclared name, a register narrower than
        ``type_``, a predicate as a number, and the reverse. Special registers are zero-extended; a negated
        register's type is not checked.
        """
        match operand:
            case Register(name) if name in SPECIAL_REGISTERS and self._layout.width(name) is None:

                def special(resident: ResidentBlocks) -> Array:
                    bits = resident.special[name]
                    wide = bits if bits.itemsize >= type_.bytes else bits.astype(type_.raw)
                    return read_bits(wide, type_, resident.geometry.lanes)

                return special
            case Register(name):
                return self._register_reader(name, type_)
            case Negated(Register(name)):
                self.width(name)
                return lambda resident: ~resident.read(name)
            case Immediate():
                bits = read_bits(self._constant_bits(operand, type_), type_, 1)
                if type_.elements == 1:
                    return lambda _resident: bits
                return lambda resident: np.tile(bits, resident.geometry.lanes)
            case Symbol(name):
                address = np.array(self.address_of(name), np.uint64).astype(type_.raw).view(type_.dtype)
                return lambda _resident: address
            case _:
                raise self.unsupported("a vector or an address there")

    def _register_reader(self, name: str, type_: PtxType) -> Reader:
        width = self.width(name)
        if (width == np.bool_) != (type_.name == "pred") or width.itemsize < type_.bytes:
            raise self.unsupported(f"{name} as a value of type .{type_.name}")
        if type_.name == "pred":
            return lambda resident: resident.read(name)
        if width.itemsize == type_.bytes and type_.elements == 1:
            dtype = type_.dtype
            return lambda resident: resident.read(name).view(dtype)
        return lambda resident: read_bits(resident.read(name), type_, resident.geometry.lanes)

    def _constant_bits(self, immediate: Immediate, type_: PtxType) -> Array:
        if type_.name == "pred":
            return np.array(immediate.bits != 0)
        bits = immediate.bits
        if immediate.is_f64 and type_.name == "f32":
            bits = int(np.array(bits, np.uint64).view(np.float64).astype(np.float32).view(np.uint32))
        elif immediate.is_f32 and type_.name == "f64":
            bits = int(np.array(bits, np.uint32).view(np.float32).astype(np.float64).view(np.uint64))
        return np.array([bits & ((1 << 8 * type_.bytes) - 1)], type_.raw)

    def writer(self, operand: Operand, type_: PtxType) -> Writer:
        """Returns a function that writes values of ``type_`` to a register in the active lanes.

        Raises UnsupportedInstruction for another operand than a declared register, a narrower register, or
        one of another class (predicate or number).
        """
        if not isinstance(operand, Register):
            raise self.unsupported("a result that is not a register")
        name = operand.name
        width = self.width(operand.name)
        if name == "_":
            return lambda _resident, _values: None
        if (width == np.bool_) != (type_.name == "pred") or width.itemsize < type_.bytes:
            raise self.unsupported(f"{name} for a result of type .{type_.name}")
        if type_.name == "pred":
            return lambda resident, values: resident.write(name, values)
        if width.itemsize == type_.bytes and type_.elements == 1:
            return lambda resident, values: resident.write(name, values.view(width))
        return lambda resident, values: resident.write(name, write_bits(values, type_, width))

    def address(self, number: int) -> Reader:
        """Returns a function that reads the int64 address, such as [%rd1 + 16], at position ``number``.

        Raises UnsupportedInstruction for another operand.
        """
        operand = self.operand(number)
        if not isinstance(operand, Address):
            raise self.unsupported("an operand that is not an address there")
        return self.address_reader(operand)

    def address_reader(self, operand: Address) -> Reader:
        """Returns a function that reads an address operand: base plus offset, in bytes, as int64."""
        offset = operand.offset
        match operand.base:
            case Register(name):
                self.width(name)
                return lambda resident: resident.read(name).astype(np.int64) + offset
            case Symbol(name):
                address = np.array([self.address_of(name) + offset], np.int64)
            case Immediate(bits):
                address = np.array([bits + offset], np.int64)
        return lambda _resident: address

    def address_of(self, name: str) -> int:
        if name not in self._symbols:
            raise self.unsupported(f"the name {name.split('#')[0]}, which is not declared")
        return self._symbols[name]

    def unsupported(self, construct: str) -> UnsupportedInstruction:
        return unsupported(self.instruction, construct)


def always(number: int) -> Reader:
    """Returns a reader of the same number in all lanes, for an operand that an instruction leaves out."""
    values = np.array([number], np.uint32)
    return lambda _resident: values


def shared_address(operands: Operands, number: int, is_generic: bool) -> SharedReader:
    """Returns a function (resident blocks, lanes) -> shared addresses, of the operand at ``number``.

    ``is_generic``: the operand is a generic address, which is converted; one outside of shared memory raises
    Fault.
    """
    address = operands.address(number)

    def read(resident: ResidentBlocks, lanes: Indices) -> Indices:
        addresses: Indices = resident.full(address(resident))[lanes]
        if not is_generic:
            return addresses
        is_outside = addresses >> WINDOW_BITS != WINDOWS["shared"] >> WINDOW_BITS
        resident.watch.require_inside(
            lanes, is_outside, lambda at: f"found generic address {addresses[at]:#x}, allowed shared memory"
        )
        return addresses - WINDOWS["shared"]

    return read


def unary(operands: Operands, type_: PtxType, function: Callable[[Array], Array]) -> Step:
    """Returns a function that executes ``d = function(a)``, both of ``type_``, for operands 0 and 1."""
    operands.need(2)
    write = operands.destination(0, type_)
    a = operands.source(1, type_)

    def step(resident: ResidentBlocks) -> None:
        write(resident, function(a(resident)))

    return step


def binary(operands: Operands, type_: PtxType, function: Callable[[Array, Array], Array]) -> Step:
    """Returns a function that executes ``d = function(a, b)``, all of ``type_``, for operands 0 to 2."""
    return binary_of(operands, type_, (type_, type_), function)


def binary_of(
    operands: Operands,
    result: PtxType,
    sources: tuple[PtxType, PtxType],
    function: Callable[[Array, Array], Array],
) -> Step:
    """Returns a function that executes ``d = function(a, b)``.

    The result d is of type ``result``; a and b are of ``sources``.
    """
    operands.need(3)
    write = operands.destination(0, result)
    a = operands.source(1, sources[0])
    b = operands.source(2, sources[1])

    def step(resident: ResidentBlocks) -> None:
        write(resident, function(a(resident), b(resident)))

    return step


def ternary(operands: Operands, type_: PtxType, function: Callable[[Array, Array, Array], Array]) -> Step:
    """Returns a function that executes ``d = function(a, b, c)``, all of ``type_``, for operands 0 to 3."""
    return ternary_of(operands, type_, (type_, type_, type_), function)


def ternary_of(
    operands: Operands,
    result: PtxType,
    sources: tuple[PtxType, PtxType, PtxType],
    function: Callable[[Array, Array, Array], Array],
) -> Step:
    """Returns a function that executes ``d = function(a, b, c)``.

    The result d is of type ``result``; a, b and c are of ``sources``.
    """
    operands.need(4)
    write = operands.destination(0, result)
    a, b, c = (operands.source(number, type_) for number, type_ in enumerate(sources, 1))

    def step(resident: ResidentBlocks) -> None:
        write(resident, function(a(resident), b(resident), c(resident)))

    return step
