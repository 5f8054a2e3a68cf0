"""``tuner.compile_program``: compiles an MLIR function into a Python function that runs on a device."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.programs.lower.device_options import DeviceOptions, Form

if TYPE_CHECKING:
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.programs.run.host_function import HostFunction


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
) -> "DeviceFunction | HostFunction":
    """Compiles MLIR text, or a file with MLIR text, into ``program(*arrays, stream=None)``.

    Compilation runs in a child process, so that a compiler crash is a CandidateError. All errors
    are subclasses of TunerError.

    Args:
        payload: MLIR text, or the path of a file with MLIR text.
        target: name of a target; "auto": the first target that can time candidates on this machine.
        entry: the function to compile; None: ``main``, or the only public function.
        scripts: bound transform scripts of the payload's matmuls, such as ``run.best.script_text``. A matmul
            without a script gets the first point of its search space.
        form: how device work is issued; see ``DeviceOptions``.
        device_arguments: True: the function takes arrays in device memory, by DLPack or
            ``__cuda_array_interface__``. False: numpy arrays, or other arrays in host memory by DLPack.
        pinned: whether the program's host memory that is copied to or from the device is page-locked.
        chip: name of the GPU architecture, such as "sm_90"; "": this machine's GPU, or the target's default.
        order: order in which the simulator runs work that is ready.
        seed: of the simulator's random order.

    Returns:
        The compiled function. On a GPU, ``program.as_graph(*arrays)`` captures one call as a CUDA graph.

    Raises:
        UsageError: an argument or the payload is invalid.
        CandidateError: the payload does not compile.
        DeviceError: the GPU or its driver fails.
    """
    from tuner.programs.compile_child import compile_in_child
    from tuner.programs.compiler import payload_text
    from tuner.programs.options import ProgramOptions
    from tuner.programs.positions import named_in_errors
    from tuner.programs.request import ProgramRequest
    from tuner.programs.support import program_support
    from tuner.tuning.parts.real import real_composition
    from tuner.tuning.target_choice import resolve_target

    device = DeviceOptions(form=form, device_arguments=device_arguments, pinned=pinned)
    options = ProgramOptions(device, order, seed)
    composition = real_composition()
    resolved = resolve_target(target, composition, chip)
    options.require_suiting(resolved, composition)
    bound = _checked(scripts or {})
    text = payload_text(payload)
    open_device = program_support(resolved, composition).open_device
    with named_in_errors("payload" if text == payload else str(payload), text):
        code = compile_in_child(ProgramRequest(text, resolved, entry, options, bound)).code
    if open_device is None:
        from tuner.programs.run.host_function import HostFunction

        return HostFunction(code)
    from tuner.programs.run.device_function import DeviceFunction

    return DeviceFunction(code, open_device(resolved.detail, order, seed))


def _checked(scripts: Mapping[Problem, str]) -> tuple[tuple[Problem, str], ...]:
    """Returns the scripts as pairs with their problems.

    Raises UsageError for a wrong type of key or value.
    """
    for pair in scripts.items():
        for found, expected in zip(pair, (Problem, str), strict=True):
            if not isinstance(found, expected):
                raise UsageError(
                    f"scripts: found {type(found).__name__}, allowed the text of a script by its Problem"
                )
    return tuple(scripts.items())
