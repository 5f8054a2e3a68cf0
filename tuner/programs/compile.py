"""``tuner.compile_program``: a whole MLIR function as a Python function on a device."""

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
    """Compiles MLIR text, or a file of it, into ``program(*arrays, stream=None)``.

    ``scripts`` gives bound transform scripts for matmuls of the payload, as ``run.best.script_text``; the
    others get the search space's first point. The function takes numpy arrays, or others of host memory by
    DLPack; with ``device_arguments`` arrays in device memory, by DLPack or ``__cuda_array_interface__``.
    It is compiled in a child process, so that a compiler's crash is a CandidateError. ``order`` and
    ``seed`` are for the simulator. On a GPU, ``program.as_graph(*arrays)`` captures one call.
    Raises UsageError, CandidateError and, of a GPU or its driver, DeviceError: all are TunerError.
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
    """Returns scripts with their problems. Raises UsageError for keys and texts of other types."""
    for pair in scripts.items():
        for found, expected in zip(pair, (Problem, str), strict=True):
            if not isinstance(found, expected):
                raise UsageError(
                    f"scripts: found {type(found).__name__}, allowed the text of a script by its Problem"
                )
    return tuple(scripts.items())
