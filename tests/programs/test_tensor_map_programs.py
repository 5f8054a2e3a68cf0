"""Programs that make tensor maps: what is refused, and what the simulator finds in wrong ones."""

import re
from pathlib import Path

import pytest

from tests.programs.file_check import require
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError
from tuner.programs.request import ProgramReport, ProgramRequest

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

TEXT = (Path(__file__).parent / "runner" / "sm90_tma_load_swizzled.mlir").read_text()
GEMM = (Path(__file__).parent / "runner" / "sm90_wgmma_gemm.mlir").read_text()
FREES = re.compile(r"  %t[67] = gpu.dealloc .*\n")
UNFREED = (
    FREES.sub("", TEXT)
    .replace("%t4 = gpu.launch async [%t3]", "gpu.launch")  # no token says how long the map is used
    .replace("gpu.memcpy async [%t4]", "gpu.memcpy async [%t0]")
    .replace("gpu.wait [%t7]", "gpu.wait [%t5]")
)
# The map is that of a view of a view, and nothing but the map refers to it.
BY_VIEWS = UNFREED.replace(
    "  %any = memref.cast %da : memref<16x64xf16>",
    "  %base, %o0, %n0, %n1, %s0, %s1 = memref.extract_strided_metadata %da"
    " : memref<16x64xf16> -> memref<f16>, index, index, index, index, index\n"
    "  %view = memref.reinterpret_cast %base to offset: [0], sizes: [16, 64], strides: [64, 1]"
    " : memref<f16> to memref<16x64xf16>\n"
    "  %any = memref.cast %view : memref<16x64xf16>",
)
HOST_TENSOR = TEXT.replace("memref.cast %da", "memref.cast %a")
SEEN_BY_HOST = TEXT.replace(
    "  %t5 = ",
    "  %seen = memref.load %da[%c0, %c0] : memref<16x64xf16>\n  vector.print %seen : f16\n  %t5 = ",
)


def ran(text: str, target: str = "simulator:sm_90") -> ProgramReport:
    from tuner.programs.service import run_program

    return run_program(ProgramRequest(text, TargetName.parse(target), is_timed=False))


@pytest.mark.parametrize("text", [UNFREED, BY_VIEWS])
def test_memory_that_only_a_map_refers_to_lives_until_the_kernel_has_ended(text: str) -> None:
    report = ran(text)
    require(TEXT, report.printed)
    assert not report.reports


@pytest.mark.parametrize("text", [HOST_TENSOR, SEEN_BY_HOST])
def test_a_map_of_memory_that_is_placed_anew_is_refused(text: str) -> None:
    line = 1 + text[: text.index("nvgpu.tma.create.descriptor")].count("\n")
    reason = rf"nvgpu.tma.create.descriptor at line {line}:10: found memref<\*xf16>"
    with pytest.raises(TunerError, match=reason):
        ran(text)


def test_a_chip_without_tma_is_refused() -> None:
    reason = r"nvgpu.tma.prefetch.descriptor at line \d+:5: found chip sm_80, allowed sm_90, sm_90a, "
    with pytest.raises(TunerError, match=reason):
        ran(TEXT, "simulator:sm_80")


def test_a_chip_without_wgmma_is_refused() -> None:
    reason = r"nvgpu.warpgroup\S+ at line \d+:\d+: found chip sm_90, allowed sm_90a$"
    with pytest.raises(TunerError, match=reason):
        ran(GEMM)


def test_the_host_knows_no_tensor_maps() -> None:
    reason = r"gpu.launch_func at line \d+:\d+: found an argument of type !nvgpu.tensormap.*allowed memrefs"
    with pytest.raises(TunerError, match=reason):
        ran(TEXT, "cpu")


def test_tiles_that_are_read_too_soon_are_a_race() -> None:
    reports = ran(TEXT.replace("nvgpu.mbarrier.try_wait.parity", "// ")).reports
    assert any("shared memory" in str(report) for report in reports)


def test_a_kernel_waits_for_copies_into_what_its_map_describes() -> None:
    assert not ran(TEXT.replace("gpu.launch async [%t3]", "gpu.launch async [%t0]")).reports


def test_a_box_in_memory_that_ends_before_it_is_a_fault() -> None:
    small, big = "memref<16x64xf16>", "memref<32x64xf16>"
    view = f"memref.reinterpret_cast %da to offset: [0], sizes: [32, 64], strides: [64, 1] : {small} to {big}"
    text = TEXT.replace(
        f"%any = memref.cast %da : {small}", f"%big = {view}\n  %any = memref.cast %big : {big}"
    )
    with pytest.raises(TunerError, match=r"tensor map: found .* bytes at .*, which are in no buffer"):
        ran(text)
