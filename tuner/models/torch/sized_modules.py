"""A module with a dynamic size as a program in a folder: exported from its family, and loaded without it."""

from collections.abc import Iterable
from functools import partial
from itertools import compress
from operator import not_
from pathlib import Path

import numpy as np

from tuner.core.dynamic_sizes import SIZE_N, SizeRange, numbers_of
from tuner.core.errors import UsageError
from tuner.core.fusions import TensorType
from tuner.models.run.exported_sizes import SizedCode, SizedImage, save_sizes
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.sized_function import SizedFunction
from tuner.models.run.sized_types import NUMBER, SizeArgument, SizedSignature, SizedType
from tuner.models.torch.dynamic_sizes import DynamicSize, Shape, SizedPlace, is_other_number
from tuner.models.torch.parted_function import PartedFunction, TensorPart, Tensors
from tuner.models.torch.program import array_of, conversion_of
from tuner.models.torch.program_family import ProgramFamily, SizedProgram
from tuner.models.torch.symbol_sizes import Size, linear_size
from tuner.models.tuning import TunedProgram

ENTRY = "main"
SYMBOL = "n"
SIZE_OF_CALL = SizeArgument(NUMBER, SIZE_N, (), "i64")
NO_VIEWS = TensorPart(tuple, (), ())


def save_module(function: PartedFunction, folder: Path) -> None:
    """Writes a module with a dynamic size into a folder; compiles the programs of all sizes of its ladder.

    Raises UsageError for a module that one family of programs does not compute alone, with a dimension that
    depends on n but is not n, or that computes with another function of n, and for a folder that has other
    files or cannot be written; CandidateError where a program cannot be compiled.
    """
    save_sizes(_image(function), folder)


def _image(function: PartedFunction) -> SizedImage:
    part, family = _family(function)
    reads = tuple(compress(part.reads, map(not_, family.is_number)))
    if set(reads) != set(function.inputs) or not set(function.results) <= set(part.returns):
        raise UsageError(
            "not exported: the module does not read all of its arguments, or returns some of them, or what "
            "depends on weights alone"
        )
    _require_exported_sizes(function, family)
    family.compile_all()
    programs = tuple(map(_code, family.ladder, map(family.program_at, family.ladder)))
    code = programs[-1].code
    shapes = compress(family.arguments, map(not_, family.is_number))
    # the code's arguments may have one more, the size of the call
    arguments = dict(zip(reads, map(_type, shapes, code.arguments), strict=True))
    results = dict(zip(part.returns, map(_type, family.results, code.results), strict=True))
    signature = SizedSignature(
        ENTRY,
        tuple(map(arguments.__getitem__, function.inputs)),
        tuple(map(results.__getitem__, function.results)),
        reads=tuple(map(function.inputs.index, reads)),
        returns=tuple(map(part.returns.index, function.results)),
    )
    return SizedImage(signature, SizeRange(family.ladder[0], family.ladder[-1]), programs)


def _require_exported_sizes(function: PartedFunction, family: ProgramFamily) -> None:
    """Raises UsageError where a program would have to know more of n than that a dimension is n."""
    for size in function.sizes:
        for place in size.places:
            if place.of_n != SIZE_N:
                raise UsageError(
                    f"not exported: dimension {place.dimension} of argument {place.number} is "
                    f"{place.of_n.text}, allowed n"
                )
    if any(map(is_other_number, family.examples)):
        raise UsageError(
            "not exported: it computes with a number that is not a multiple of n plus a constant"
        )


def _type(sizes: Iterable[Size], of_code: TensorType) -> SizedType:
    return SizedType(tuple(map(linear_size, sizes)), of_code.element)


def _family(function: PartedFunction) -> tuple[TensorPart, ProgramFamily]:
    """Returns the only part of a function and its family of programs.

    Raises UsageError if there are other parts.
    """
    families = []
    made: set[str] = set()
    for part in function.parts:
        made |= set(part.returns)
        if isinstance(part.call, ProgramFamily):
            families.append((part, part.call))
    if len(families) == 1 and not function.changes and not function.views.returns:
        ((part, family),) = families
        # sizes of arguments, which a part before it reads, are not needed: calls say their n
        if made <= {*part.returns, *compress(part.reads, family.is_number)}:
            return part, family
    raise UsageError(f"only a program of fusions is exported: {function.why_no_fusions}")


def _code(size: int, made: SizedProgram | None) -> SizedCode:
    if made is None:
        raise UsageError(f"not exported: calls of size {size} run by PyTorch")
    function = made.program.function
    if not isinstance(function, FusedFunction):
        raise UsageError(f"size {size}: only a program of fusions is exported: {function.why_no_fusions}")
    added: tuple[SizeArgument, ...] = ()
    if made.takes_size:
        added = (SIZE_OF_CALL,)
    return SizedCode(size, added, function.code, function.weights)


def parts_of(function: SizedFunction) -> PartedFunction:
    """Returns a loaded program of a dynamic size as a function of tensors: one part runs all of it."""
    shapes = tuple(map(_tensor_shape, function.signature.arguments))
    least, greatest = (numbers_of(end)[0] for end in (function.sizes.least, function.sizes.greatest))
    names = tuple(map("argument_{}".format, range(len(shapes))))
    results = tuple(map("result_{}".format, range(len(function.signature.results))))
    return PartedFunction(
        shapes=shapes,
        inputs=names,
        parts=(TensorPart(_OfTensors(function), names, results),),
        results=results,
        held={},
        why_no_fusions="its sizes are dynamic",
        state={},
        changes=(),
        sizes=(DynamicSize(SYMBOL, _places(shapes), least, greatest),),
        views=NO_VIEWS,
    )


def _places(shapes: Iterable[Shape]) -> tuple[SizedPlace, ...]:
    places = []
    for index, shape in enumerate(shapes):
        for dimension, length in enumerate(shape):
            if length is None:
                places.append(SizedPlace(index, dimension))
    return tuple(places)


def tuned_sizes(function: PartedFunction) -> dict[int, TunedProgram]:
    """Returns how the programs of a module's dynamic size were tuned, by the size that each is compiled for.

    In the order of tuning; programs that were not tuned are left out.
    """
    tuned = {}
    for part in function.parts:
        if isinstance(part.call, ProgramFamily):
            for size, program in part.call.programs_by_size.items():
                if program.tuned is not None:
                    tuned[size] = program.tuned
    return tuned


def _tensor_shape(type_: SizedType) -> Shape:
    return type_.buffer.shape


class _OfTensors:
    """Calls a program of arrays with tensors."""

    def __init__(self, function: SizedFunction) -> None:
        self._function = function
        self._conversions = [conversion_of(type_.element) for type_ in function.signature.results]

    def __call__(self, tensors: Tensors) -> Tensors:
        results = self._function(*map(array_of, tensors))
        if not isinstance(results, tuple):
            results = (results,)
        # a result that is cut is a view of a greater array
        contiguous = map(partial(np.asarray, order="C"), results)  # a number stays one
        return [convert(array) for convert, array in zip(self._conversions, contiguous, strict=True)]
