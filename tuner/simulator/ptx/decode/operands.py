"""Operands of an instruction as functions: readers return values of lanes, writers set registers.

A reader returns an array with one value per lane, or with a single value for all lanes.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tuner.simulator.ptx.decode.modifiers import Modifiers
from tuner.simulator.ptx.defects import UnsupportedInstruction, unsupported
from tuner.simulator.ptx.dtypes import TYPES, UNSIGNED, Array, PtxType, read_bits, write_bits
from tuner.simulator.ptx.geometry import Geometry
from tuner.simulator.ptx.instruction import (
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
from tuner.simulator.ptx.parse.layout import Layout
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks

Step: TypeAlias = Callable[[ResidentBlocks], None]
Reader: TypeAlias = Callable[[ResidentBlocks], Array]
Writer: TypeAlias = Callable[[ResidentBlocks, Array], None]

PREDICATE = TYPES["pred"]
SPECIAL_REGISTERS = frozenset(Geometry((1, 1, 1), (1, 1, 1), (0,)).special_registers())
U16, U32, S32, U64 = TYPES["u16"], TYPES["u32"], TYPES["s32"], TYPES["u64"]


class Operands:
    """The operands and modifiers of an instruction during decoding, converted to functions on request.

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
        """Raises UnsupportedInstruction where the number of operands is not one of ``counts``."""
        if len(self) not in counts:
            raise self.unsupported(f"it with {len(self)} operands")

    def operand(self, number: int) -> Operand:
        """Returns the operand at position ``number``, from 0.

        Raises UnsupportedInstruction where there are fewer.
        """
        if number >= len(self):
            raise self.unsupported(f"it with {len(self)} operands")
        return self.instruction.operands[number]

    def source(self, number: int, type_: PtxType) -> Reader:
        """Returns a function that reads the operand at position ``number``, from 0, as values of ``type_``.

        Raises UnsupportedInstruction for a missing operand, or one that has no such values.
        """
        return self.reader(self.operand(number), type_)

    def destination(self, number: int, type_: PtxType) -> Writer:
        """Returns a function that writes values of ``type_`` to the register at position ``number``, from 0.

        Raises UnsupportedInstruction for a missing operand, or one that is no register for such values.
        """
        return self.writer(self.operand(number), type_)

    def items(self, number: int) -> tuple[Operand, ...]:
        """Returns the elements of the vector operand at position ``number``, from 0.

        Of a scalar operand, the operand itself is the only element.
        """
        operand = self.operand(number)
        return operand.items if isinstance(operand, Vector) else (operand,)

    def names(self, number: int) -> tuple[str, ...]:
        """Returns the register names of the vector operand at position ``number``, from 0; of a scalar, one.

        Raises UnsupportedInstruction for an element that is no declared register.
        """
        return tuple(self.register(item) for item in self.items(number))

    def register(self, operand: Operand) -> str:
        """Returns the name of a register operand.

        Raises UnsupportedInstruction where it is no declared register.
        """
        if not isinstance(operand, Register):
            raise self.unsupported("an operand that is no register there")
        self.width(operand.name)
        return operand.name

    def pair(self, number: int) -> tuple[Operand, Operand | None]:
        """Returns (a, b) for the operand ``a|b`` at position ``number``, from 0; (a, None) for ``a``."""
        operand = self.operand(number)
        return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)

    def constant(self, number: int) -> int:
        """Returns the integer constant at position ``number``, from 0; for a float, its IEEE 754 bits.

        Raises UnsupportedInstruction for an operand that is no constant.
        """
        operand = self.operand(number)
        if not isinstance(operand, Immediate):
            raise self.unsupported("an operand that is no number there")
        return operand.bits

    def width(self, name: str) -> "np.dtype[np.generic]":
        """Returns the numpy type of the bits of register ``name``: unsigned, or bool for a predicate.

        uint64 for the name "_", which discards a result. Raises UnsupportedInstruction for an undeclared
        register.
        """
        if name == "_":
            return UNSIGNED[8]
        width = self._layout.width(name)
        if width is None:
            raise self.unsupported(f"the register {name.split('#')[0]}, which is not declared")
        return width

    def reader(self, operand: Operand, type_: PtxType) -> Reader:
        """Returns a function that reads ``operand`` as values of ``type_`` in the lanes of resident blocks.

        Raises UnsupportedInstruction for a vector, a pair, an address, an undeclared name, a register that is
        too narrow, and a predicate as another type or the reverse. A negated register may have any type, and
        special registers are zero-extended.
        """
        match operand:
            case Register(name) if name in SPECIAL_REGISTERS and self._layout.width(name) is None:
                return lambda resident: read_bits(
                    _special(resident, name, type_), type_, resident.geometry.lanes
                )
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
        """Returns a function that writes values of ``type_`` to the register ``operand`` in the active lanes.

        Raises UnsupportedInstruction where the operand is no declared register, its register is narrower than
        the type, or only one of the two is a predicate. Values for the name "_" are discarded.
        """
        if not isinstance(operand, Register):
            raise self.unsupported("a result that is no register")
        name, width = operand.name, self.width(operand.name)
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
        """Returns a function that reads the address, such as [%rd1 + 16], at position ``number``, from 0.

        The function returns int64 addresses, in the instruction's state space. Raises UnsupportedInstruction
        for an operand that is no address.
        """
        operand = self.operand(number)
        if not isinstance(operand, Address):
            raise self.unsupported("an operand that is no address there")
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
        """Returns the address of the variable or parameter ``name`` in its state space.

        Raises UnsupportedInstruction for an undeclared name.
        """
        if name not in self._symbols:
            raise self.unsupported(f"the name {name.split('#')[0]}, which is not declared")
        return self._symbols[name]

    def unsupported(self, construct: str) -> UnsupportedInstruction:
        """Returns, without raising, an UnsupportedInstruction whose message names ``construct``, a text."""
        return unsupported(self.instruction, construct)


def _special(resident: ResidentBlocks, name: str, type_: PtxType) -> Array:
    """Returns the bits of a special register in all lanes, zero-extended where the type is wider."""
    found = resident.special[name]
    return found if found.itemsize >= type_.bytes else found.astype(type_.raw)
