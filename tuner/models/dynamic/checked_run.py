"""Runs a program of a dynamic size at several sizes of its range, each compared with the text as written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from tuner.core.device_programs import BufferType, DeviceProgram
from tuner.core.dynamic_sizes import SizeRange, Sizes, compiled_sizes_for, numbers_of, shape_at
from tuner.core.errors import Refusal, UsageError
from tuner.models.arguments import make_arguments, type_text
from tuner.models.comparison import compare, outputs
from tuner.models.compile_work import compile_and_check
from tuner.models.compiler import CompiledProgram
from tuner.models.dynamic.specialization import StaticProgram, program_of_sizes, required, specialized
from tuner.models.execution import host_function
from tuner.models.reference import reference_of
from tuner.models.report import Comparison
from tuner.models.request import ProgramRequest
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.host_function import HostFunction
from tuner.models.run.sized_function import SizedFunction
from tuner.models.run.sized_types import SizedSignature, SizedType
from tuner.targets.registry import real_backends


@dataclass(frozen=True)
class CheckedSize:
    """One call of a program of a dynamic size, compared with a reference."""

    size: Sizes  # n of the call, or n and m
    compiled_size: Sizes  # of the static program that ran
    comparisons: tuple[Comparison, ...]
    reference: str

    @property
    def is_right(self) -> bool:
        """Returns whether every result is equal to the reference's."""
        return all(map(attrgetter("is_equal"), self.comparisons))


@dataclass(frozen=True)
class SizedReport:
    """The outcome of calls of a program of a dynamic size at several sizes."""

    entry: str
    sizes: SizeRange
    arguments: tuple[str, ...]  # "nx32xf32"
    results: tuple[str, ...]
    checks: tuple[CheckedSize, ...]
    whole: str  # why static programs are compiled as a whole; "": they are fusions

    @property
    def compiled_sizes(self) -> tuple[Sizes, ...]:
        """Returns the sizes of the static programs that were compiled, ascending."""
        return tuple(sorted({check.compiled_size for check in self.checks}, key=numbers_of))

    @property
    def is_right(self) -> bool:
        """Returns whether every result at every size is equal to the reference's."""
        return all(map(attrgetter("is_right"), self.checks))


def run_sizes(request: ProgramRequest, sizes: SizeRange) -> SizedReport | Refusal:
    """Compiles a program of a dynamic size, calls it at some sizes of a range and compares the results.

    Returns a Refusal, with operation and line, where there is no such program. Raises CandidateError where
    the payload or a static program does not compile, or a call fails; UsageError for arguments that do not
    fit.
    """
    compiled: dict[Sizes, CompiledProgram] = {}

    def specialize(size: Sizes) -> StaticProgram:
        return required(specialized(request.text, request.entry, size, sizes.least))

    def compile_static(program: StaticProgram) -> FusedFunction | HostFunction:
        made = compile_and_check(replace(request, text=program.text, entry=None))
        compiled[program.size] = made
        return host_function(made)

    try:
        function = program_of_sizes(sizes, specialize, compile_static)
    except UsageError as error:
        return Refusal(error.message, error.hint)
    rng = np.random.default_rng(request.options.seed)
    checks = tuple(_checked(request, function, size, rng) for size in sizes.checked_sizes)
    signature = function.signature
    return SizedReport(
        signature.entry,
        sizes,
        tuple(map(sized_text, signature.arguments)),
        tuple(map(sized_text, signature.results)),
        checks,
        _why_whole(compiled),
    )


def _why_whole(compiled: Mapping[Sizes, CompiledProgram]) -> str:
    for made in compiled.values():
        if made.image is None:
            return made.why_no_fusions
    return ""


def _checked(
    request: ProgramRequest, function: SizedFunction, size: Sizes, rng: np.random.Generator
) -> CheckedSize:
    code = types_at(function.signature, size)
    arguments = make_arguments(code.arguments, request.arguments, rng)
    results = outputs(code, function(*arguments), arguments)
    reference = reference_of(request, code, arguments, real_backends())
    comparisons = compare(code, results, reference.outputs)
    return CheckedSize(size, compiled_sizes_for(function.ladder, size), comparisons, reference.name)


def types_at(signature: SizedSignature, size: Sizes) -> DeviceProgram:
    """Returns the types of a program's arguments and results at n = ``size``, as a program without code."""
    arguments = _buffers_at(signature.arguments, size)
    results = _buffers_at(signature.results, size)
    return DeviceProgram("", signature.entry, arguments, results, (False,) * len(arguments))


def _buffers_at(types: tuple[SizedType, ...], size: Sizes) -> tuple[BufferType, ...]:
    return tuple(BufferType(type_.element, shape_at(type_.shape, size)) for type_ in types)


def sized_text(type_: SizedType) -> str:
    """Returns a type as text: ``nx32xf32``."""
    if type_.is_static:
        return type_text(type_.buffer)
    return "x".join([*(length.text for length in type_.shape), type_.element])
