"""Returns the IR of a program after one of the steps in which ``device_lowering.py`` lowers it.

Takes kernels in a host function, as ``work_to_kernels.py`` produces; returns text. Each step builds on the
steps before it, except that ``async``, ``streams`` and ``gpux`` are three forms of the same step. Rejected:
``device-memory`` for a program that names its streams (GPUX), since such a program has device memory already.
"""

from collections.abc import Callable
from dataclasses import replace

from tuner.core.chips import Chip
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, gpu, ir
from tuner.mlir.effects.kernel_effects import KernelEffects
from tuner.mlir.gpu.lowering import outline_kernels
from tuner.mlir.gpu.ready_kernels import drop_code
from tuner.mlir.rewrite.walking import walk
from tuner.programs.lower.device_lowering import (
    drop_streams_if_mixed,
    give_device_memory,
    issue_device_work,
    lower_device_program,
)
from tuner.programs.lower.device_options import DeviceOptions
from tuner.programs.lower.lowering_steps import LoweringStep
from tuner.programs.lower.on_host.drop_streams import drop_streams
from tuner.programs.lower.read_program import ProgramPayload
from tuner.programs.lower.streams.async_streams import use_streams
from tuner.programs.lower.streams.concurrent_launches import note_concurrency
from tuner.programs.lower.streams.drop_tokens import drop_tokens
from tuner.programs.lower.streams.gpux import lower_gpux
from tuner.programs.lower.streams.gpux_ops import uses_gpux
from tuner.programs.lower.streams.to_gpux import write_as_gpux


def text_after(step: LoweringStep, payload: ProgramPayload, chip: Chip, options: DeviceOptions) -> str:
    """Lowers a payload in place up to ``step``; returns the text of the module: PTX for ``ptx``, else MLIR.

    Raises CandidateError: BIND for ``device-memory`` of a program that names its streams and has no host
    buffers in its kernels, COMPILE for ``ptx`` of a program without kernels, and all errors of the lowering.
    """
    module, function = payload.module, payload.function
    if step in ("llvm", "ptx"):
        program = lower_device_program(module, payload.entry, chip, options)
        return program.llvm if step == "llvm" else _ptx(module)
    drop_code(module)
    if uses_gpux(function) and not drop_streams_if_mixed(function):
        _write_own_streams(step, module, function, chip)
    else:
        outline_kernels(module, chip)
        if step in ("async", "streams"):
            note_concurrency(module, function)
        drop_tokens(function)
        give_device_memory(module, function, options)
        FORMS[step](module, function, options)
    return str(module)


def _write_own_streams(step: LoweringStep, module: ir.Module, function: Op, chip: Chip) -> None:
    """Lowers a program that names its streams; the ``gpux`` step leaves its streams as they were read."""
    if step == "device-memory":
        allowed = "async, streams, gpux, llvm, ptx"
        raise CandidateError(
            Stage.BIND, f"to: found {step} for a program that names its streams, allowed {allowed}"
        )
    if step == "streams":
        lower_gpux(function)
    elif step == "async":
        drop_streams(function)
    outline_kernels(module, chip)
    if step == "async":
        issue_device_work(module, function, DeviceOptions(form="tokens"))


def _on_one_stream(module: ir.Module, function: Op, _options: DeviceOptions) -> None:
    use_streams(function, KernelEffects(module), limit=1)
    write_as_gpux(function)


FORMS: dict[str, Callable[[ir.Module, Op, DeviceOptions], object]] = {
    "device-memory": lambda _module, _function, _options: None,
    "async": lambda module, function, words: issue_device_work(
        module, function, replace(words, form="tokens")
    ),
    "streams": lambda module, function, words: issue_device_work(module, function, words),
    "gpux": _on_one_stream,
}


def _ptx(module: ir.Module) -> str:
    """Returns the PTX of all binaries of a lowered module.

    Raises CandidateError(COMPILE) without a binary.
    """
    texts = [_code(binary) for binary in walk(module, "gpu.binary")]
    if not texts:
        raise CandidateError(Stage.COMPILE, "payload: no kernel: nothing in it runs on a device")
    return "\n".join(texts)


def _code(binary: Op) -> str:
    code = gpu.ObjectAttr(ir.ArrayAttr(binary.attributes["objects"])[0]).object
    return bytes(code).rstrip(b"\0").decode()
