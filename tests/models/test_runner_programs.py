"""Programs that print by MLIR's runner functions, as upstream's integration tests do, or make tensor maps."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.models.file_check import cases, filled, require
from tests.models.payload_runs import one_order
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.device import STREAM_ORDERS
from tuner.core.device_programs import DeviceOptions
from tuner.core.errors import CandidateError, TunerError
from tuner.models.report import ProgramReport
from tuner.models.request import ProgramOptions, ProgramRequest
from tuner.models.run_work import run_program
from tuner.models.service import run_in_child

pytestmark = pytest.mark.mlir
SIMULATOR, OLDER = "simulator:sm_90", "simulator:sm_80"
SQUARES = text_beside(__file__, "SQUARES")
ROWS = "[[1,   4,   9], \n [4,   9,   16]]\n42\n"
TARGETS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("cpu", {"is_timed": False}),
    *((SIMULATOR, {"options": ProgramOptions(order=order)}) for order in STREAM_ORDERS),
    *((SIMULATOR, {"options": ProgramOptions(DeviceOptions(form=form))}) for form in ("tokens", "sync")),
)


def ran(text: str, target: str, **arguments: object) -> ProgramReport:
    return run_program(ProgramRequest(text, TargetName.parse(target), **arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize(("target", "arguments"), TARGETS)
@pytest.mark.parametrize("interface", ["", "attributes {llvm.emit_c_interface}"])
def test_what_a_kernel_wrote_is_printed(target: str, arguments: dict[str, object], interface: str) -> None:
    report = ran(SQUARES.replace("INTERFACE", interface), target, **arguments)
    head, _, printed = report.printed.partition(" data = \n")
    assert re.fullmatch(r"Unranked Memref base@ = 0x[0-9a-f]+ rank = 2 offset = 0 sizes.*strides.*", head)
    assert printed == ROWS
    assert report.is_right


def test_a_program_that_prints_is_compared_without_printing_twice_vectors_too() -> None:
    report = ran(SQUARES.replace("INTERFACE", ""), SIMULATOR, is_compared=True)
    assert report.printed.count("Unranked") == 1
    assert [(one.name, one.verdict) for one in report.comparisons] == [("printed", "equal")]
    printed = ran(text_beside(__file__, "VECTORS"), "cpu", is_timed=False).printed
    assert printed == "( ( 1.5, 2 ), ( 3, -4 ) )\n7\nend\n"


# What streams, launches and the host do may change places in these; the others have a lone kernel.
SEVERAL: tuple[str, ...] = ("async_fork_join", "called_host_functions", "concurrent_kernels", "gpux_tokens")
SEVERAL += ("host_shared", "tokens", "two_gpu_modules", "two_modules")
CASES = [
    (path, order)
    for path in sorted((Path(__file__).parent / "runner").glob("*.mlir"))
    for order in (STREAM_ORDERS if path.stem in SEVERAL else one_order(path.stem))
]


@pytest.mark.drawn(27)
@pytest.mark.parametrize(("path", "order"), CASES, ids=[f"{path.stem}-{order}" for path, order in CASES])
def test_a_program_prints_what_it_says(path: Path, order: str) -> None:
    source, target = path.read_text(), "simulator:sm_90a" if path.stem.startswith("sm90_") else SIMULATOR
    report = ran(source, target, options=ProgramOptions(order=order, seed=3))
    require(source, report.printed)
    assert report.is_right, report.defects


def test_checks_of_a_file_do_not_let_a_wrong_output_pass() -> None:
    output = "a  = 1, 2\nb = 0x7f end\n c\n"
    require("// CHECK: a = 1,\n// CHECK-SAME: 2\n// CHECK-NEXT: b = {{0x[0-9a-f]+}} end", output)
    turned, apart = "// CHECK: c\n// CHECK: a", "// CHECK: a\n// CHECK-NEXT: c"
    for wrong in ("", turned, apart, "// CHECK: b = {{[0-9]+}} e"):
        with pytest.raises(AssertionError):
            require(wrong, output)


PROGRAM = text_beside(__file__, "PROGRAM")
ASSERTION = 'cf.assert %wrong, "it is wrong"'
FAULT = "memref.store %one, %memory[%c9] : memref<2xf32>"
ENDLESS = text_beside(__file__, "ENDLESS")
BEYOND = "out of bounds|found .*allowed"
ENDS = "kernel fails: .*endless: found more than 2048 (basic blocks|iterations)"
EXPECTED = "before the kernel\nthread 0 was here\nthread 1 was here\n"


def request(failure: str, target: str) -> ProgramRequest:
    return ProgramRequest(PROGRAM.replace("FAILURE", failure), TargetName.parse(target), is_timed=False)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("target", [SIMULATOR, "cpu"])
@pytest.mark.parametrize(("failure", "reason"), [(ASSERTION, "'it is wrong'"), (FAULT, BEYOND)])
def test_what_was_printed_is_kept(failure: str, reason: str, target: str) -> None:
    printed: list[str] = []
    with pytest.raises(CandidateError, match=reason):
        run_program(request(failure, target), printed)
    assert "".join(printed) == EXPECTED


@pytest.mark.parametrize("target", [SIMULATOR, "cpu"])
def test_a_loop_without_end_is_stopped_by_a_limit(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuner.gpu.ptxsim.engine.STEPS_LIMIT", 1 << 11)
    monkeypatch.setattr("tuner.gpu.ptxsim.engine.PAUSE_BLOCKS", 1 << 11)
    monkeypatch.setattr("tuner.gpu.interpreter.decoding.ITERATIONS_LIMIT", 1 << 11)
    monkeypatch.setattr("tuner.gpu.interpreter.decoding.CHECKED", 1 << 11)
    printed: list[str] = []
    with pytest.raises(CandidateError, match=ENDS):
        run_program(request(ENDLESS, target), printed)
    assert "".join(printed) == EXPECTED


def test_the_process_that_ran_the_program_hands_on_what_it_printed() -> None:
    shown: list[str] = []
    with pytest.raises(TunerError, match="'it is wrong'"):
        run_in_child(request(ASSERTION, SIMULATOR), 60.0, shown.append)
    assert shown == [EXPECTED]


# Ways of the address of the memory %d, and what the kernel loads from.
WAYS = {options["way"]: (text, options["load"]) for options, text in cases(text_beside(__file__, "WAYS"))}


def program(way: str, load: str) -> str:
    return filled(__file__, "OF_A_WAY", way=way, load=text_beside(__file__, load))


def found_right(text: str, order: str) -> ProgramReport:
    report = ran(text, SIMULATOR, is_timed=False, options=ProgramOptions(order=order, seed=3))
    assert report.printed.endswith("data = \n[0,  1,  2,  3]\n")
    return report


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("way", "order"), [(way, order) for way in WAYS for order in one_order(way)])
def test_memory_lives_until_the_kernel_has_read_it(way: str, order: str) -> None:
    assert not found_right(program(*WAYS[way]), order).defects


def test_memory_of_an_iteration_lives_until_its_kernel_ends_unless_freed_too_early() -> None:
    way = text_beside(__file__, "of_each_iteration")
    text = program(way, "FROM_NUMBER").replace("  gpu.memcpy %out", "  }\n  gpu.memcpy %out")
    assert not found_right(text, "lifo").defects
    options = ProgramOptions(order="fifo", seed=3)
    text = program(text_beside(__file__, "freed_too_early"), "FROM_KEPT")
    report = ran(text, SIMULATOR, is_timed=False, options=options)
    assert ["d1 is freed before" in each for each in report.defects] == [True]


TMA = (Path(__file__).parent / "runner" / "sm90_tma_load_swizzled.mlir").read_text()
GEMM = (Path(__file__).parent / "runner" / "sm90_wgmma_gemm.mlir").read_text()
FREES = re.compile(r"  %t[67] = gpu.dealloc .*\n")
UNFREED = (
    FREES.sub("", TMA)
    .replace("%t4 = gpu.launch async [%t3]", "gpu.launch")  # no token says how long the map is used
    .replace("gpu.memcpy async [%t4]", "gpu.memcpy async [%t0]")
    .replace("gpu.wait [%t7]", "gpu.wait [%t5]")
)
# The map is that of a view of a view, and nothing but the map refers to it.
CAST = "%any = memref.cast %da : memref<16x64xf16>"
BY_VIEWS = UNFREED.replace(CAST, text_beside(__file__, "CAST_OF_A_VIEW").rstrip())
HOST_TENSOR = TMA.replace("memref.cast %da", "memref.cast %a")
SEEN = "  %seen = memref.load %da[%c0, %c0] : memref<16x64xf16>\n  vector.print %seen : f16\n"
SEEN_BY_HOST = TMA.replace("  %t5 = ", f"{SEEN}  %t5 = ")


@pytest.mark.parametrize("text", [UNFREED, BY_VIEWS])
def test_memory_that_only_a_map_refers_to_lives_until_the_kernel_has_ended(text: str) -> None:
    report = ran(text, SIMULATOR, is_timed=False)
    require(TMA, report.printed)
    assert not report.defects


@pytest.mark.parametrize("text", [HOST_TENSOR, SEEN_BY_HOST])
def test_a_map_of_memory_that_is_placed_anew_is_refused(text: str) -> None:
    line = 1 + text[: text.index("nvgpu.tma.create.descriptor")].count("\n")
    reason = rf"nvgpu.tma.create.descriptor at line {line}:10: found memref<\*xf16>"
    with pytest.raises(TunerError, match=reason):
        ran(text, SIMULATOR, is_timed=False)


@pytest.mark.parametrize(
    ("text", "target", "reason"),
    [
        (TMA, OLDER, r"nvgpu.tma.prefetch.descriptor at .*:5: found chip sm_80, allowed sm_90, sm_90a, "),
        (GEMM, SIMULATOR, r"nvgpu.warpgroup\S+ at line \d+:\d+: found chip sm_90, allowed sm_90a$"),
        (TMA, "cpu", r"gpu.launch_func at .*: found an argument of type !nvgpu.tensormap.*allowed memrefs"),
    ],
)
def test_what_a_target_does_not_have_is_refused(text: str, target: str, reason: str) -> None:
    with pytest.raises(TunerError, match=reason):
        ran(text, target, is_timed=False)


def test_tiles_that_are_read_too_soon_are_a_race_and_a_box_that_ends_before_it_a_fault() -> None:
    text = TMA.replace("nvgpu.mbarrier.try_wait.parity", "// ")
    reports = ran(text, SIMULATOR, is_timed=False).defects
    assert any("shared memory" in str(report) for report in reports)
    text = TMA.replace("gpu.launch async [%t3]", "gpu.launch async [%t0]")
    assert not ran(text, SIMULATOR, is_timed=False).defects
    text = TMA.replace(CAST, text_beside(__file__, "CAST_OF_MORE").rstrip())
    with pytest.raises(TunerError, match=r"tensor map: found .* bytes at .*, which are in no buffer"):
        ran(text, SIMULATOR, is_timed=False)
