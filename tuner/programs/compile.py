"""``tuner.compile_program``: compiles an MLIR function into a Python function that runs on a device."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.core.problem import Problem
from tuner.core.typed_arguments import typed_arguments
from tuner.programs.lower.device_options import DeviceOptions, Form

if TYPE_CHECKING:
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.programs.run.grouped_function import GroupedFunction
    from tuner.programs.run.host_function import HostFunction


@typed_arguments
def compile_program(
    payload: str | Path,
    target: str = "auto",
    *,
    entry: str | None = None,
    scripts: Mapping[Problem, str] | None = None,
    form: Form = "streams",
    device_arguments: bool = False,
    pinned: bool = False,
    chip: str = "",
    order: str = "fifo",
    seed: int = 0,
    db: str | Path | None = None,
    threads: int = 1,
) -> "DeviceFunction | GroupedFunction | HostFunction":
    """Compiles a function of MLIR text, or of a file, into ``program(*arrays, stream=None)``.

    The compiler runs in a child process, so that its crash becomes a CandidateError.

    Args:
        payload: MLIR text, or the path of a file with one function to run.
        target: "auto", "cpu" (for comparison), "cuda", "cuda:sm_90", "simulator".
        entry: name of the function; None: the public one, or ``main`` where there are several.
        scripts: bound transform scripts by problem, as ``run.best.script``, for matmuls of the payload; a
            matmul without one gets the first preferred configuration of the shipped search space, or becomes
            loops if no strategy supports it.
        form: for GPUs, how work is ordered: "streams", "tokens" (asynchronous, each call with its own
            streams) or "sync".
        device_arguments: take arrays in device memory (DLPack, ``__cuda_array_interface__``), not numpy
            arrays.
        pinned: whether host buffers that are copied are pinned.
        chip: chip to generate code for, such as "sm_90"; "": the target's.
        order: for the simulator: order in which work of several streams runs, "fifo", "lifo" or "random".
        seed: for the simulator: seed of a random order.
        db: for the CPU: path or URL of a results database, whose best trials schedule groups of operations;
            None: that of ``TUNER_DB``, else the user's own, if there is one. A group that was not tuned takes
            the configuration of a similar one, or its first.
        threads: for the CPU: on how many threads groups of operations run, 1 to 256, the caller's among
            them; more than there are processors are slow. Groups with little work, and programs that are
            computed as a whole, run on the caller's thread alone.

    Returns:
        The function. On the CPU it runs as groups of operations, each with a schedule of its own and the
        constants packed once, where the program allows it; else as a whole, and ``why_no_groups`` says why.
        On a GPU and on the simulator, too, groups are a kernel each where the program allows it, and
        constants stay on the device from call to call; ``as_graph(*arrays)`` captures one call as a CUDA
        graph. Close the function with ``close()``.

    Raises:
        UsageError: an argument does not fit, a named database does not exist, or the payload does not parse
            or is no valid program.
        CandidateError: the payload cannot be lowered, or the compiler failed, crashed or timed out.
        DeviceError: the GPU or its driver refused.

    Example:
        >>> import numpy as np
        >>> import tuner
        >>> payload = '''
        ... func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
        ...   %y = arith.addf %x, %x : tensor<4xf32>
        ...   return %y : tensor<4xf32>
        ... }
        ... '''
        >>> program = tuner.compile_program(payload, target="cpu")
        >>> program(np.ones(4, np.float32))
        array([2., 2., 2., 2.], dtype=float32)
    """
    from tuner.programs.compile_child import compile_in_child
    from tuner.programs.compiler import payload_text
    from tuner.programs.options import ProgramOptions
    from tuner.programs.positions import named_in_errors
    from tuner.programs.request import ProgramRequest
    from tuner.programs.support import program_support
    from tuner.run_history.opened_store import known_url
    from tuner.run_history.which_database import naming_database
    from tuner.tuning.parts.real import real_composition
    from tuner.tuning.target_choice import resolve_target

    device = DeviceOptions(form=form, device_arguments=device_arguments, pinned=pinned)
    options = ProgramOptions(device, order, seed, threads=threads)
    composition = real_composition()
    resolved = resolve_target(target, composition, chip)
    options.require_suiting(resolved, composition)
    bound = tuple((scripts or {}).items())
    text = payload_text(payload)
    open_device = program_support(resolved, composition).open_device
    with naming_database(db):
        database = known_url(db) if resolved.is_on_cpu else ""
    with named_in_errors("payload" if text == payload else str(payload), text):
        compiled = compile_in_child(ProgramRequest(text, resolved, entry, options, bound, database=database))
    if open_device is None:
        from tuner.programs.execution import host_function

        return host_function(compiled)
    from tuner.programs.run.device_function import DeviceFunction

    opened = open_device(resolved.detail, order, seed)
    return DeviceFunction(compiled.code, opened, why_no_groups=compiled.why_no_groups)
