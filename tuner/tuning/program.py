"""``tuner.compile_program``: a whole MLIR function as a Python function on a device."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.errors import UsageError
from tuner.problem import Problem
from tuner.program_run import FORMS, ORDERS, Form
from tuner.target import Script

if TYPE_CHECKING:
    from tuner.runtime.host_function import HostFunction
    from tuner.runtime.program import LoadedProgram


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
) -> "LoadedProgram | HostFunction":
    """Compiles MLIR text, or a file of it, into ``program(*arrays, stream=None)``.

    ``scripts`` gives bound transform scripts for matmuls of the payload, as ``run.best.script_text``; the
    others get the search space's first point. The function takes numpy arrays, or others of host memory by
    DLPack; with ``device_arguments`` arrays in device memory, by DLPack or ``__cuda_array_interface__``.
    ``order`` and ``seed`` are for the simulator. On a GPU, ``program.as_graph(*arrays)`` captures one call.
    Raises UsageError, CandidateError and, of a GPU or its driver, DeviceError: all are TunerError.
    """
    from tuner.api import resolve_target
    from tuner.tuning.parts import real_composition
    from tuner.tuning.program_compiler import ProgramCompiler, payload_text
    from tuner.tuning.program_devices import open_device, require_program_target

    if form not in FORMS:
        raise UsageError(f"form: found {form!r}, allowed {', '.join(FORMS)}")
    if order not in ORDERS:
        raise UsageError(f"order: found {order!r}, allowed {', '.join(ORDERS)}")
    if seed < 0:
        raise UsageError(f"seed: found {seed}, allowed 0 or more")
    composition = real_composition()
    resolved = resolve_target(target, composition, chip)
    require_program_target(resolved)
    compiler = ProgramCompiler(resolved, composition.target_machine(resolved.text))
    odd = [type(each).__name__ for pair in (scripts or {}).items() for each in _odd(*pair)]
    if odd:
        raise UsageError(f"scripts: found {odd[0]}, allowed the text of a script by its Problem")
    bound = {problem: Script.of(text) for problem, text in (scripts or {}).items()}
    text = payload_text(payload)
    if order != ORDERS[0] and resolved.kind != "simulator":
        raise UsageError(f"order: found {order!r}, allowed for the simulator, not for {resolved.text}")
    if not resolved.is_gpu:
        words = {"device_arguments": device_arguments, "pinned": pinned, "form": form != FORMS[0] and form}
        for name, given in words.items():
            if given:
                raise UsageError(f"{name}: found {given!r}, allowed for GPUs, not for {resolved.text}")
        from tuner.runtime.host_function import HostFunction

        return HostFunction(compiler.compile(text, entry, bound).code)
    from tuner.mlir.device_lowering import DeviceOptions
    from tuner.runtime.program import LoadedProgram

    options = DeviceOptions(form=form, device_arguments=device_arguments, pinned=pinned)
    code = compiler.compile(text, entry, bound, options).code
    return LoadedProgram(code, open_device(resolved, order, seed))


def _odd(problem: object, text: object) -> list[object]:
    """Returns what is of another type than a script and its problem have."""
    return [found for found, kind in ((problem, Problem), (text, str)) if not isinstance(found, kind)]
