"""Turns a PyTorch module into a payload, weights as constants, by torch.export and torch-mlir."""

import contextlib
import gc
import inspect
import logging
import operator
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import filterfalse
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch._dynamo.convert_frame import compile_lock
from torch._dynamo.exc import UserError, UserErrorType
from torch._guards import tracing
from torch.utils import _pytree

from tuner.core.errors import UsageError
from tuner.mlir.ir.resources import Data, SplitPayload
from tuner.mlir.torch_dialect import first_line
from tuner.runtime.compiled_files import compiled_files
from tuner.runtime.process_state import free_in_forks
from tuner.torch.call_binding import CallBinding, require_constant, signature_of
from tuner.torch.composite_operators import composites, few_overrides
from tuner.torch.decompositions import decompositions
from tuner.torch.dynamic_sizes import shape_of
from tuner.torch.export_key import export_key
from tuner.torch.graph_corrections import (
    count_from_front,
    fill_empty,
    fit_numbers,
    fold_uniform,
    promote_unsigned,
    saturate_bytes,
)
from tuner.torch.graph_outputs import (
    ChangesTensorsError,
    drop_unchanged_buffers,
    is_change,
    is_overload,
    is_result,
    require_shapes_kept,
    shared_memory,
)
from tuner.torch.guards import default_dtype, plain, require_modes, require_no_transforms
from tuner.torch.importer import bytes_of, import_program
from tuner.torch.lowering import lower_in_child, lower_in_process, require_none_of
from tuner.torch.packed_nibbles import with_unpacked_weights
from tuner.torch.refusals import (
    RANDOM,
    STRIDES,
    WINDOWS,
    RefusedOperator,
    RefusedOperatorsError,
    line_in,
    line_of,
    place_of,
)
from tuner.torch.strided_views import replace_strided, why_written_wrongly
from tuner.torch.traced_numbers import EXTREMUM, has_extremum_of_types, texts_as_constants

# classes of values in torch.export's signatures
TENSOR = "TensorArgument"
CONSTANT = "ConstantArgument"
# process-wide on purpose: torch.export keeps what it traces in variables of its modules, and torch.compile
# holds this lock when it calls the backend
TRACING = free_in_forks(compile_lock)
INPUT = "USER_INPUT"  # the kind of an argument there: others are weights
LOGS = ("torch._guards", "torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes")
OPERATOR_OF_SIZES = re.compile(r"Operator '<(?:built-in )?function (\w+)\b.*is not an allowed operator type")
# of torch's reasons for which a size is not dynamic
CONSTANT_SIZE = re.compile(
    r"You marked (?P<size>\S+) as dynamic but your code specialized it to be a constant"
)
GUARD_OF_SIZE = re.compile(
    r"values of (?P<size>\S+) = (?P<source>\S+) in the specified range .* satisfy the generated guard "
    r"(?P<condition>.+?)\.?(?:$|Specializations unexpectedly)"
)
WINDOW_WRITE = torch.ops.aten.unfold_backward.default  # what functionalization makes of a write
STATIC = "the module has dynamic sizes: only static ones are supported"


@dataclass(frozen=True, eq=False, kw_only=True)
class CallForm:
    """How a module is called: pytree specs of its arguments and of what it returns, and types of tensors."""

    in_spec: Any  # of (arguments, keyword arguments)
    out_spec: Any
    inputs: tuple[int, ...]  # which leaves of the arguments are the function's; others are constants
    outputs: tuple["Output", ...]
    types: tuple[torch.dtype, ...]  # of the function's arguments: MLIR's have no sign
    result_types: tuple[torch.dtype, ...]  # of its results
    constants: tuple[tuple[int, object], ...] = ()  # leaves of the arguments that are not tensors
    shared: str = ""  # which result shares memory with an input, a weight or a result, in eager mode
    signature: inspect.Signature | None = None  # of the module's ``forward``, None where that is not known

    @property
    def names(self) -> tuple[str, ...]:
        """Returns a name per argument of the payload's function, for messages: "argument 0"."""
        return tuple(f"argument {at}" for at in self.inputs)

    def tensors_of(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        """Returns the tensors of a call, in the order in which the payload's function takes them.

        Raises UsageError for arguments of another structure than the example's, and for a constant that
        differs.
        """
        leaves = CallBinding(self.in_spec, self.signature).leaves_of(arguments, keywords)
        for at, constant in self.constants:
            require_constant(f"argument {at}", leaves[at], constant)
        return tuple(leaves[at] for at in self.inputs)


@dataclass(frozen=True, eq=False)
class ExportedModule:
    """A module lowered to payload text, and how it is called."""

    payload: SplitPayload  # whose data are the weights' own memory
    form: CallForm

    @property
    def text(self) -> str:
        """Returns the payload as MLIR text, followed by the data of its constants."""
        return self.payload.joined


@dataclass(frozen=True, eq=False)
class Output:
    """A leaf of what a module returns: result number ``result``, or ``constant`` where ``result`` is None."""

    result: int | None
    constant: object = None


def export_module(
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...] = (),
    keywords: Mapping[str, Any] | None = None,
    lower: Callable[[str], str] = lower_in_child,
    on_new: Callable[[], object] = lambda: None,
) -> ExportedModule:
    """Exports a module, or an exported program, and lowers it to linalg.

    ``lower`` takes a module in torch-mlir's dialect and returns linalg; by default in a child process.
    ``on_new`` is called if the lowered program is not in the cache of compiled files. Raises UsageError for a
    module that torch.export or torch-mlir refuses, or whose results would differ from PyTorch's, and
    ChangesTensorsError for one that changes its buffers or inputs.
    """
    program = exported_graph(module, arguments, keywords)
    with TRACING, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of torch and of torch-mlir, about their own code
        refused = _unlike_pytorch(program)
        program = with_unpacked_weights(program)
        shared = shared_memory(program)
        is_usual = lower in (lower_in_child, lower_in_process)  # another lowering gives another text
        key = export_key(program) if is_usual else None
        known: LoweredProgram | None = None if key is None or refused else compiled_files().read(key)
        if known is None:
            on_new()
            imported, weights = _imported(program, refused)
            is_kept = key is not None and imported.has_weights_of(program, weights)
        else:
            weights = known.weights_of(program)
    if known is None:
        known = replace(imported, text=lower(imported.text))
        if key is not None and is_kept:
            compiled_files().write(key, known)
    call = program.call_spec
    form = CallForm(
        in_spec=call.in_spec,
        out_spec=call.out_spec,
        inputs=known.inputs,
        outputs=known.outputs,
        types=known.types,
        result_types=known.result_types,
        constants=known.constants,
        shared=shared,
        signature=signature_of(module),
    )
    return ExportedModule(SplitPayload(known.text, weights), form)


def call_form(
    module: torch.nn.Module | torch.export.ExportedProgram, program: torch.export.ExportedProgram
) -> CallForm:
    """Returns how a module is called whose graph is ``program``; nothing is lowered.

    Raises UsageError for a module that changes its parameters, or returns nothing that it computes.
    """
    _require_supported(program)
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    signature = program.graph_signature
    inputs, constants = _leaves(program)
    arguments = filter(_is_argument, filter(_is_tensor, signature.input_specs))
    results = filter(_is_tensor, filter(is_result, signature.output_specs))
    return CallForm(
        in_spec=program.call_spec.in_spec,
        out_spec=program.call_spec.out_spec,
        inputs=inputs,
        outputs=_outputs(program, has_numbers=True),
        types=tuple(values[spec.arg.name].dtype for spec in arguments),
        result_types=tuple(values[spec.arg.name].dtype for spec in results),
        constants=constants,
        shared=shared_memory(program),
        signature=signature_of(module),
    )


def _leaves(program: torch.export.ExportedProgram) -> tuple[tuple[int, ...], tuple[tuple[int, object], ...]]:
    """Returns numbers of the leaves of the arguments that are tensors, and the others with their values."""
    inputs = []
    constants = []
    for at, spec in enumerate(filter(_is_argument, program.graph_signature.input_specs)):
        if _is_tensor(spec):
            inputs.append(at)
        else:
            constants.append((at, spec.arg.value))
    return tuple(inputs), tuple(constants)


def _is_argument(spec: Any) -> bool:
    return bool(spec.kind.name == INPUT)


@dataclass(frozen=True, eq=False)
class LoweredProgram:
    """A torch.export program lowered to MLIR text, with the data of all constants but weights.

    Cached in files by ``export_key``.
    """

    text: str  # names constants, whose data are not in it
    names: tuple[tuple[str, str], ...]  # of a constant in the text, and of the program's weight
    data: tuple[tuple[str, bytes], ...]  # of constants that are not weights
    inputs: tuple[int, ...]  # numbers of the leaves of the arguments that are tensors
    outputs: tuple["Output", ...]  # the leaves of what the module returns
    types: tuple[torch.dtype, ...]  # of the function's arguments
    result_types: tuple[torch.dtype, ...]  # of its results
    constants: tuple[tuple[int, object], ...]  # (number of a leaf of the arguments, value) of the others

    def weights_of(self, program: torch.export.ExportedProgram) -> dict[str, Data]:
        """Returns the bytes of all constants by their names in the text, the weights from ``program``.

        Raises UsageError for a weight that has no dense memory.
        """
        weights = {**program.constants, **program.state_dict}
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
        own = self.weights_of(program)
        others = map(dict(weights).__getitem__, own)
        return own.keys() == weights.keys() and all(map(_are_equal, own.values(), others))


def _is_among(known: Sequence[Data], data: Data) -> bool:
    return any(map(partial(_are_equal, data), known))


def _are_equal(data: Data, other: Data) -> bool:
    """Returns whether two constants have the same bytes; those of one memory are not read."""
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
    with _views_as_reshapes(program.graph), few_overrides():
        program = _unless_refused(partial(program.run_decompositions, table), raised=UsageError)
    fill_empty(program.graph)
    fold_uniform(program.graph)
    count_from_front(program.graph)
    saturate_bytes(program)
    drop_unchanged_buffers(program)
    _require_pure(program)
    refused = (*refused, *_still_unlike_pytorch(program.graph), *promote_unsigned(program))
    require_none_of(refused, lambda: import_program(program).text)
    for weights in (program.state_dict, program.constants):
        for name, weight in weights.items():
            if isinstance(weight, torch.Tensor):
                weights[name] = plain(weight, name)
    inputs, constants = _leaves(program)
    outputs = _outputs(program)
    _drop_constants(program)
    types, result_types = _types(program)
    imported = import_program(program)
    lowered = LoweredProgram(
        imported.text,  # in torch-mlir's dialect
        tuple((name, weight.name) for name, weight in imported.weights.items() if weight.name),
        tuple((name, bytes(weight.data)) for name, weight in imported.weights.items() if not weight.name),
        inputs,
        outputs,
        types,
        result_types,
        constants,
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


def exported_graph(
    module: torch.nn.Module | torch.export.ExportedProgram,
    arguments: tuple[Any, ...] = (),
    keywords: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    *,
    reads_code: bool = False,
) -> torch.export.ExportedProgram:
    """Returns the graph of a module by ``torch.export``; an exported program is returned as it is.

    ``dynamic_shapes``: as of ``torch.export.export``. ``reads_code``: whether the module's byte code is
    followed where that is possible, as by torch.compile: a size is an ``int`` there, and ``len`` does not
    make it a constant. Raises UsageError for a module that torch.export refuses, inside of a transform of
    torch.func, under autocast and other modes, and for arguments that are not a tuple of dense CPU tensors
    and constants.
    """
    require_modes(default_dtype())
    require_no_transforms()
    if isinstance(module, torch.export.ExportedProgram):
        return module
    with TRACING, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        own = _own_tensors(arguments, keywords or {})
        export = partial(torch.export.export, module, *own, dynamic_shapes=dynamic_shapes)
        # a graph of torch.compile that is compiled has guards of its own, which an export would add to
        with _without_collections(), _without_messages(), texts_as_constants(), tracing(None):
            traced = partial(_traced, export, reads_code, require_shapes_kept(module))
            program = _unless_refused(traced, raised=UsageError)
        if has_extremum_of_types(program.graph):
            raise UsageError(f"torch.export refuses the module: {EXTREMUM}", "x.float() * max(n, 2.5)")
        replace_strided(program.graph_module)
    return program


def _traced(
    export: Callable[..., torch.export.ExportedProgram],
    reads_code: bool,
    checked_calls: contextlib.AbstractContextManager[None],
) -> torch.export.ExportedProgram:
    """Exports by the module's byte code, where that is asked for and possible, else by calling the module.

    ``checked_calls`` is entered where the module is called. Raises UsageError where a size decides what the
    module computes, and what the export raises.
    """
    line = ""
    if reads_code:
        try:
            return export(strict=True)
        except Exception as error:  # noqa: BLE001 - torch raises many kinds for code that it cannot follow
            line = line_in(str(error))
    try:
        with checked_calls:
            return export(strict=False)
    except UserError as error:
        if error.error_type is not UserErrorType.CONSTRAINT_VIOLATION:
            raise
        raise _size_decides(error, line) from error


def _size_decides(error: UserError, line: str) -> UsageError:
    """Returns the error for a size on which a module's code depends; torch's has several lines."""
    reasons = []
    for text in str(error).splitlines():
        constant = CONSTANT_SIZE.search(text)
        guard = GUARD_OF_SIZE.search(text)
        if constant:
            reasons.append(f"its code makes a constant of the size {constant['size']}")
        elif guard:
            condition = guard["condition"].replace(guard["source"], guard["size"])
            reasons.append(f"its code decides by the size {guard['size']}: {condition}")
    suffix = f", at {line}" if line else ""
    return UsageError(
        f"torch.export refuses the module: {'; '.join(reasons) or first_line(error)}{suffix}",
        'torch.compile(module, backend="tuner") compiles one program for each case',
    )


@contextlib.contextmanager
def _without_messages() -> Iterator[None]:
    """Context manager: torch does not log what it cannot export, with stack traces; it raises that, too."""
    logs = list(filterfalse(attrgetter("disabled"), map(logging.getLogger, LOGS)))
    for log in logs:
        log.disabled = True
    try:
        yield
    finally:
        for log in logs:
            log.disabled = False


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Context manager: no garbage is collected, which takes a tenth to a fifth of the time of an export."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _own_tensors(
    arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns copies, as torch.export merges shared memory. Raises UsageError for unsupported arguments."""
    if not isinstance(arguments, tuple):
        raise UsageError(f"arguments: found {type(arguments).__name__}, allowed a tuple: (x,) of one tensor")
    leaves, spec = _pytree.tree_flatten((arguments, dict(keywords)))
    own = []
    for at, leaf in enumerate(leaves):
        own.append(plain(leaf, f"argument {at}").clone() if isinstance(leaf, torch.Tensor) else leaf)
    copied: tuple[tuple[Any, ...], dict[str, Any]] = _pytree.tree_unflatten(own, spec)
    return copied


def _unless_refused(
    export: Callable[[], torch.export.ExportedProgram], raised: type[Exception] | tuple[()] = ()
) -> torch.export.ExportedProgram:
    try:
        return export()
    except raised:
        raise
    except Exception as error:  # torch raises errors of many kinds for modules that it refuses
        line = line_of(error)
        suffix = f", at {line}" if line else ""
        reason = first_line(error)
        of_size = OPERATOR_OF_SIZES.search(reason)
        if of_size:
            reason = f"it has no operator {of_size[1]} of sizes"
        raise UsageError(f"torch.export refuses the module: {reason}{suffix}") from error


def _unlike_pytorch(program: torch.export.ExportedProgram) -> tuple[RefusedOperator, ...]:
    """Returns the operators, also in nested graphs, that torch-mlir would compute otherwise than PyTorch."""
    # nested graphs are such as those under autocast
    graphs = [module for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    calls = [node for graph in graphs for node in graph.graph.nodes if node.op == "call_function"]
    reasons = [(node, _why_unlike_pytorch(node)) for node in calls]
    return tuple(RefusedOperator(place_of(node), reason) for node, reason in reasons if reason)


def _why_unlike_pytorch(node: torch.fx.Node) -> str:
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
    """Returns the operators left by decompositions that torch-mlir would compute otherwise than PyTorch."""
    calls = [node for node in graph.nodes if node.op == "call_function"]
    reasons = [(node, _why_still_unlike_pytorch(node)) for node in calls]
    return tuple(RefusedOperator(place_of(node), reason) for node, reason in reasons if reason)


def require_right_writes(graph: torch.fx.Graph) -> None:
    """Raises RefusedOperatorsError where a graph writes into views as no functional graph would."""
    for node in graph.nodes:
        reason = why_written_wrongly(node)
        if reason:
            raise RefusedOperatorsError((RefusedOperator(place_of(node), reason),))


def _why_still_unlike_pytorch(node: torch.fx.Node) -> str:
    if node.target is WINDOW_WRITE:
        return WINDOWS
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


def _drop_constants(program: torch.export.ExportedProgram) -> None:
    signature = program.graph_signature
    graph = program.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for node, spec in zip(placeholders, tuple(signature.input_specs), strict=True):
        if not _is_tensor(spec) and spec.kind.name == INPUT:
            if node.users or type(spec.arg).__name__ != CONSTANT:
                raise UsageError(STATIC)
            graph.erase_node(node)
            signature.input_specs.remove(spec)
    end = graph.output_node()
    specs = signature.output_specs
    kept = zip(end.args[0], tuple(specs), strict=True)
    end.args = (tuple(result for result, spec in kept if _is_tensor(spec)),)
    specs[:] = list(filter(_is_tensor, specs))


def _types(program: torch.export.ExportedProgram) -> tuple[tuple[torch.dtype, ...], tuple[torch.dtype, ...]]:
    named = {node.name: node.meta["val"].dtype for node in program.graph.nodes if node.op == "placeholder"}
    inputs = (spec.arg.name for spec in filter(_is_argument, program.graph_signature.input_specs))
    results = tuple(node.meta["val"].dtype for node in program.graph.output_node().args[0])
    if any(result.is_complex for result in results):
        raise UsageError("a result of complex numbers is not supported")
    return tuple(named[name] for name in inputs), results


def _require_pure(program: torch.export.ExportedProgram) -> None:
    """Raises UsageError for a graph that changes tensors (ChangesTensorsError), or has dynamic sizes."""
    if any(map(is_change, program.graph_signature.output_specs)):
        raise ChangesTensorsError(program)
    _require_supported(program)
    require_static(program)


def _require_supported(program: torch.export.ExportedProgram) -> None:
    """Raises UsageError for a graph that changes parameters or constants."""
    for spec in program.graph_signature.output_specs:
        if not is_result(spec) and not is_change(spec):
            owner = spec.kind.name.partition("_")[0].lower()
            raise UsageError(
                f"the module changes its {owner} {spec.target or spec.arg.name}: only buffers may be changed",
                "return the new value",
            )


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


def _is_tensor(spec: Any) -> bool:
    return type(spec.arg).__name__ == TENSOR


def _outputs(program: torch.export.ExportedProgram, *, has_numbers: bool = False) -> tuple[Output, ...]:
    """Returns what each leaf of a module's results is; ``has_numbers``: whether some are computed numbers."""
    outputs: list[Output] = []
    number = 0
    for spec in filter(is_result, program.graph_signature.output_specs):
        if type(spec.arg).__name__ == CONSTANT:
            outputs.append(Output(None, spec.arg.value))
        elif has_numbers or _is_tensor(spec):
            outputs.append(Output(number))
            number += 1
        else:
            raise UsageError("the module returns a number that it computes: only tensors are supported")
    if not number:
        raise UsageError("the module returns no tensor")
    return tuple(outputs)


def rebuilt(leaves: list[Any], spec: _pytree.TreeSpec) -> Any:
    """Returns ``leaves`` in the tuples, lists and dicts that the pytree ``spec`` describes."""
    return _pytree.tree_unflatten(leaves, spec)
