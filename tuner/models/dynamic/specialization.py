"""Reads a program of a dynamic size n, or n and m, and makes static programs of it for calls up to a size.

Runs in a child process, as all that reads a user's MLIR does.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.core.dynamic_sizes import LinearSize, SizeRange, Sizes
from tuner.core.errors import CandidateError, Refusal, Stage, UsageError
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import is_tensor, read_by
from tuner.mlir.ir.reading import ARGUMENT_ATTRIBUTES, function_type, name_of, ops_in, types_of
from tuner.mlir.ir.resources import joined_payload, split_payload
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.entry import entry_of, function_named, hide_others, require_few_operations
from tuner.mlir.transform import new_context, parse
from tuner.models.dynamic.loop_rules import PRODUCTS, MaskedLoops, note_loops
from tuner.models.dynamic.size_analysis import SIZES, KnownSizes, UnprovedError, note_number, refusal
from tuner.models.dynamic.static_sizes import StaticFunction
from tuner.models.dynamic.tensor_rules import note_tensor
from tuner.models.fusions import normal_forms
from tuner.models.fusions.generics import fill_broadcasts
from tuner.models.fusions.payload import INLINE, TERMINATOR, TensorPayload
from tuner.models.fusions.unused_results import drop_unused_results
from tuner.models.run.sized_function import SizedFunction, SizedMember
from tuner.models.run.sized_types import SizeArgument, SizedSignature, SizedType

if TYPE_CHECKING:
    from tuner.models.run.fused_program import FusedFunction
    from tuner.models.run.host_function import HostFunction

CLEAN = "builtin.module(canonicalize,cse)"
SCALARS = ("arith.", "math.", "affine.apply", "tensor.dim")


@dataclass(frozen=True)
class StaticProgram:
    """A program of static sizes that computes a program of a dynamic size n, for each n up to ``size``."""

    text: str  # MLIR, with the data of constants that the program's text has
    size: Sizes
    signature: SizedSignature  # of the program of the dynamic size
    added: tuple[SizeArgument, ...]  # arguments that follow those of the signature


@dataclass(frozen=True)
class Unproved(Refusal):
    """Why a payload has no static program; ``operations``: (MLIR location, reason) per refused operation."""

    operations: tuple[tuple[str, str], ...] = ()


def specialized(text: str, entry: str | None, size: Sizes, least: Sizes = 1) -> StaticProgram | Unproved:
    """Returns the static program of a payload for n = ``size``, which runs at each n from ``least`` on.

    Of a program of two sizes both are pairs, of n and m.

    ``entry``: name of the function; None: ``main``, or the only public function. Returns a refusal, with
    the first operation and its line, for operations that could be wrong or fail at a padded size. Raises
    CandidateError (BIND) for text that does not parse, and for a function that takes other arguments than
    tensors.
    """
    split = split_payload(text)
    with new_context(), ir.Location.unknown():
        module = parse(split.text, "payload")
        require_few_operations(module)
        name = entry_of(module, entry)
        hide_others(module, name)
        run_passes(module, INLINE)
        known = KnownSizes(size, least)
        try:
            static = _static(module, name, known)
        except UsageError as error:
            refused: list[UsageError] = [*known.refused] or [error]
            places = [(op.location, op.why) for op in refused if isinstance(op, UnprovedError)]
            return Unproved(f"payload: {refused[0].message}", refused[0].hint, tuple(places))
    joined = joined_payload(static.text, split.resources)
    return StaticProgram(joined, size, static.signature, static.added)


def required(program: StaticProgram | Refusal) -> StaticProgram:
    """Returns the static program; raises UsageError where ``specialized`` returned a Refusal."""
    if isinstance(program, Refusal):
        raise UsageError(program.text, program.hint)
    return program


Specialize = Callable[[Sizes], StaticProgram]  # raises UsageError for a program that has no static form
CompileStatic = Callable[[StaticProgram], "FusedFunction | HostFunction"]


def program_of_sizes(
    sizes: SizeRange, specialize: Specialize, compile_static: CompileStatic
) -> SizedFunction:
    """Returns a program of a dynamic size; a static program is made and compiled when a call needs it.

    Raises UsageError for a program that cannot run at padded sizes, which its greatest size shows.
    """
    greatest = specialize(sizes.greatest)

    def member_of(size: Sizes) -> SizedMember:
        program = greatest if size == sizes.greatest else specialize(size)
        return SizedMember(size, program.added, compile_static(program))

    return SizedFunction(greatest.signature, sizes, sizes.ladder, member_of)


def takes_dynamic_size(text: str, entry: str | None) -> bool:
    """Returns whether a payload's function takes a tensor of a dynamic size.

    Raises CandidateError(BIND) for text that does not parse, and for a missing entry.
    """
    with new_context(), ir.Location.unknown():
        module = parse(split_payload(text).text, "payload")
        function = function_named(module, entry_of(module, entry))
        return any(map(_is_dynamic, function_type(function).inputs))


def _is_dynamic(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape


def _static(module: ir.Module, name: str, known: KnownSizes) -> StaticProgram:
    function = function_named(module, name)
    _require_block_of_tensors(function)
    normal_forms.prepare(module)
    normal_forms.generalize_named(module)
    payload = TensorPayload(module, function_named(module, name))
    drop_unused_results(payload)  # a mask of the others is then one of a known operation
    fill_broadcasts(payload)
    first = KnownSizes(known.size, known.least, refused=known.refused)
    _generalize_reductions(module, name, first)
    function = function_named(module, name)
    reductions = _analyzed(function, known)
    signature = _signature(function, known)
    added = StaticFunction(function, known, known.size).make(reductions)
    run_passes(module, CLEAN)
    return StaticProgram(str(module), known.size, signature, added)


def _analyzed(function: Op, known: KnownSizes) -> list[MaskedLoops]:
    """Records the sizes of all tensors and numbers of a function in ``known``.

    Returns the operations that need masks. Raises UsageError for operations that
    could be wrong or fail at a padded size; ``known.refused`` has all of them.
    """
    reductions = []
    block = function.regions[0].blocks[0]
    for argument, sizes in zip(block.arguments, _sizes_of_arguments(function), strict=True):
        known.note_argument(argument, sizes)
    for op in ops_in(block):
        if not known.unknown.isdisjoint(read_by(op)):
            known.unknown.update(op.results)
            continue
        try:
            reduction = _noted(op, known)
        except UnprovedError as error:
            known.refused.append(error)
            known.unknown.update(op.results)
            continue
        if reduction is not None:
            reductions.append(reduction)
    if known.refused:
        raise known.refused[0]
    return reductions


def _sizes_of_arguments(function: Op) -> list[tuple[LinearSize, ...]]:
    """Returns, for each argument, what its attribute SIZES says of its dynamic sizes; () without it."""
    count = len(function_type(function).inputs)
    if ARGUMENT_ATTRIBUTES not in function.attributes:
        return [()] * count
    sizes = []
    for attributes in ir.ArrayAttr(function.attributes[ARGUMENT_ATTRIBUTES]):
        texts = ir.ArrayAttr(ir.DictAttr(attributes)[SIZES]) if SIZES in ir.DictAttr(attributes) else ()
        sizes.append(tuple(LinearSize.parse(ir.StringAttr(text).value) for text in texts))
    return sizes


def _noted(op: Op, known: KnownSizes) -> MaskedLoops | None:
    """Records the sizes of the results of an operation; returns what of it needs masks, None if nothing."""
    tensors = list(filter(is_tensor, (*op.operands, *op.results)))
    is_static = all(value.type.has_static_shape for value in tensors)
    is_padded = any(map(known.is_dynamic, filter(is_tensor, op.operands)))
    is_scalar = op.name.startswith(SCALARS) and not any(map(_is_dynamic, types_of(op.results)))
    if op.name == TERMINATOR or is_scalar:
        note_number(op, known)
        for result in filter(is_tensor, op.results):
            known.note_static(result)
    elif is_static and not is_padded:
        for result in filter(is_tensor, op.results):
            known.note_static(result)
    elif op.name.startswith("linalg."):
        return note_loops(op, known)
    else:
        note_tensor(op, known)
    return None


def _generalize_reductions(module: ir.Module, name: str, known: KnownSizes) -> None:
    """Makes named operations generic that reduce over n, other than products: their bodies get masks."""
    ops = [
        reduction.op
        for reduction in _analyzed(function_named(module, name), known)
        if reduction.loops and reduction.op.name != "linalg.generic" and reduction.op.name not in PRODUCTS
    ]
    normal_forms.generalize_ops(module, ops)


def _signature(function: Op, known: KnownSizes) -> SizedSignature:
    block = function.regions[0].blocks[0]
    returned = ops_in(block)[-1].operands
    arguments = _types(block.arguments, known)
    results = _types(returned, known)
    numbers = tuple(range(len(arguments)))
    return SizedSignature(name_of(function), arguments, results, numbers, tuple(range(len(results))))


def _types(values: Iterable[Value], known: KnownSizes) -> tuple[SizedType, ...]:
    return tuple(SizedType(known.shape(value), str(value.type.element_type)) for value in values)


def _require_block_of_tensors(function: Op) -> None:
    signature = function_type(function)
    for what, kinds in (("argument", signature.inputs), ("result", signature.results)):
        for index, type_ in enumerate(kinds):
            if not isinstance(type_, ir.RankedTensorType):
                line = f"payload: {what} {index}: found {type_}, allowed tensors in a program of a size n"
                raise CandidateError(Stage.BIND, line)
    if len(function.regions[0].blocks) != 1:
        raise refusal(function, "it has several blocks: a program of a size n has no control flow")
    if not any(map(_is_dynamic, signature.inputs)):
        raise refusal(function, "no argument has a dynamic size", "leave out the option sizes")
