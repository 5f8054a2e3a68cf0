"""Programs that are PyTorch models: their MLIR text, and the baselines that a tuned model is timed next to.

A model is ``model.pt2``, or ``model.py:function``, whose function returns a module and its example inputs:
``return module, (x,)``. That is the user's own code, so it runs in a child process.
"""

import importlib.util
import math
import os
import sys
import time
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tuner.cli.options import MODEL_FUNCTION
from tuner.core.errors import Stage, TunerError, UsageError, failing_at, nearest
from tuner.core.programs import EAGER, NO_TIME_LEFT, ProgramBaseline
from tuner.core.text_files import unreadable
from tuner.mlir.ir.resources import ConstantsFile, joined_payload, write_constants
from tuner.models.request import ProgramRequest
from tuner.runtime.workers.worker import call_in_child

if TYPE_CHECKING:
    import torch


BASELINES_TIMEOUT_S = 900.0  # compiling a large model by inductor three times takes minutes
LATE_BASELINE_S = 60.0  # of one that was begun in time
EXPORT_TIMEOUT_S = 600.0
_FILES: list[ConstantsFile] = []  # process-wide on purpose: a command reads a model, and sends it to children
NO_TORCH = "pip install 'torch>=2.6'"


def baselines(request: ProgramRequest) -> tuple[ProgramBaseline, ...]:
    """Returns the baselines of ``request.model``, timed in a child process next to the model's tuned program.

    Where the child fails, or takes longer than ``request.baselines_s`` by a minute, each baseline of the
    request has the failure as ``reason`` in place of times.
    """
    limit_s = BASELINES_TIMEOUT_S
    if request.baselines_s is not None:
        if request.baselines_s <= 0:
            return tuple(ProgramBaseline(name, reason=NO_TIME_LEFT) for name in request.baselines)
        limit_s = min(limit_s, request.baselines_s + LATE_BASELINE_S)
    try:
        return call_in_child("baselines", partial(model_baselines, request), limit_s, _memory_bytes())
    except TunerError as error:
        return tuple(ProgramBaseline(name, reason=error.message) for name in request.baselines)


def model_baselines(request: ProgramRequest) -> tuple[ProgramBaseline, ...]:
    """Returns the baselines of ``request.model``, timed in this process next to the model's tuned program.

    The program has the schedules of ``request.database``. If eager mode is a baseline, the result ends with
    one baseline per region of the program that takes at least a tenth of its time and is slower than its
    operators in eager mode.
    """
    from tuner.models.torch.baselines import example_of, timed_baselines  # not at start-up
    from tuner.models.torch.eager_parts import compared_with_eager  # not at start-up
    from tuner.models.torch.export import export_module  # not at start-up
    from tuner.models.torch.program import compiled  # not at start-up

    began_s = time.monotonic()
    with failing_at(Stage.BIND):
        module, arguments = read_model(request.model)
        exported = export_module(module, arguments)
        threads = request.options.threads
        program = compiled(exported, db=request.database, threads=threads)
    example = example_of(module, arguments, {})
    ends_s = math.inf
    if request.baselines_s is not None:
        ends_s = began_s + request.baselines_s
    left_s = ends_s - time.monotonic()
    changed = program.changed_tensors(example.arguments, example.keywords)
    timed = timed_baselines(program, example, request.baselines, threads, left_s=left_s, changed=changed)
    is_compared = EAGER in request.baselines and not program.is_changing
    if not is_compared or time.monotonic() > ends_s:
        return timed
    return (*timed, *compared_with_eager(module, example, program).baselines)


def text(name: str) -> str:
    """Returns the MLIR text of a model's program, exported in a child process.

    The data of its constants are in a file, which lasts as long as this process. Raises UsageError for a
    model that cannot be read or exported, and where PyTorch is not installed; TunerError where the child
    process crashes or takes more than 600 s.
    """
    require_readable(name)
    file = ConstantsFile()
    _FILES.append(file)
    return call_in_child("model", partial(_bound_text, name, file.path), EXPORT_TIMEOUT_S, _memory_bytes())


def _memory_bytes() -> int:
    """Returns the limit of a child that reads a model, whose weights may be of any size: all memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _bound_text(name: str, path: str) -> str:
    with failing_at(Stage.BIND):  # of which ``call_in_child`` makes a UsageError again
        return model_text(name, path)


def model_text(name: str, path: str) -> str:
    """Returns the MLIR text of a model's program, exported in this process.

    ``path``: of a ``ConstantsFile``, into which the data of its constants are written. Raises UsageError for
    a model that cannot be read or exported, and where PyTorch is not installed.
    """
    from tuner.models.torch.export import export_module  # not at start-up
    from tuner.models.torch.lowering import lower_in_process  # not at start-up

    payload = export_module(*read_model(name), lower=lower_in_process).payload
    if not payload.resources:
        return payload.text
    return joined_payload(payload.text, write_constants(path, payload.text, payload.resources))


def require_readable(name: str) -> Path:
    """Returns the file in a model's name ("m.pt2", "m.py:f"). Raises UsageError where it cannot be read."""
    match = MODEL_FUNCTION.fullmatch(name)
    path = Path(match[1] if match else name)
    try:
        path.open("rb").close()
    except OSError as error:
        raise unreadable(path, error, "a PyTorch model") from error
    return path


def read_model(name: str) -> "tuple[torch.nn.Module | torch.export.ExportedProgram, tuple[Any, ...]]":
    """Returns a model's module and example inputs, by calling the user's function where ``name`` has one.

    The inputs are () for an exported program (``.pt2``), which contains its own. Raises UsageError where the
    file or the function cannot be read or fails, and where PyTorch is not installed.
    """
    match = MODEL_FUNCTION.fullmatch(name)
    path = require_readable(name)
    try:
        import torch
    except ModuleNotFoundError as error:
        raise UsageError(f"{path}: PyTorch is not installed", NO_TORCH) from error
    import tuner.models.torch  # noqa: F401 - not at start-up; a file may have its operators, such as few_bit_linear
    from tuner.models.mlir.torch_dialect import first_line  # not at start-up

    try:
        if match is None:
            return (torch.export.load(path), ())
        return _called(path, match[2])
    except UsageError:
        raise
    except Exception as error:  # of the user's code, or of a file that is not an exported program
        raise UsageError(f"{name}: {type(error).__name__}: {first_line(error)}") from error


def _called(path: Path, function: str) -> tuple[Any, tuple[Any, ...]]:
    names = vars(_module(path))
    if function not in names:
        own = [name for name, value in names.items() if callable(value) and not name.startswith("_")]
        near = nearest(function, own)
        raise UsageError(f"{path}: has no function {function!r}", f"did you mean {near}?" if near else "")
    returned = names[function]()
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise UsageError(f"{path}:{function}: must return (module, example inputs)")
    module, inputs = returned
    return module, inputs if isinstance(inputs, tuple) else (inputs,)


def _module(path: Path) -> ModuleType:
    """Returns the user's file as a module that is found by its name, as by an import.

    torch.compile, pickle and ``typing.get_type_hints`` look up the module of a class in ``sys.modules``.
    Not imported, so that no bytecode is written next to the file, or read of an earlier version.
    """
    sys.path.insert(0, str(path.parent.resolve()))  # as ``python model.py`` does
    name = path.stem.replace(".", "_")  # a dot would be that of a package
    while name in sys.modules:  # such as ``math.py``
        name += "_"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    code = compile(path.read_bytes(), str(path), "exec")
    sys.modules[name] = module
    try:
        exec(code, vars(module))  # noqa: S102 - the user's own code, which the user asks to run
    except BaseException:
        del sys.modules[name]
        raise
    return module
