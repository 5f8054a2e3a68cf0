"""Calls a compiled PyTorch module without copies: inputs are passed by address, results view its arrays.

``TensorProgram`` is the callable; it wraps a program of fusions, a program as a whole, or parts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from tuner.core.dtypes import number_type
from tuner.core.errors import UsageError
from tuner.core.typed_arguments import typed_arguments
from tuner.models.compile import compile_on_host
from tuner.models.run.fused_code import shared_memory
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.host_function import HostFunction
from tuner.models.torch.call_form import CallForm, rebuilt
from tuner.models.torch.dynamic_sizes import Shape
from tuner.models.torch.export import ExportedModule
from tuner.models.torch.graph_corrections import UNSIGNED
from tuner.models.torch.graph_outputs import ChangesTensorsError
from tuner.models.torch.guards import (
    checked,
    default_dtype,
    dispatch_modes,
    function_modes,
    require_memory,
    require_modes,
    tensor_checks,
)
from tuner.models.torch.parted_function import PartedFunction, Tensors
from tuner.models.torch.weights import ModuleWeights
from tuner.models.tuning import TunedProgram
from tuner.runtime.arrays import require_distinct

NOT_OF_NUMPY = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
ADDRESS_OF = torch.Tensor.data_ptr
OtherCall = Callable[["TensorProgram", Tensors, Tensors], list[torch.Tensor]]
INTEGER_OF_BYTES = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


class TensorProgram:
    """A compiled module that is called like the module, for the shapes and types of its example inputs.

    Results do not require gradients. Calls of several threads run one after the other.
    """

    def __init__(
        self,
        function: FusedFunction | HostFunction | PartedFunction,
        form: CallForm,
        weights: ModuleWeights | None = None,
        save: Callable[[Path], None] | None = None,
        state: tuple[torch.Tensor, ...] = (),
    ) -> None:
        """Takes a compiled function, how its module is called, and the module's weights at the export.

        ``save``: writes a function in parts into a folder; None where that is not possible. ``state``: the
        module's buffers that a function in one part changes, which are its last arguments.
        """
        self.function = function
        self.tuned: TunedProgram | None = None  # how the program was tuned, of ``tuner.torch.tune``
        self.tuned_sizes: Mapping[int, TunedProgram] = {}  # of a dynamic size: by the size of each program
        self._form = form
        self._weights = weights
        self._save = save
        self._state = state
        types = tuple(zip(form.types, _shapes_of(function), strict=True))
        self._expected = types[: len(types) - len(state)]
        # of a program of fusions: numbers of arguments that a call changes, and the bytes of each argument
        self._changed: tuple[int, ...] = ()
        self._sizes_bytes: tuple[int, ...] = ()
        if isinstance(function, FusedFunction):
            self._changed = function.code.changed
            self._sizes_bytes = tuple(type_.bytes for type_ in function.code.arguments)
        self._default_dtype = default_dtype()
        # torch's guards of usual tensors outside and inside of inference mode, and of tensors made in it
        self._fits, self._fits_inside, self._fits_in_inference = tensor_checks(self._expected)
        self._count = len(self._expected)
        self._run = function.run if isinstance(function, FusedFunction) else None
        self._parts = function if isinstance(function, PartedFunction) else None
        # how a function is called that is not a program of fusions without changes
        self._other_call: OtherCall | None = None
        if self._parts is not None:
            self._other_call = TensorProgram._called_in_parts
        elif self._changed:
            self._other_call = TensorProgram._called_with_changes
        elif self._run is None:
            self._other_call = TensorProgram._called_as_a_whole
        elements = (result.element for result in _results_of(function))
        self._conversions = tuple(map(conversion_of, elements, form.result_types))
        # flat: called with tensors alone; single: returns one tensor. Neither needs torch's trees at a call.
        flat = torch.utils._pytree.tree_flatten(((0,) * len(form.inputs), {}))[1]  # noqa: SLF001 - torch's only API
        self._is_flat = flat == form.in_spec
        single = torch.utils._pytree.tree_flatten(0)[1]  # noqa: SLF001
        self._is_single = form.out_spec == single and form.outputs[0].result == 0

    def __repr__(self) -> str:
        """Returns one line: the types of the inputs, what runs them, and the campaign that tuned them."""
        inputs = ", ".join(
            f"{str(dtype).removeprefix('torch.')}{tuple(shape)}" for dtype, shape in self._expected
        )
        campaign = None if self.tuned is None else self.tuned.campaign
        tuned = "" if campaign is None else f"; tuned by campaign {campaign.campaign.id}"
        return f"TensorProgram({inputs}: {self.function!r}{tuned})"

    @property
    def why_no_fusions(self) -> str:
        """Returns why the program is not computed as fusions; "" where it is."""
        return self.function.why_no_fusions

    @property
    def is_changing(self) -> bool:
        """Returns whether a call changes buffers of the module, or its arguments."""
        return bool(self._changed) or (self._parts is not None and bool(self._parts.changes))

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Calls the program.

        Args:
            arguments: those of the module, of the shapes and types of the example inputs.
            keywords: keyword arguments of the module, likewise.

        Returns:
            What the module returns, of tensors that do not require gradients.

        Raises:
            UsageError: an argument of another structure, shape, type or device, another number than the
                example's, a tensor that requires gradients while autograd is enabled or has a tangent, and
                calls under torch.autocast or another mode that the program was not compiled under.
            CandidateError: an assertion of the program failed (stage RUN); it is an IndexError, too, where an
                index is out of range, such as that of an embedding.
        """
        tensors = arguments
        if keywords or not self._is_flat or len(arguments) != self._count:
            tensors = self._form.tensors_of(arguments, keywords)
        results = self.run(tensors)
        if self._is_single:
            return results[0]
        outputs = self._form.outputs
        leaves = [output.constant if output.result is None else results[output.result] for output in outputs]
        return rebuilt(leaves, self._form.out_spec)

    def run(self, tensors: tuple[Any, ...]) -> list[torch.Tensor]:
        """Calls the program with its tensors, without other arguments; returns its results in order.

        Raises UsageError for a wrong number of tensors, for a tensor of another shape, type or device or with
        gradients, and under autocast and other modes; CandidateError where an assertion of the program fails.
        """
        if len(tensors) != self._count:
            raise UsageError(f"found {len(tensors)} arguments, allowed {self._count}")
        given = tensors
        is_nested = False
        try:  # before the guard, which a nested tensor would end by aborting the process
            for tensor in tensors:  # in 20 ns each; a generator takes 300 more
                if tensor.is_nested:
                    is_nested = True
        except AttributeError:  # of what is not a tensor, which ``checked`` names
            pass
        if (
            is_nested
            or not (self._fits(*tensors) or self._fits_inside(*tensors) or self._fits_in_inference(*tensors))
            or default_dtype() is not self._default_dtype
            or forward_ad._current_level >= 0  # noqa: SLF001 - as torch itself reads it, in 10 ns
            or dispatch_modes()
            or function_modes()
        ):
            require_modes(self._default_dtype)
            tensors = checked(tensors, self._expected, self._form.names)
        addresses = [*map(ADDRESS_OF, tensors)]
        if 0 in addresses:  # right only for tensors without elements
            for tensor, name in zip(tensors, self._form.names, strict=True):
                require_memory(tensor, name)
        if self._other_call is not None:
            return self._other_call(self, given, tensors)
        assert self._run is not None
        return self._converted(self._run(addresses))

    def _converted(self, arrays: Iterable[Any]) -> list[torch.Tensor]:
        return [convert(array) for convert, array in zip(self._conversions, arrays, strict=True)]

    def _called_in_parts(self, given: Tensors, tensors: Tensors) -> list[torch.Tensor]:
        """Calls the parts.

        A tensor that they change is also changed in ``given`` where ``tensors`` has a copy of it.
        """
        assert self._parts is not None
        return _with_given(self._parts(tensors), given, tensors, self._parts.changed_inputs)

    def _called_as_a_whole(self, _given: Tensors, tensors: Tensors) -> list[torch.Tensor]:
        arrays: Any = self.function(*map(array_of, tensors))
        if len(self._conversions) == 1:
            arrays = (arrays,)
        return self._converted(arrays)

    def _called_with_changes(self, given: Tensors, tensors: Tensors) -> list[torch.Tensor]:
        """Calls a program that writes arguments and buffers in place; a result may be such a tensor."""
        assert self._run is not None
        owned = (*tensors, *self._state)
        addresses = [*map(ADDRESS_OF, owned)]
        pair = shared_memory(addresses, self._sizes_bytes, self._changed)
        if pair is not None:
            names = (*self._form.names, *map("buffer {}".format, self._form.changes.buffers))
            require_distinct(names[pair[0]], names[pair[1]], is_shared=True)
        torch.autograd.graph.increment_version([owned[number] for number in self._changed])
        results = self._converted(self._run(addresses))
        for number, argument in self._form.changes.returned:
            results.insert(number, owned[argument])
        numbers = [number for number in self._changed if number < len(tensors)]
        return _with_given(results, given, tensors, numbers)

    def with_parts(self, function: PartedFunction) -> "TensorProgram":
        """Returns a program of the same module, with the same weights, that runs ``function``."""
        program = TensorProgram(function, self._form, self._weights)
        program.tuned = self.tuned
        return program

    def tensors_of(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        """Returns the tensors of a call in the order in which ``run`` takes them.

        Raises UsageError for arguments of another structure than the example's, and for another constant.
        """
        return self._form.tensors_of(arguments, keywords)

    def changed_tensors(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Tensors:
        """Returns the tensors that a call changes: arguments, then buffers; () for a program in parts.

        Raises UsageError as ``tensors_of``.
        """
        owned = (*self.tensors_of(arguments, keywords), *self._state)
        return tuple(owned[number] for number in self._changed)

    def stale(self) -> tuple[str, ...]:
        """Returns the names of the module's weights that were changed after the program was compiled.

        All weights are read, and compared by a hash of what they contain: whoever wrote them, a change is
        seen. That takes some 0.1 s for each GB.

        Returns:
            Names of parameters and buffers; () where none has changed, where the module does not exist any
            more or its weights were released, and for a program that ``tuner.torch.load`` read from a folder.
        """
        if self._weights is None:
            return ()
        return self._weights.changed()

    @property
    def changed_buffers(self) -> tuple[str, ...]:
        """Returns the names of the module's buffers that a call changes in place; () for parts."""
        return tuple(self._form.changes.buffers)

    def forget_weights(self) -> None:
        """Forgets the module's weights, which are released: none of them is stale."""
        self._weights = None

    @typed_arguments
    def export(self, folder: str | Path, weights_of: str | Path | None = None) -> None:
        """Writes the program into a folder, for ``tuner.load`` (arrays) and ``tuner.torch.load`` (tensors).

        Of a dynamic size, the programs of all sizes of its ladder are compiled and written.

        Args:
            folder: path of a folder that is new, or has an exported program.
            weights_of: folder of another exported program, whose file this one reads equal weights from, as
                the step of a language model from its prompt's; keep both folders at the same place from one
                another. None: all weights are written.

        Returns:
            None.

        Raises:
            UsageError: the folder has other files, or the program is not one of fusions, or
                takes or returns unsigned integers, which the folder's types cannot tell from signed ones;
                ``weights_of`` has no program of static sizes, or one that reads another's weights, or this
                program has a dynamic size.
            CandidateError: a program of a dynamic size cannot be compiled at another size of its range.
        """
        if not isinstance(self.function, FusedFunction) and self._save is None:
            raise UsageError(f"only a program of fusions is exported: {self.why_no_fusions}")
        if UNSIGNED & {*self._form.types, *self._form.result_types}:
            raise UsageError("a program of unsigned integers is not exported: its types are those of MLIR")
        if isinstance(self.function, FusedFunction):
            self.function.export(folder, weights_of)
        elif weights_of is not None:
            raise UsageError("weights_of: found a program of a dynamic size, allowed one of static sizes")
        elif self._save is not None:
            self._save(Path(folder))


def compiled(
    exported: ExportedModule,
    weights: ModuleWeights | None = None,
    *,
    db: str | Path | None = None,
    threads: int = 1,
) -> TensorProgram:
    """Compiles an exported module, whose ``weights`` are given to find later changes; returns the program.

    ``db``, ``threads``: as of ``tuner.torch.compile``. Raises ChangesTensorsError for a module that changes
    tensors and does not become fusions, UsageError and CandidateError for one that does not compile.
    """
    changed = exported.form.changes.texts
    require_changeable(exported)
    try:
        function: Any = compile_on_host(exported.payload, db=db, threads=threads)
    except UsageError as error:
        if changed:
            raise ChangesTensorsError(changed[0]) from error
        raise
    return TensorProgram(function, exported.form, weights, state=exported.state)


def require_changeable(exported: ExportedModule) -> None:
    """Raises ChangesTensorsError for a module whose changed buffers are not contiguous memory."""
    if not all(buffer.is_contiguous() for buffer in exported.state):
        raise ChangesTensorsError(exported.form.changes.texts[0])


def _with_given(
    results: Sequence[torch.Tensor], given: Tensors, used: Tensors, changed: Iterable[int]
) -> list[torch.Tensor]:
    """Returns the results; where a changed argument is a copy of the given tensor, changes that one, too."""
    results = list(results)
    for number in changed:
        copy = used[number]
        if given[number].data_ptr() != copy.data_ptr():
            with torch.no_grad():
                given[number].copy_(copy)
        results = [given[number] if result is copy else result for result in results]
    return results


def torch_type(element: str) -> torch.dtype:
    """Returns PyTorch's type of an MLIR element type: torch.float32 of "f32", signed torch.int8 of "i8"."""
    dtype: torch.dtype = getattr(torch, number_type(element).numpy_name.removesuffix("_"))
    return dtype


def _shapes_of(function: FusedFunction | HostFunction | PartedFunction) -> tuple[Shape, ...]:
    if isinstance(function, PartedFunction):
        return function.shapes
    types = function.code.arguments if isinstance(function, FusedFunction) else function.program.arguments
    return tuple(tuple(map(int, type_.shape)) for type_ in types)  # type: ignore[union-attr]


def _results_of(function: FusedFunction | HostFunction | PartedFunction) -> Sequence[Any]:
    """Returns the types of the arrays that a function returns; () for parts, which return tensors."""
    if isinstance(function, PartedFunction):
        return ()
    if isinstance(function, FusedFunction):
        return function.code.results
    return function.program.results


def array_of(tensor: torch.Tensor) -> Any:
    """Returns a numpy array that shares the memory of a CPU tensor; bf16 as ml_dtypes.bfloat16."""
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return tensor.detach().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.detach().numpy()


def conversion_of(element: str, dtype: torch.dtype | None = None) -> Callable[[Any], torch.Tensor]:
    """Returns a function that makes a tensor from an array of MLIR's type ``element``, with the same memory.

    ``dtype``: the tensor's type; None: that of ``torch_type``.
    """
    dtype = dtype or torch_type(element)
    if torch_type(element) is dtype and dtype not in NOT_OF_NUMPY:
        convert: Callable[[Any], torch.Tensor] = torch.from_numpy
        return convert
    bits = INTEGER_OF_BYTES[number_type(element).bytes]  # numpy's type differs, or has no counterpart
    return lambda array: torch.from_numpy(array.view(bits)).view(dtype)
