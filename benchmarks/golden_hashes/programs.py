"""The fixed programs, with their host code and the PTX of each kernel module.

Each is compiled for two processors and for GPUs, in every form that its device work can take, and run on the
simulated GPU.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.golden_hashes.command_line import CommandLine
from benchmarks.golden_hashes.machines import AVX2, AVX512
from benchmarks.golden_hashes.tuner_names import (
    DeviceOptions,
    DeviceProgram,
    LoweringStep,
    Machine,
    ProgramCompiler,
    ProgramRequest,
    TargetName,
    encode,
    lowered,
    program_support,
    real_backends,
)

ROOT = Path(__file__).parents[2]
CPU = TargetName("cpu")
STEPS: tuple[LoweringStep, ...] = ("device-memory", "async", "streams", "gpux")
# A kernel module in lowered host code: its PTX is the last text of the line, quotes and breaks escaped.
BINARY = re.compile(r'(gpu\.binary @(\S+) .*")([^"\n]*)(">\])$', re.MULTILINE)
ESCAPE = re.compile(r"\\([0-9A-F]{2})")


@dataclass(frozen=True)
class GoldenProgram:
    """A payload of the repository and the options of its compilation."""

    file: str  # below the root
    chips: tuple[str, ...]  # the first one in all forms
    options: tuple[DeviceOptions, ...]
    steps: tuple[LoweringStep, ...] = ()  # of the lowering, whose IR is hashed
    is_for_cpus: bool = True  # False: with operations of GPUs alone

    @property
    def name(self) -> str:
        """Returns its name for people."""
        return f"program {Path(self.file).stem}"

    @property
    def path(self) -> Path:
        """Returns the file."""
        return ROOT / self.file

    @property
    def texts(self) -> dict[str, str]:
        """Returns the texts by the name of the part."""
        return dict(_texts(self, self.path.read_text()))


FORMS = (
    DeviceOptions(),
    DeviceOptions("tokens"),
    DeviceOptions("sync"),
    DeviceOptions(pinned=True),
    DeviceOptions(device_arguments=True),
    DeviceOptions(max_streams=1),
)
OWN_STREAMS = (DeviceOptions(),)  # of a program that names its streams, which takes no other form
GPUX_STEPS: tuple[LoweringStep, ...] = ("async", "streams", "gpux")
PROGRAMS = (
    GoldenProgram("examples/two_matmuls.mlir", ("sm_90", "sm_80", "sm_90a"), FORMS, STEPS),
    GoldenProgram("examples/matmul_gelu.mlir", ("sm_90", "sm_90a"), FORMS),
    GoldenProgram("examples/softmax.mlir", ("sm_80",), FORMS, STEPS),
    GoldenProgram("examples/rms_norm.mlir", ("sm_90",), FORMS),
    GoldenProgram("examples/async_matmul.mlir", ("sm_90",), FORMS, STEPS),
    GoldenProgram("examples/gpux_own_streams.mlir", ("sm_90", "sm_80"), OWN_STREAMS, GPUX_STEPS),
    GoldenProgram("examples/gpux_users_stream.mlir", ("sm_90",), OWN_STREAMS, GPUX_STEPS),
    GoldenProgram("tests/models/runner/gpux_tokens.mlir", ("sm_90",), OWN_STREAMS, GPUX_STEPS),
    GoldenProgram("tests/models/runner/async_fork_join.mlir", ("sm_90",), FORMS),
    GoldenProgram("tests/models/runner/wmma_f16_f32.mlir", ("sm_80", "sm_120"), FORMS[:3]),
    GoldenProgram(
        "tests/models/runner/sm90_tma_load_swizzled.mlir", ("sm_90",), FORMS[:3], is_for_cpus=False
    ),
    GoldenProgram("tests/models/runner/sm90_wgmma_gemm.mlir", ("sm_90a",), FORMS[:3], is_for_cpus=False),
)


def run_on_simulator(tuner: CommandLine, program: GoldenProgram) -> str:
    """Returns the output of a run: all device work of the program, in order."""
    return tuner.printed(
        *("run", str(program.path), "--target", "simulator", "--chip", program.chips[0]), "--trace", "--json"
    )


def _texts(program: GoldenProgram, payload: str) -> Iterator[tuple[str, str]]:
    """Yields (part, text)."""
    if program.is_for_cpus:
        for machine in (AVX512, AVX2):
            yield from _compiled(machine.isa, payload, machine, CPU, DeviceOptions())
    for chip in program.chips:
        target = TargetName("simulator", chip)
        machine = ProgramCompiler.of(target, real_backends()).machine
        for options in program.options if chip == program.chips[0] else program.options[:1]:
            yield from _compiled(f"{chip} {_text(options)}", payload, machine, target, options)
    target = TargetName("simulator", program.chips[0])
    for step in program.steps:
        request = ProgramRequest(payload, target)
        yield f"{program.chips[0]} step {step}", lowered(request, step, real_backends()).text


def _compiled(
    name: str, payload: str, machine: Machine, target: TargetName, options: DeviceOptions
) -> Iterator[tuple[str, str]]:
    """Yields the texts of a program compiled for one machine, as it is timed and as it is verified."""
    compiler = ProgramCompiler(machine, program_support(target, real_backends()))
    is_usual = options == DeviceOptions()
    code = compiler.compile(payload, options=options, keeps_kernels=is_usual).code
    host, modules = without_modules(code.llvm)
    yield f"{name} host", host
    for module, ptx in modules.items():
        yield f"{name} ptx of {module}", ptx
    yield f"{name} signature", _signature(code)
    for part, text in (("reference", code.reference), ("interpreted", code.interpreted)):
        if text:
            yield f"{name} {part}", text
    if is_usual:
        checked = compiler.compile(payload, options=options, is_checked=True).code
        yield f"{name} checked host", without_modules(checked.llvm)[0]


def without_modules(llvm: str) -> tuple[str, dict[str, str]]:
    """Returns host code with the name of each kernel module in the place of its PTX, and the PTX by name."""
    modules = {match[2]: _unescaped(match[3]) for match in BINARY.finditer(llvm)}
    return BINARY.sub(lambda match: f"{match[1]}{match[2]}{match[4]}", llvm), modules


def _unescaped(text: str) -> str:
    """Returns a text of MLIR as its bytes."""
    return ESCAPE.sub(lambda match: chr(int(match[1], 16)), text).rstrip("\0")


def _text(options: DeviceOptions) -> str:
    """Returns the form, and the options that differ from their defaults."""
    usual = DeviceOptions(options.form)
    changed = [f"{name}={value}" for name, value in vars(options).items() if value != getattr(usual, name)]
    return " ".join((options.form, *changed))


def _signature(code: DeviceProgram) -> str:
    """Returns how the program is called."""
    document = encode(replace(code, llvm="", reference="", interpreted=""))
    return json.dumps(document, indent=1) + "\n"
