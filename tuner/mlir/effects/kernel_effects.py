"""Which buffers a kernel reads and writes: side-effect (mod/ref) summaries of outlined kernels.

There is one summary per ``gpu.func``: for each argument, the union of the effects of its uses and of the uses
of its views (interprocedural side-effect analysis, Cooper and Kennedy 1988, for calls that nest no deeper
than one). Takes outlined kernels that are not lowered yet. Effects of single ops are in ``op_effects.py``.
"""

from typing import NamedTuple

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.effects.address_flow import is_from_elsewhere
from tuner.mlir.effects.buffer_roots import VIEWS
from tuner.mlir.effects.op_effects import ANYTHING, NOTHING, UNBOUNDED, Effect, effect_on_operand
from tuner.mlir.effects.overwritten import overwrites
from tuner.mlir.rewrite.launch_operands import ARGUMENTS, operands
from tuner.mlir.rewrite.symbols import function_type, name_of
from tuner.mlir.rewrite.walking import walk

ATOMIC = ("memref.atomic_rmw", "memref.generic_atomic_rmw")
POINTERS = ("!llvm.ptr", "!llvm.ptr<1>")  # to memory that kernels share
CAST = "builtin.unrealized_conversion_cast"  # of a tensor map to its address


class EffectInstance(NamedTuple):
    """A memref and what an op may do to the memref's elements: MLIR's ``MemoryEffects::EffectInstance``."""

    value: Value
    effect: Effect


class KernelEffects:
    """What each kernel (``gpu.func``) of a module reads and writes through each of its arguments.

    Computed at construction; only ``overwrites`` reads the kernels again, so they must still exist.
    """

    def __init__(self, module: ir.Module) -> None:
        """Summarizes every ``gpu.func`` of the module."""
        self._kernels = {
            f"@{name_of(holder)}::@{name_of(function)}": function
            for holder in walk(module, "gpu.module")
            for function in walk(holder, "gpu.func")
        }
        self._effects = {name: _effects_of_arguments(function) for name, function in self._kernels.items()}
        self._atomic = {name: _atomic_arguments(function) for name, function in self._kernels.items()}
        self._go_anywhere = {name for name, function in self._kernels.items() if _goes_anywhere(function)}

    def overwrites(self, launch: Op, value: Value) -> bool:
        """Returns whether a launch is proved to store every element of memref ``value`` and to read none.

        False where that is not proved, where the kernel is not in the module, and where ``value`` is not
        exactly one argument of the launch.
        """
        kernel = self._kernels.get(str(launch.attributes["kernel"]))
        numbers = [number for number, each in enumerate(operands(launch, ARGUMENTS)) if each == value]
        if kernel is None or len(numbers) != 1:
            return False
        effect = self._effects[str(launch.attributes["kernel"])][numbers[0]]
        return not effect.reads and overwrites(launch, kernel, numbers[0])

    def of_launch(self, launch: Op) -> tuple[EffectInstance, ...]:
        """Returns what a ``gpu.launch_func`` may do to each argument, in order, without scalars and vectors.

        A kernel that is not in the module may read and write every argument.
        """
        values = operands(launch, ARGUMENTS)
        effects = self._effects.get(str(launch.attributes["kernel"]), (ANYTHING,) * len(values))
        pairs = zip(values, effects, strict=True)
        return tuple(EffectInstance(value, effect) for value, effect in pairs if not is_number(value.type))

    def of_launch_without_atomics(self, launch: Op) -> tuple[EffectInstance, ...]:
        """Returns ``of_launch`` without the arguments whose elements a kernel only uses atomically."""
        values = operands(launch, ARGUMENTS)
        atomic = self._atomic.get(str(launch.attributes["kernel"]), (False,) * len(values))
        left_out = {value for value, is_atomic in zip(values, atomic, strict=True) if is_atomic}
        return tuple(each for each in self.of_launch(launch) if each.value not in left_out)

    def goes_anywhere(self, launch: Op) -> bool:
        """Returns whether a launch may access any buffer, not only its arguments.

        It may where its kernel makes a pointer of a number that it was given or has loaded.
        """
        return str(launch.attributes["kernel"]) in self._go_anywhere


def effect_of(buffer: Value) -> Effect:
    """Returns the union of the effects of all uses of a memref and of its views, or of a TMA descriptor."""
    effects = [effect_of_use(use.owner.operation, use.operand_number) for use in buffer.uses]
    return Effect(
        any(effect.reads for effect in effects),
        any(effect.writes for effect in effects),
        all(effect.is_bounded for effect in effects),
    )


def is_number(kind: Type) -> bool:
    """Returns whether a launch passes values of a type by value: scalars (also complex) and vectors."""
    return isinstance(kind, ir.IntegerType | ir.IndexType | ir.FloatType | ir.VectorType | ir.ComplexType)


def _effects_of_arguments(function: Op) -> tuple[Effect, ...]:
    inputs = function_type(function).inputs
    arguments = list(function.regions[0].blocks[0].arguments)[: len(inputs)]  # attributions follow them
    return tuple(NOTHING if is_number(argument.type) else effect_of(argument) for argument in arguments)


def _atomic_arguments(function: Op) -> tuple[bool, ...]:
    inputs = function_type(function).inputs
    return tuple(map(_is_atomic, list(function.regions[0].blocks[0].arguments)[: len(inputs)]))


def _is_atomic(buffer: Value) -> bool:
    """Returns whether all uses of a memref and of its views are atomic, and there is one."""
    uses = [use.owner.operation for use in buffer.uses]
    return bool(uses) and all(
        op.name in ATOMIC or (op.name in VIEWS and _is_atomic(op.results[0])) for op in uses
    )


def _goes_anywhere(function: Op) -> bool:
    pointers = [op.results[0] for op in walk(function, "llvm.inttoptr", "llvm.load")]
    return any(str(each.type) in POINTERS and is_from_elsewhere(each) for each in pointers)


def effect_of_use(op: Op, number: int) -> Effect:
    """Returns what ``op`` may do to its memref operand ``number``, counted from 0.

    Where ``op`` creates a view of the operand, the result is the union of the effects of all uses of the
    view.
    """
    if op.name not in VIEWS and op.name != CAST:
        return effect_on_operand(op, number)
    effect = effect_of(op.results[0])
    return effect._replace(is_bounded=effect.is_bounded and op.name not in UNBOUNDED)
