"""The graph of a module by torch.export, and one-line errors for modules that torch.export refuses.

``exported_graph`` copies the example's tensors, traces the module without logs and garbage collections, and
turns torch's errors into UsageError.
"""

import contextlib
import gc
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import filterfalse
from operator import attrgetter
from typing import Any

import torch
from torch._dynamo.convert_frame import compile_lock
from torch._dynamo.exc import UserError, UserErrorType
from torch._guards import tracing
from torch.utils import _pytree

from tuner.core.errors import UsageError
from tuner.models.mlir.torch_dialect import first_line
from tuner.models.torch.bound_changes import read_buffers_as_such
from tuner.models.torch.graph_outputs import assigned_buffers_written, require_shapes_kept
from tuner.models.torch.guards import default_dtype, plain, require_modes, require_no_transforms
from tuner.models.torch.recurrences import keeping_lengths
from tuner.models.torch.refusals import line_in, line_of
from tuner.models.torch.strided_views import replace_strided
from tuner.models.torch.traced_numbers import EXTREMUM, has_extremum_of_types, texts_as_constants
from tuner.runtime.process_state import free_in_forks

# process-wide on purpose: torch.export keeps what it traces in variables of its modules, and torch.compile
# holds this lock when it calls the backend
TRACING = free_in_forks(compile_lock)
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
        with (
            _numbers_kept(module),
            without_collections(),
            _without_messages(),
            texts_as_constants(),
            keeping_lengths(),
            tracing(None),
        ):
            traced = partial(_traced, export, reads_code, _checked_calls(module))
            program = unless_refused(traced, raised=UsageError)
        read_buffers_as_such(program, dict(module.named_buffers()))
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


@contextlib.contextmanager
def _checked_calls(module: torch.nn.Module) -> Iterator[None]:
    with require_shapes_kept(module), assigned_buffers_written(module):
        yield


def _size_decides(error: UserError, line: str) -> UsageError:
    """Returns the one-line error for a module whose code depends on a size; torch's error has several lines.

    ``line``: "file:line" of the code that decides; "" where it is not known.
    """
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
def _numbers_kept(module: torch.nn.Module) -> Iterator[None]:
    """Context manager: the module's buffers of one number are at the end what they were.

    torch.export computes with such a tensor where the module reaches it by another object.
    """
    kept = [(buffer, buffer.clone()) for buffer in module.buffers() if buffer.numel() == 1]
    try:
        yield
    finally:
        for buffer, before in kept:
            if not torch.equal(buffer, before):
                buffer.copy_(before)


def _own_tensors(
    arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns copies of an example's arguments, since torch.export merges tensors of shared memory.

    Raises UsageError for arguments that are not a tuple, and for tensors that are not dense CPU tensors.
    """
    if not isinstance(arguments, tuple):
        raise UsageError(f"arguments: found {type(arguments).__name__}, allowed a tuple: (x,) of one tensor")
    leaves, spec = _pytree.tree_flatten((arguments, dict(keywords)))
    own = []
    for at, leaf in enumerate(leaves):
        own.append(plain(leaf, f"argument {at}").clone() if isinstance(leaf, torch.Tensor) else leaf)
    copied: tuple[tuple[Any, ...], dict[str, Any]] = _pytree.tree_unflatten(own, spec)
    return copied


def unless_refused(
    export: Callable[[], torch.export.ExportedProgram], raised: type[Exception] | tuple[()] = ()
) -> torch.export.ExportedProgram:
    """Returns ``export()``; raises UsageError with torch's reason and line of code where it raises an error.

    Errors of the classes ``raised`` are raised as they are.
    """
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
def without_collections() -> Iterator[None]:
    """Context manager: no garbage is collected, which takes a tenth to a fifth of the time of an export."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
