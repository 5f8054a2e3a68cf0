"""Launch code of a C library for GPUs: compiled, linked, run on a stand-in for the driver and a simulator."""

import ctypes
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cuda_driver import has_driver
from tests.gpu.target.strategies.points import compiled, mma_sync, naive, simt, wgmma
from tests.models.library.c.c_programs import BARE, NEEDS_CC, cc, shared_object, write
from tests.support.gpu_point import GpuPoint
from tests.support.stub_driver import StubDriver
from tuner.core.errors import TunerError
from tuner.core.gpu import chip_of
from tuner.core.machine import gpu_machine
from tuner.core.matmul import BatchMatmul, GroupedMatmul, Matmul
from tuner.core.problem import SCALES, Problem
from tuner.gpu.driver.device import CudaDevice
from tuner.gpu.ptxsim.device.memory import EncodedMap
from tuner.models.library.c.kernels import function_of
from tuner.models.library.c.writer import c_files
from tuner.models.library.entries import LibraryEntry
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.payload.reference import unwritten_output

pytestmark = [pytest.mark.mlir, NEEDS_CC]
SPLIT = Matmul(64, 64, 128, "f16", output="f16")
SMALL = Matmul(5, 33, 7)
GROUPED = GroupedMatmul(3, 70, 64, 64, layout="nt")
POINTS = (
    naive(SMALL),
    simt(Matmul(67, 130, 50, epilogue="bias_relu")),
    mma_sync(SPLIT, splits=2, split_by="workspace"),  # adds up in scratch memory
    mma_sync(Matmul(64, 64, 128, "f16"), splits=2, split_by="last_block"),  # counts in scratch that is zeroed
    mma_sync(Matmul(64, 64, 64, "f16"), splits=2),  # adds up in C, which is zeroed
    mma_sync(BatchMatmul(2, 64, 64, 32, "bf16")),
    mma_sync(GROUPED, group=1),
    mma_sync(
        GroupedMatmul(2, 70, 64, 64, layout="nt"), group=1
    ),  # of the same sizes: a kernel is for its number of groups
)
WITH_MAPS = wgmma(Matmul(64, 64, 96, "f16"))
WITH_SCALES = wgmma(Matmul(64, 72, 144, "e4m3", "nt", scales=SCALES), block_k=128)
# a copy by columns and its low bits are in scratch memory, and have tensor maps
WITH_COPIES = wgmma(Matmul(72, 40, 64, "tf32x3", "tn"), block_k=32)
LAUNCHED, NO_KERNEL, BAD_SIZES, BAD_ADDRESS, NO_DEVICE, FAILED = 1, 0, -1, -2, -3, -4
OUT_OF_MEMORY, LAUNCH_FAILED = 2, 719  # CUresult


def entry_of(point: GpuPoint, **changes: Any) -> LibraryEntry:
    machine = gpu_machine("simulator", chip_of(point.chip), "PTX simulator")
    bound = point.problem, point.candidate, point.script()
    return replace(LibraryEntry(*bound, machine, 1, None, "", None, 9, program=compiled(point)), **changes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(
        c_files(tuple(map(entry_of, (*POINTS, WITH_MAPS, WITH_SCALES, WITH_COPIES)))),
        tmp_path_factory.mktemp("library"),
    )


@pytest.fixture(scope="module")
def built(folder: Path) -> ctypes.CDLL:
    return shared_object(folder, "tuner_matmul_gpu.c")


@pytest.fixture
def stub(built: ctypes.CDLL) -> StubDriver:
    found = StubDriver()
    built.tuner_gpu_use_driver(found.path.encode())
    return found


ON_ENCODE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    *(ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_uint64),
    *(ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint32)),
    ctypes.c_int,
)


def encode(to: int, dtype: int, rank: int, at: int, sizes: Any, strides: Any, box: Any, swizzle: int) -> int:
    numbers = tuple(sizes[:rank]), tuple(strides[: rank - 1]), tuple(box[:rank])
    content = EncodedMap(at, *numbers, dtype, swizzle).encode()
    ctypes.memmove(to, content, len(content))
    return 0


def arguments_of(problem: Problem, addresses: list[int], stream: int = 0) -> list[Any]:
    return [*map(ctypes.c_uint64, addresses), *map(ctypes.c_int64, problem.extents), ctypes.c_void_p(stream)]


def run(library: ctypes.CDLL, device: CudaDevice, problem: Problem) -> int:
    """Calls a function on arrays in a device's memory; returns its code. C is compared if it launched."""
    rng = np.random.default_rng(3)
    inputs = draw(problem, draw_base(problem, rng), rng)
    c = unwritten_output(problem)
    arrays = [*inputs.arrays, c]
    addresses = [device.allocate(array.nbytes, 0) for array in arrays]
    for address, array in zip(addresses, arrays, strict=True):
        device.copy(address, array.ctypes.data, array.nbytes, 0)
    code = int(library[function_of(problem, "tuner_gpu").name](*arguments_of(problem, addresses)))
    device.copy(c.ctypes.data, addresses[-1], c.nbytes, 0)
    device.synchronize_stream(0)
    for address in addresses:
        device.free(address, 0)
    if code == LAUNCHED:
        verdict, worst = compare(inputs, c)
        assert verdict.max_error <= 1.0, worst
    return code


@pytest.mark.drawn(1)
@pytest.mark.parametrize("point", POINTS, ids=lambda point: f"{point.candidate.strategy} {point.problem.key}")
def test_a_kernel_is_launched_and_right(point: GpuPoint, built: ctypes.CDLL, stub: StubDriver) -> None:
    assert run(built, stub.open(), point.problem) == LAUNCHED
    assert stub.errors == []
    sizes = [(each, (*each.grid, *each.block)) for each in compiled(point).launches]
    assert stub.launches == [(each.kernel, (*size, each.dynamic_shared_bytes)) for each, size in sizes]
    assert stub.live_blocks == 0  # scratch memory was given back


def test_the_header_says_how_many_scales_there_are(folder: Path) -> None:
    header = (folder / "tuner_matmul_gpu.h").read_text()
    line = " * Scales, of float: scale_a is m x ceil(k / 128), scale_b ceil(n / 128) x ceil(k / 128).\n"
    assert header.count(line) == 1


def test_the_header_says_what_offsets_are(folder: Path) -> None:
    header = (folder / "tuner_matmul_gpu.h").read_text()
    assert (
        header.count(" * C[offsets[g]:offsets[g + 1]] = A[offsets[g]:offsets[g + 1]] B[g]; offsets has") == 1
    )
    sizes = "int64_t groups, int64_t m, int64_t n, int64_t k, void *stream"
    assert f"uint64_t a, uint64_t b, uint64_t offsets, uint64_t c, {sizes}" in header


@pytest.mark.parametrize("point", [WITH_MAPS, WITH_SCALES, WITH_COPIES], ids=lambda point: point.problem.key)
def test_a_kernel_gets_its_tensor_maps(
    point: GpuPoint, built: ctypes.CDLL, stub: StubDriver, tmp_path: Path
) -> None:
    source, with_maps = str(Path(__file__).with_suffix(".c")), str(tmp_path / "maps.so")
    cc(tmp_path, "-shared", "-fPIC", source, "-Wl,--no-as-needed", stub.path, "-o", with_maps)
    on_encode = ON_ENCODE(encode)
    pointer = ctypes.c_void_p.in_dll(ctypes.CDLL(with_maps), "on_encode")
    pointer.value = ctypes.cast(on_encode, ctypes.c_void_p).value
    built.tuner_gpu_use_driver(with_maps.encode())
    assert run(built, stub.open(), point.problem) == LAUNCHED
    launches = compiled(point).launches
    assert len(launches[-1].tensor_maps) >= 2
    assert [sizes[-1] for _, sizes in stub.launches] == [each.dynamic_shared_bytes for each in launches]


def test_a_kernel_is_loaded_once_and_launched_at_each_call(built: ctypes.CDLL, stub: StubDriver) -> None:
    device = stub.open()
    assert [run(built, device, SMALL) for _ in range(3)] == [LAUNCHED] * 3
    assert (stub.calls("cuModuleLoadData"), stub.calls("cuLaunchKernel")) == (1, 3)


def test_other_sizes_and_gpus_have_no_kernel(built: ctypes.CDLL, stub: StubDriver, tmp_path: Path) -> None:
    assert run(built, stub.open(), replace(SMALL, sizes=(5, 33, 8))) == NO_KERNEL
    program = replace(compiled(naive(SMALL)), chip="sm_100")
    machine = gpu_machine("simulator", chip_of("sm_100"), "none")
    later = entry_of(naive(SMALL), machine=machine, program=program)
    library = shared_object(write(c_files((later,)), tmp_path), "tuner_matmul_gpu.c")
    library.tuner_gpu_use_driver(stub.path.encode())
    assert run(library, stub.open(), SMALL) == NO_KERNEL  # it is one of sm_90
    assert stub.launches == []


def test_without_a_context_that_of_the_first_gpu_is_used(built: ctypes.CDLL, stub: StubDriver) -> None:
    device = stub.open()
    address = device.allocate(4096, 0)
    call, arguments = built.tuner_gpu_matmul_f32_nn, arguments_of(SMALL, [address] * 3)
    before = stub.calls("cuDevicePrimaryCtxRetain")
    for _ in range(2):
        with ThreadPoolExecutor(1) as other_thread:
            assert other_thread.submit(call, *arguments).result() == LAUNCHED
    assert stub.calls("cuDevicePrimaryCtxRetain") == before + 1


def test_bad_sizes_and_addresses_are_refused(built: ctypes.CDLL, stub: StubDriver) -> None:
    for addresses, sizes, code in (
        *(((16, 16, 16), sizes, BAD_SIZES) for sizes in ((0, 33, 7), (5, -1, 7), (5, 33, 2**31))),
        *((addresses, (5, 33, 7), BAD_ADDRESS) for addresses in ((0, 16, 16), (16, 8, 16), (16, 16, 24))),
    ):
        options = (*map(ctypes.c_uint64, addresses), *map(ctypes.c_int64, sizes))
        assert built.tuner_gpu_matmul_f32_nn(*options, None) == code, (addresses, sizes)
    assert stub.calls("cuInit") == 0


def test_a_failing_call_is_reported_and_scratch_memory_freed(built: ctypes.CDLL, stub: StubDriver) -> None:
    device = stub.open()
    stub.fail("cuLaunchKernel", LAUNCH_FAILED)
    addresses = [device.allocate(1 << 16, 0) for _ in range(3)]
    blocks = stub.live_blocks
    assert built[function_of(SPLIT, "tuner_gpu").name](*arguments_of(SPLIT, addresses)) == FAILED
    assert built.tuner_gpu_error() == LAUNCH_FAILED
    assert stub.calls("cuMemAllocAsync") - 3 == stub.calls("cuMemFreeAsync") >= 1
    assert blocks == 3


def test_a_lack_of_memory_is_reported_and_loading_tried_again(built: ctypes.CDLL, stub: StubDriver) -> None:
    device = stub.open()
    stub.fail("cuModuleLoadData", OUT_OF_MEMORY)
    assert run(built, device, SMALL) == FAILED
    assert built.tuner_gpu_error() == OUT_OF_MEMORY
    assert run(built, device, SMALL) == LAUNCHED


def test_without_a_gpu_the_code_says_so(built: ctypes.CDLL, stub: StubDriver) -> None:
    stub.machine(gpus=0)
    assert built.tuner_gpu_matmul_f32_nn(*arguments_of(SMALL, [16, 16, 16])) == NO_DEVICE


@pytest.mark.slow
@pytest.mark.skipif(has_driver(), reason="a CUDA driver is here")
def test_a_program_without_a_driver_links_and_gets_no_device(folder: Path, tmp_path: Path) -> None:
    code = "int code = tuner_gpu_matmul_f32_nn(16, 16, 16, 5, 33, 7, 0);"
    result = "return code == TUNER_GPU_NO_DEVICE && tuner_gpu_error() == 0 ? 0 : 1;"
    (folder / "use.c").write_text(f'#include "tuner_matmul_gpu.h"\nint main(void) {{ {code} {result} }}\n')
    cc(folder, "use.c", "tuner_matmul_gpu.c", "-o", str(tmp_path / "use"))
    assert subprocess.run([tmp_path / "use"], env=BARE, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
def test_the_example_of_cmake_builds_the_library(folder: Path, tmp_path: Path) -> None:
    for command in (["cmake", "-S", str(folder), "-B", str(tmp_path)], ["cmake", "--build", str(tmp_path)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_header_says_what_was_timed_and_a_cubin_is_preferred(folder: Path, tmp_path: Path) -> None:
    header = (folder / "tuner_matmul_gpu.h").read_text()
    assert "NOT TIMED: every kernel was verified in tuner's PTX simulator and never timed on a GPU" in header
    assert " *   5x33x7, sm_90, verified, not timed, trial 9\n" in header
    program = replace(compiled(naive(SMALL)), binary=b"\x7fELF and more")
    write(c_files((entry_of(naive(SMALL), program=program, median_s=2e-6),)), tmp_path)
    source = (tmp_path / "tuner_matmul_gpu.c").read_text()
    assert "0x7f,0x45,0x4c,0x46,0x20,0x61,0x6e,0x64,0x20,0x6d,0x6f,0x72,0x65,\n" in source
    assert "/* cubin for sm_90 */" in source
    header = (tmp_path / "tuner_matmul_gpu.h").read_text()
    assert "NOT TIMED" not in header
    assert "5x33x7, sm_90, 2 us (unknown: it was not recorded), trial 9" in header
    cc(tmp_path, "-c", "tuner_matmul_gpu.c", "-o", "gpu.o")


def test_an_entry_without_a_program_is_compiled_again_and_named_where_that_fails(tmp_path: Path) -> None:
    entry = entry_of(naive(SMALL), program=None)
    write(c_files((entry,)), tmp_path)
    cc(tmp_path, "-c", "tuner_matmul_gpu.c", "-o", "gpu.o")
    with pytest.raises(TunerError, match=r"trial 9: matmul 5x33x7 f32 nn none: script:1:7: "):
        c_files((replace(entry, script="module {"),))
