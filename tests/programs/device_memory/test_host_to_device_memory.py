import re
import struct
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from benchmarks.fuzzing.host_program_writer import ProgramFeatures
from benchmarks.fuzzing.host_programs import RandomProgram, host_programs
from benchmarks.fuzzing.program_check import SIMULATOR, check_calls
from benchmarks.program_compiler import compiler_of
from tests.examples import costly
from tests.mlir.kernels import parsed
from tests.programs.file_check import directives
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir import bindings
from tuner.programs.device_memory import conversion as memory
from tuner.programs.request import DeviceOptions
from tuner.programs.run.device_function import DeviceFunction
from tuner.programs.run.marshalling import PassedArgument
from tuner.runtime.arrays import MemRef
from tuner.simulator.device.simulated_device import SimulatedDevice

pytestmark = pytest.mark.mlir


OUTLINE = "builtin.module(gpu-launch-sink-index-computations,gpu-kernel-outlining,canonicalize,cse)"
PINNED: dict[str, Any] = {"pinned": True}
ON_DEVICE: dict[str, Any] = {"device_arguments": True}
A = np.arange(16, dtype=np.float32).reshape(4, 4)
B = A[::-1].copy()
DEFAULTS = {"arguments": "%a: M, %b: M", "results": "", "extra": ""}


def program(name: str, kind: str = "memref<4x4xf32>") -> str:
    """Returns a program of the .mlir file, with what capitals stand for."""
    body = text_beside(__file__, name)
    options = DEFAULTS | directives(body)
    body = re.sub(r"^// .*\n", "", body, flags=re.MULTILINE)
    doubled, launch = (text_beside(__file__, each) for each in ("DOUBLED", "LAUNCH"))
    for call, source, target in re.findall(r"(DOUBLED\((\S+), (\S+)\))", body):
        body = body.replace(call, doubled.replace("SOURCE", source).replace("TARGET", target))
    body = body.replace("LAUNCH", launch).replace("END", "gpu.terminator }")
    text = text_beside(__file__, "FRAME").replace("BODY", body if "return" in body else f"{body}return")
    text = text.replace("EXTRA", text_beside(__file__, options["extra"]) if options["extra"] else "")
    text = text.replace("RESULTS", f"-> ({options['results']})" if options["results"] else "")
    return re.sub(r"\bM\b", kind, text.replace("ARGUMENTS", options["arguments"]))


def rewritten(text: str, **options: Any) -> str:
    with parsed(text) as module:
        bindings.passmanager.PassManager.parse(OUTLINE).run(module.operation)
        memory.host_to_device_memory(module, DeviceOptions(**options))
        assert module.operation.verify()
        bindings.passmanager.PassManager.parse("builtin.module(canonicalize,cse)").run(module.operation)
        return str(module)


def check(text: str, *arguments: Any, copies: int | None = None, **options: Any) -> None:
    """Compares calls on the simulated GPU with loops on the host; ``copies`` is what each call makes."""
    counts = check_calls(text, arguments, DeviceOptions(form="sync", **options))
    assert copies is None or counts.copies == copies


GOLDEN: tuple[str, ...] = ("arguments", "scratch", "global", "results", "copies", "strided", "loop", "swap")
GOLDEN += ("device_arguments", "pinned")


@pytest.mark.drawn(len(GOLDEN))
@pytest.mark.parametrize("name", GOLDEN)
def test_ir(name: str, golden: Callable[[str, str], None]) -> None:
    options = {"device_arguments": ON_DEVICE, "pinned": PINNED}.get(name, {})
    main = rewritten(program(name), **options).split("func.func @main")[1].split("  gpu.module")[0]
    golden(f"host_to_device_memory_{name}.mlir", f"  func.func @main{main}")


CALLS = [  # program, arguments, copies of each call, options
    ("arguments", (A, B), 3, {}),
    ("scratch", (A, B), 2, {}),
    ("global", (A, B), None, {}),
    ("written_global", (A, B), 2, {}),
    ("results", (A, B), 2, {}),
    ("copies", (A, B), None, {}),
    ("parts", (A, B), None, {}),
    ("loop", (A, B), 4, {}),
    ("host_in_loop", (A, B), None, {}),
    ("swap", (A, B), 4, {}),
    *(("while", (np.ones((4, 4), np.float32), 2.0**count - 0.5), None, {}) for count in (0, 1, 2)),
    *(("freed_in_branch", (A, B, flag), None, {}) for flag in (True, False)),
    ("numbers", (A, 2.5), None, {}),
    ("fill", (A, B), None, {}),
    ("called", (A, B), None, {}),
    ("device_arguments", (A, B), 0, ON_DEVICE),
    ("read_on_host", (A, B), 3, ON_DEVICE),
    *(
        pytest.param(name, (A, B, flag), None, {}, marks=pytest.mark.slow)
        for name in ("branch_or_host", "host_branch", "branch")
        for flag in (True, False)
    ),
]


@pytest.mark.drawn(len(CALLS))
@pytest.mark.parametrize(("name", "arguments", "copies", "options"), CALLS)
def test_calls_give_what_loops_on_the_host_give(
    name: str, arguments: tuple[Any, ...], copies: int | None, options: dict[str, Any]
) -> None:
    check(program(name), *arguments, copies=copies, **options)


def test_sizes_may_be_known_at_run_time_only() -> None:
    check(program("dynamic", "memref<?x4xf32>"), A, copies=2)


def test_pinned_memory_takes_the_place_of_allocations_that_are_copied() -> None:
    text, write = program("pinned"), "memref.store %one, %t"  # of one element, while the kernel reads all
    kind = "memref<4x4xf32>"
    check(text.replace(write, f"memref.copy %a, %t : {kind} to {kind} {write}"), A, B, **PINNED)


def test_what_needs_no_copy_has_none() -> None:
    assert "%arg1 : f32" in rewritten(program("numbers"))
    assert rewritten(program("fill")).count("gpu.memcpy") == 1
    assert "gpu.memcpy" not in rewritten(program("no_kernels"))
    marked = rewritten(program("marked"))
    assert "tuner.device" not in marked
    assert "llvm.noalias" in marked
    assert marked.count("gpu.memcpy") == 1


def test_rows_that_are_not_adjacent_go_through_memory_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = np.arange(48, dtype=np.float32).reshape(4, 12)
    expected = wide.copy()
    expected[:, 5:9] += 1
    rows = MemRef(wide.ctypes.data, wide.ctypes.data, 5, (4, 4), (12, 1))
    passed = PassedArgument(struct.pack("7q", *rows.words), True, wide, wide)
    # of Python's callers only arrays without gaps are taken
    monkeypatch.setattr("tuner.programs.run.device_function.pass_arguments", lambda *_: (passed,))
    device = SimulatedDevice("sm_90")
    code = compiler_of(SIMULATOR).compile(program("strided"), "main", None, DeviceOptions(form="sync")).code
    with closing(DeviceFunction(code, device)) as loaded:
        loaded(wide)
    np.testing.assert_array_equal(wide, expected)
    assert device.reports == ()


REFUSED: tuple[str, ...] = (
    "blocks",
    "leaves_iteration",
    "frees_one_of_two",
    "freed_and_returned",
    "freed_twice",
)
REFUSED += ("unknown_origin",)
OF_DEVICE = ("device_or_global", "device_to_function", "device_with_gaps")


@pytest.mark.drawn(len(REFUSED + OF_DEVICE))
@pytest.mark.parametrize("name", REFUSED + OF_DEVICE)
def test_what_cannot_be_followed_is_refused(name: str) -> None:
    with pytest.raises(CandidateError, match=directives(text_beside(__file__, name))["refused"]) as failure:
        rewritten(program(name), **(ON_DEVICE if name in OF_DEVICE else {}))
    assert failure.value.stage is Stage.COMPILE


WITHOUT_GLOBALS = ProgramFeatures(globals=False)
FEW = settings(costly(8, 40), suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@FEW
@given(host_programs())
def test_random_programs_do_the_same_with_pinned_memory(case: RandomProgram) -> None:
    check(case.text, *case.arguments, **PINNED)


@pytest.mark.slow
@FEW
@given(host_programs(WITHOUT_GLOBALS))
def test_random_programs_do_the_same_on_arguments_in_device_memory(case: RandomProgram) -> None:
    check(case.text, *case.arguments, **ON_DEVICE)
