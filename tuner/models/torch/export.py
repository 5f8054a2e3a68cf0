"""Turns a PyTorch module into a payload: its graph by torch.export, lowered to linalg by torch-mlir.

``export_module`` takes the graph (``graph_export``), refuses operators that torch-mlir would compute
otherwise than PyTorch, imports it into torch-mlir's dialect, and lowers it, or takes the lowered text from
the cache of compiled files. Weights are constants of the payload, in their own memory.
"""

import contextlib
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree

from tuner.core.errors import UsageError
from tuner.mlir.ir.resources import Data, SplitPayload
from tuner.models.torch.bound_changes import BoundChanges, bind_changes
from tuner.models.torch.call_binding import signature_of
from tuner.models.torch.call_form import (
    CONSTANT,
    INPUT,
    CallForm,
    Output,
    is_argument,
    is_tensor,
    outputs_of,
    require_supported,
    tensor_and_constant_leaves,
)
from tuner.models.torch.composite_operators import composites, few_overrides
from tuner.models.torch.decompositions import decompositions
from tuner.models.torch.dynamic_sizes import shape_of
from tuner.models.torch.export_key import export_key
from tuner.models.torch.graph_corrections import (
    count_from_front,
    fill_empty,
    fit_numbers,
    fold_uniform,
    promote_unsigned,
    saturate_bytes,
)
from tuner.models.torch.graph_export import TRACING, exported_graph, unless_refused, without_collections
from tuner.models.torch.graph_outputs import (
    ChangesTensorsError,
    changed_text,
    drop_unchanged_buffers,
    is_change,
    is_overload,
    shared_memory,
)
from tuner.models.torch.guards import default_dtype, plain, require_modes, require_no_transforms
from tuner.models.torch.importer import bytes_of, import_program
from tuner.models.torch.lowering import lower_in_child, lower_in_process, require_none_of
from tuner.models.torch.packed_nibbles import UnpackedData, with_unpacked_weights
from tuner.models.torch.recurrences import why_no_recurrence
from tuner.models.torch.refusals import (
    OF_COMPLEX,
    RANDOM,
    STRIDES,
    WINDOWS,
    RefusedOperator,
    RefusedOperatorsError,
    place_of,
)
from tuner.models.torch.strided_views import why_written_wrongly
from tuner.runtime.compiled_files import compiled_files

WINDOW_WRITE = torch.ops.aten.unfold_backward.default  # what functionalization makes of a write
MOST_CODE_BYTES = 1 << 20  # of a tensor that the code of a module makes
STATIC = "the module has dynamic sizes: only static ones are supported"


@dataclass(frozen=True, eq=False)
class ExportedModule:
    """A module lowered to payload text, and how the module is called."""

    payload: SplitPayload  # whose data are the weights' own memory
    form: CallForm
    state: tuple[torch.Tensor, ...] = ()  # the module's buffers that a call changes

    @property
    def text(self) -> str:
        """Returns the payload as MLIR text, followed by the data of its constants."""
        return self.payload.joined


def export_module(
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...] = (),
    keywords: Mapping[str, Any] | None = None,
    lower: Callable[[str], str] = lower_in_child,
    on_new: Callable[[], object] = lambda: None,
    graph_key: str | None = None,
) -> ExportedModule:
    """Exports a module, or an exported program, and lowers it to linalg.

    ``lower`` takes a module in torch-mlir's dialect and returns linalg; by default in a child process.
    ``on_new`` is called if the lowered program is not in the cache of compiled files. ``graph_key``: the key,
    in that cache, of a module whose weights are its buffers: if the cache has it, nothing is traced. Raises
    UsageError for a module that torch.export or torch-mlir refuses, or whose results would differ from
    PyTorch's, and ChangesTensorsError for one that changes its buffers or inputs, and has operators that are
    not supported.
    """
    if graph_key is not None:
        kept: _KeptExport | None = compiled_files().read(graph_key)
        if kept is not None:
            require_modes(default_dtype())
            require_no_transforms()
            return kept.exported(dict(module.named_buffers()))
    program = exported_graph(module, arguments, keywords)
    held = {**program.state_dict, **program.constants}
    if isinstance(module, torch.nn.Module):
        held |= dict(module.named_buffers())
    with TRACING, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of torch and of torch-mlir, about their own code
        refused = _unlike_pytorch(program)
        program, packed = with_unpacked_weights(program)
        shared = shared_memory(program)
        is_usual = lower in (lower_in_child, lower_in_process)  # another lowering gives another text
        key = export_key(program) if is_usual else None
        is_kept = key is not None
        known: LoweredProgram | None = None if key is None or refused else compiled_files().read(key)
        if known is None:
            on_new()
            imported, weights = _imported(program, refused)
            is_kept = is_kept and imported.has_weights_of(program, weights)
        else:
            weights = known.weights_of(program)
    if known is None:
        with _changes_named(imported.changes.texts):
            known = replace(imported, text=lower(imported.text))
        if key is not None and is_kept:
            compiled_files().write(key, known)
    call = program.call_spec
    # a result that is a changed tensor itself is that tensor here, too
    returned = {number for number, _ in known.changes.returned}
    with_views = (text for number, text in enumerate(shared) if text and number not in returned)
    form = CallForm(
        in_spec=call.in_spec,
        out_spec=call.out_spec,
        inputs=known.inputs,
        outputs=known.outputs,
        types=known.types,
        result_types=known.result_types,
        constants=known.constants,
        shared=next(with_views, ""),
        signature=signature_of(module),
        changes=known.changes,
    )
    state = tuple(held[name].detach() for name in known.changes.buffers)
    if graph_key is not None and is_kept and not packed:
        kept = _KeptExport.of(known, form, weights, dict(module.named_buffers()))
        if kept is not None:
            compiled_files().write(graph_key, kept)
    resources: Mapping[str, Data] = UnpackedData(weights, packed) if packed else weights
    return ExportedModule(SplitPayload(known.text, resources), form, state)


@contextlib.contextmanager
def _changes_named(changed: Sequence[str]) -> Iterator[None]:
    """Context manager: raises ChangesTensorsError in place of RefusedOperatorsError if tensors are changed.

    ``changed``: names of the changed tensors, of which the error has the first; () changes nothing.
    """
    try:
        yield
    except RefusedOperatorsError as error:
        if changed:
            raise ChangesTensorsError(changed[0]) from error
        raise


@dataclass(frozen=True, eq=False)
class LoweredProgram:
    """A torch.export program lowered to MLIR text, with the data of all constants but weights.

    Cached in files by ``export_key``.
    """

    text: str  # names constants, whose data are not in it
    names: tuple[tuple[str, str], ...]  # of a constant in the text, and of the program's weight
    data: tuple[tuple[str, bytes], ...]  # of constants that are not weights
    inputs: tuple[int, ...]  # numbers of the leaves of the arguments that are tensors
    outputs: tuple[Output, ...]  # the leaves of what the module returns
    types: tuple[torch.dtype, ...]  # of the function's arguments
    result_types: tuple[torch.dtype, ...]  # of its results
    constants: tuple[tuple[int, object], ...]  # (number of a leaf of the arguments, value) of the others
    changes: BoundChanges

    def weights_of(self, program: torch.export.ExportedProgram) -> dict[str, Data]:
        """Returns the bytes of all constants by their names in the text, the weights from ``program``.

        Raises UsageError for a weight that has no dense memory.
        """
        return self.weights_in({**program.constants, **program.state_dict})

    def weights_in(self, weights: Mapping[str, Any]) -> dict[str, Data]:
        """Returns the bytes of all constants by their names in the text, of ``weights`` by name.

        Raises UsageError for a weight that has no dense memory.
        """
        data: dict[str, Data] = dict(self.data)
        for name, weight_name in self.names:
            data[name] = bytes_of(plain(weights[weight_name], weight_name).detach())
        return data

    def has_weights_of(self, program: torch.export.ExportedProgram, weights: Mapping[str, Data]) -> bool:
        """Returns whether the program may be cached: ``weights_of`` returns ``weights`` for equal programs.

        Decompositions may rename weights. Data of a constant that is not a weight of the program must be one
        of its ``constants``, whose contents are in the key. False for weights of booleans: torch-mlir
        converts these.
        """
        names = {*program.constants, *program.state_dict}
        constants = list(map(bytes_of, filter(torch.is_tensor, program.constants.values())))
        if any(weight.dtype is torch.bool for weight in program.state_dict.values()):
            return False
        if not all(map(partial(_is_among, constants), dict(self.data).values())):
            return False
        if not names.issuperset(dict(self.names).values()):
            return False
        return _are_all_equal(self.weights_of(program), weights)


@dataclass(frozen=True, eq=False)
class _KeptExport:
    """What a module was exported as, without its weights, which are its buffers.

    Cached in files by ``graph_key``.
    """

    program: LoweredProgram
    form: CallForm

    @classmethod
    def of(
        cls,
        program: LoweredProgram,
        form: CallForm,
        weights: Mapping[str, Data],
        buffers: Mapping[str, torch.Tensor],
    ) -> "_KeptExport | None":
        """Returns the value for a module with these ``buffers``; None where they are not all of its weights.

        ``weights``: the data of all constants by their names in the text. Small ones that are not buffers are
        the numbers that the graph's code has: they are kept, too.
        """
        is_flat = (form.in_spec, form.out_spec) == _flat_specs(form)
        if not is_flat or not buffers.keys() >= {*form.changes.buffers}:
            return None
        data = [*program.data]
        names = []
        for name, weight_name in program.names:
            if weight_name in buffers:
                names.append((name, weight_name))
            elif len(weights[name]) <= MOST_CODE_BYTES:
                data.append((name, bytes(weights[name])))
            else:
                return None
        kept = replace(program, names=tuple(names), data=tuple(data))
        if not _are_all_equal(kept.weights_in(buffers), weights):
            return None
        return cls(kept, replace(form, in_spec=None, out_spec=None))  # torch warns of those that were pickled

    def exported(self, buffers: Mapping[str, torch.Tensor]) -> ExportedModule:
        """Returns the module with the weights ``buffers``, by name."""
        with TRACING, torch.no_grad():
            weights = self.program.weights_in(buffers)
        changed = map(buffers.__getitem__, self.form.changes.buffers)
        state = tuple(map(torch.Tensor.detach, changed))
        in_spec, out_spec = _flat_specs(self.form)
        form = replace(self.form, in_spec=in_spec, out_spec=out_spec)
        return ExportedModule(SplitPayload(self.program.text, weights), form, state)


def _flat_specs(form: CallForm) -> tuple[_pytree.TreeSpec, _pytree.TreeSpec]:
    """Returns the structures of the arguments and of the results of a graph of Dynamo: a tuple of leaves."""
    arguments: Any = ((0,) * (len(form.inputs) + len(form.constants)), {})
    results = (0,) * len(form.outputs)
    return _pytree.tree_flatten(arguments)[1], _pytree.tree_flatten(results)[1]


def _is_among(known: Sequence[Data], data: Data) -> bool:
    return any(map(partial(_are_equal, data), known))


def _are_all_equal(own: Mapping[str, Data], others: Mapping[str, Data]) -> bool:
    """Returns whether constants of the same names have the same bytes."""
    return own.keys() == others.keys() and all(map(_are_equal, own.values(), map(others.__getitem__, own)))


def _are_equal(data: Data, other: Data) -> bool:
    """Returns whether two constants have the same bytes; they are not read if they are the same memory."""
    arrays = np.frombuffer(data, np.uint8), np.frombuffer(other, np.uint8)
    is_one = len({(array.ctypes.data, array.size) for array in arrays}) == 1
    return is_one or bool(np.array_equal(*arrays))


def _imported(
    program: torch.export.ExportedProgram, refused: tuple[RefusedOperator, ...]
) -> tuple[LoweredProgram, dict[str, Data]]:
    """Returns the program in torch-mlir's dialect, and the data of its constants.

    Raises UsageError where operators are ``refused`` already, or are by a check here.
    """
    fit_numbers(program.graph)
    # of the operations that torch-mlir lowers; changes of buffers are then results
    table = decompositions() | composites(program.graph)
    with _views_as_reshapes(program.graph), few_overrides(), without_collections():
        program = unless_refused(partial(program.run_decompositions, table), raised=UsageError)
    fill_empty(program.graph)
    fold_uniform(program.graph)
    count_from_front(program.graph)
    saturate_bytes(program)
    drop_unchanged_buffers(program)
    require_supported(program)
    require_static(program)
    changed = list(map(changed_text, filter(is_change, program.graph_signature.output_specs)))
    refused = (*refused, *_still_unlike_pytorch(program.graph), *promote_unsigned(program))
    with _changes_named(changed):
        require_none_of(refused, lambda: import_program(program).text)
    for weights in (program.state_dict, program.constants):
        for name, weight in weights.items():
            if isinstance(weight, torch.Tensor):
                weights[name] = plain(weight, name)
    inputs, constants = tensor_and_constant_leaves(program)
    outputs = outputs_of(program)
    _drop_constants(program)
    changes = bind_changes(program)
    types, result_types = _types(program)
    result_types = result_types[: len(result_types) - len(changes.new_values)]
    imported = import_program(program, changes.new_values)
    lowered = LoweredProgram(
        imported.text,  # in torch-mlir's dialect
        tuple((name, weight.name) for name, weight in imported.weights.items() if weight.name),
        tuple((name, bytes(weight.data)) for name, weight in imported.weights.items() if not weight.name),
        inputs,
        outputs,
        types,
        result_types,
        constants,
        changes,
    )
    return lowered, {name: weight.data for name, weight in imported.weights.items()}


@contextlib.contextmanager
def _views_as_reshapes(graph: torch.fx.Graph) -> Iterator[None]:
    """Context manager: views are reshapes, which copy where a decomposition changed their input's strides.

    torch.export drops ``contiguous()`` after an attention, whose result has the strides of PyTorch's kernel.
    Where something is written in place, views stay: a copy would not be written.
    """
    nodes = list(filter(is_overload, graph.nodes))
    is_pure = not any(node.target._schema.is_mutable for node in nodes)  # noqa: SLF001
    views = [node for node in nodes if is_pure and node.target is torch.ops.aten.view.default]
    for node in views:
        node.target = torch.ops.aten.reshape.default
    try:
        yield
    finally:
        for node in views:
            node.target = torch.ops.aten.view.default


def _types(program: torch.export.ExportedProgram) -> tuple[tuple[torch.dtype, ...], tuple[torch.dtype, ...]]:
    """Returns the element types of the tensors that a graph takes and returns: (arguments, results).

    Raises UsageError for a complex result.
    """
    named = {node.name: node.meta["val"].dtype for node in program.graph.nodes if node.op == "placeholder"}
    inputs = (spec.arg.name for spec in filter(is_argument, program.graph_signature.input_specs))
    results = tuple(node.meta["val"].dtype for node in program.graph.output_node().args[0])
    if any(result.is_complex for result in results):
        raise UsageError("a result of complex numbers is not supported")
    return tuple(named[name] for name in inputs), results


def _drop_constants(program: torch.export.ExportedProgram) -> None:
    """Removes arguments and results that are not tensors from a graph and its signature, in place.

    Raises UsageError for an argument that is not a constant of the graph, such as a dynamic size.
    """
    signature = program.graph_signature
    graph = program.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for node, spec in zip(placeholders, tuple(signature.input_specs), strict=True):
        if not is_tensor(spec) and spec.kind.name == INPUT:
            if node.users or type(spec.arg).__name__ != CONSTANT:
                raise UsageError(STATIC)
            graph.erase_node(node)
            signature.input_specs.remove(spec)
    end = graph.output_node()
    specs = signature.output_specs
    kept = zip(end.args[0], tuple(specs), strict=True)
    end.args = (tuple(result for result, spec in kept if is_tensor(spec)),)
    specs[:] = list(filter(is_tensor, specs))


def require_static(program: torch.export.ExportedProgram) -> None:
    """Raises UsageError if a size of an argument, or of an operator's result, is not static."""
    nodes = [node for node in program.graph.nodes if not _is_static(node)]
    causes = [node for node in nodes if all(map(_is_static, node.all_input_nodes))]
    operators = dict.fromkeys(place_of(node) for node in causes if node.op == "call_function")
    if any(node.op == "placeholder" for node in causes):
        raise UsageError(STATIC)
    if operators:
        raise UsageError(f"{STATIC}; the numbers of a tensor decide sizes at {'; '.join(operators)}")


def _is_static(node: torch.fx.Node) -> bool:
    return not any(None in shape_of(leaf) for leaf in _pytree.tree_leaves(node.meta.get("val")))


def require_right_writes(graph: torch.fx.Graph) -> None:
    """Raises RefusedOperatorsError for writes into views that a functional graph would compute wrongly."""
    for node in graph.nodes:
        reason = why_written_wrongly(node)
        if reason:
            raise RefusedOperatorsError((RefusedOperator(place_of(node), reason),))


def _unlike_pytorch(program: torch.export.ExportedProgram) -> tuple[RefusedOperator, ...]:
    """Returns the operators, also in nested graphs, that torch-mlir would compute otherwise than PyTorch.

    Checked before operators are decomposed.
    """
    # nested graphs are such as those under autocast
    graphs = [module for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    calls = [node for graph in graphs for node in graph.graph.nodes if node.op == "call_function"]
    reasons = [(node, _why_unlike_pytorch(node)) for node in calls]
    return tuple(RefusedOperator(place_of(node), reason) for node, reason in reasons if reason)


def _why_unlike_pytorch(node: torch.fx.Node) -> str:
    """Returns why torch-mlir would compute an operator otherwise than PyTorch; "" where it would not."""
    if node.target is torch.ops.aten.as_strided.default:
        return STRIDES
    written_wrongly = why_written_wrongly(node)
    if written_wrongly:
        return written_wrongly
    if "upsample_bi" in str(node.target) and not node.meta["val"].is_floating_point():
        return "of uint8: PyTorch computes in fixed point"
    schema = node.target._schema.arguments if is_overload(node) else ()  # noqa: SLF001
    names = [argument.name for argument in schema]
    arguments = dict(zip(names, node.args, strict=False)) | node.kwargs
    if arguments.get("train") is True and arguments.get("dropout"):  # of a recurrent network
        return RANDOM
    if arguments.get("per_sample_weights") is not None:  # dropped by torch-mlir, without a word
        return "with per_sample_weights"
    return ""


def _still_unlike_pytorch(graph: torch.fx.Graph) -> tuple[RefusedOperator, ...]:
    """Returns the operators that torch-mlir would compute otherwise than PyTorch, after decompositions."""
    calls = [node for node in graph.nodes if node.op == "call_function"]
    reasons = [(node, _why_still_unlike_pytorch(node)) for node in calls]
    return tuple(RefusedOperator(place_of(node), reason) for node, reason in reasons if reason)


def _why_still_unlike_pytorch(node: torch.fx.Node) -> str:
    if any(isinstance(argument, complex) for argument in node.args):  # torch-mlir cannot import the number
        return OF_COMPLEX
    if node.target is WINDOW_WRITE:
        return WINDOWS
    why_no_layer = why_no_recurrence(node)
    if why_no_layer:
        return why_no_layer
    # torch-mlir's generator is not PyTorch's, nor are its seeds
    if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
        return RANDOM
    # torch-mlir gives -1 for a NaN, PyTorch the index of the NaN
    if "max_pool" in str(node.target) and any(map(_is_second_result, node.users)):
        return "its indices, of NaN, would be wrong"
    if node.target is torch.ops.aten.linspace.default and not node.meta["val"].is_floating_point():
        return "of integers: its steps would be rounded otherwise"
    if node.target is torch.ops.aten.constant_pad_nd.default and min(node.args[1], default=0) < 0:
        return "it cuts more than the elements of a dimension"
    return ""


def _is_second_result(node: torch.fx.Node) -> bool:
    return node.target is operator.getitem and node.args[1] == 1
