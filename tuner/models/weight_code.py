"""The code that computes a program's weights from its constants, before packing: compiled, and run."""

import contextlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.device_programs import DeviceProgram
from tuner.core.errors import CandidateError
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.effects.runner_signatures import C_INTERFACE
from tuner.models.fusions.hoisting import INIT, InitPart, init_parts
from tuner.models.lowering.host import lower_host_program
from tuner.models.lowering.read_program import read_program
from tuner.models.run.host_function import HostFunction
from tuner.models.run.program_weights import WeightPart, checksum
from tuner.runtime.compiled_files import CompiledFiles, compiled_files
from tuner.runtime.cpu.content_hash import ContentHash
from tuner.targets.cpu.compiler import object_code

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class InitCode:
    """One compiled part of the code that computes a program's weights from its constants.

    ``program`` is None for a part without text, which returns its input or a transpose of it.
    """

    part: InitPart
    program: DeviceProgram | None
    object_code: bytes = b""  # b"" where LLVM made none: the program is compiled when it runs

    @property
    def is_compiled(self) -> bool:
        """Returns whether the part has machine code, or has nothing to compute: no compiler is needed."""
        return self.program is None or bool(self.object_code)


@dataclass(frozen=True)
class InitTask:
    """The code that computes a program's weights from its constants, before packing: to be compiled."""

    text: str  # MLIR
    name = "constants"  # for a progress line

    @property
    def key(self) -> str:
        """Returns the key in ``CompiledFiles`` under which this task stores its result."""
        return CompiledFiles.key("init", self.text)

    def compile(self) -> tuple[InitCode, ...]:
        """Returns the compiled parts of the code: from ``compiled_files``, or else compiled now.

        Raises CandidateError where a part does not compile.
        """
        return compiled_files().kept(self.key, lambda: _init_codes(self.text))

    def compile_with_machine_code(self) -> None:
        """Compiles each part to machine code, where LLVM can, and stores the parts in ``compiled_files``."""
        self.compile()

    @property
    def has_other_way(self) -> bool:
        """Returns False: weights can be computed in one way only."""
        return False

    def give_up(self, _reason: str) -> bool:
        """Returns False and stores nothing: there is no other code to try."""
        return False


def _init_codes(text: str) -> tuple[InitCode, ...]:
    with transform.new_context(), ir.Location.unknown():
        parts = init_parts(text)
        made = {
            part.text: lower_host_program(read_program(part.text, INIT, limit=None))
            for part in parts
            if part.text
        }
    objects: dict[str, bytes] = {}
    for text, program in made.items():
        with contextlib.suppress(CandidateError):
            objects[text] = object_code(program.llvm, C_INTERFACE + program.entry)
    return tuple(InitCode(part, made.get(part.text), objects.get(part.text, b"")) for part in parts)


def initialized_parts(codes: Sequence[InitCode], constants: Sequence[Array]) -> Iterator[WeightPart]:
    """Yields the parts that compute a program's weight buffers, each one or a few of them.

    ``codes``: of the program's ``init``; () for a program without, whose buffers are its ``constants``.
    Raises CandidateError where the code cannot be loaded.
    """
    if not codes:
        for number in range(len(constants)):
            yield WeightPart((number,), partial(_constants, (number,), constants), tuple)
        return
    distinct = {code.part.text: code for code in codes}  # parts of equal text have equal code
    loaded = {
        text: HostFunction(code.program, object_code=code.object_code)
        for text, code in distinct.items()
        if code.program is not None
    }
    for part in (code.part for code in codes):
        compute = partial(_initialized, part, loaded.get(part.text))
        inputs = partial(_constants, part.inputs, constants)
        yield WeightPart(part.results, inputs, compute, (part.text, part.order))


def _constants(numbers: Sequence[int], constants: Sequence[Array]) -> tuple[Array, ...]:
    return tuple(constants[number] for number in numbers)


def _initialized(
    part: InitPart, function: HostFunction | None, inputs: tuple[Array, ...]
) -> tuple[Array, ...]:
    """Returns the results of a part; ``function``: None for a part without code."""
    arrays = list(map(np.ascontiguousarray, inputs))
    if function is None:
        return (part.moved(arrays[0]),)
    made = function(*arrays)
    if len(part.results) == 1:
        return (made,)
    return tuple(made)


def content_of(array: Array) -> Hashable:
    """Returns what tells weights apart: type, shape, a hash of the contents, and a checksum.

    The hash mixes bits and the checksum adds numbers, so that a change which one of them misses, as the hash
    some changes of signs, is seen by the other. Both together read 10 GB/s.
    """
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    mixed = ContentHash([(content.ctypes.data, content.size)]).value()
    return array.dtype.name, array.shape, mixed, checksum(content)
