import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.mlir.gpu_matmul import gpu_payload, gpu_script
from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import CHIPS, chip_of
from tuner.core.gpu_code import KernelBuffer, KernelProgram, Launch, buffers_of
from tuner.core.problem import Matmul, Problem
from tuner.mlir import transform
from tuner.mlir.gpu import lowering
from tuner.search.cost_model.occupancy import require_launchable
from tuner.targets.gpu.compiler import find_ptxas

PROBLEM = Matmul(64, 96, 48)
ENTRY = re.compile(r"\.visible \.entry (\w+)\(")
TWO_KERNELS = text_beside(__file__, "TWO_KERNELS")
AB = (KernelBuffer("a", 256, "input"), KernelBuffer("c", 256, "output"))


@contextmanager
def transformed(problem: Problem, script: str) -> Iterator[Any]:
    with parsed(gpu_payload(problem)) as module:
        transform.apply_script(module, transform.parse(script, "script"))
        yield module


def program_of(module: Any, chip: str, buffers: tuple[KernelBuffer, ...]) -> KernelProgram:
    program = lowering.lower_to_program(module, chip_of(chip), buffers)
    assert isinstance(program, KernelProgram)
    return program


@functools.cache
def lower_matmul(chip: str = "sm_90") -> KernelProgram:
    with transformed(PROBLEM, gpu_script()) as module:
        return program_of(module, chip, buffers_of(PROBLEM))


@functools.cache
def lower(text: str) -> KernelProgram:
    with parsed(text) as module:
        return program_of(module, "sm_90", AB)


def test_a_script_becomes_a_program_that_can_be_launched() -> None:
    program = lower_matmul()
    assert program.launches == (Launch("matmul_kernel", (3, 2, 1), (8, 8, 1), 4096, ("a", "b", "c")),)
    assert program.buffers == buffers_of(PROBLEM)
    assert (program.chip, program.cubin, program.resources) == ("sm_90", b"", ())
    assert ENTRY.findall(program.ptx) == ["matmul_kernel"]
    require_launchable(program)
    assert lower_matmul.__wrapped__("sm_90") == program  # the same PTX
    assert ".extern .shared .align 128 .b8 __dynamic_shmem__0[];" in program.ptx
    assert len(re.findall(r"\.shared \.align", program.ptx)) == 1  # nothing static next to it


def test_the_launch_of_the_module_reports_its_shared_memory() -> None:
    with transformed(PROBLEM, gpu_script()) as module:
        lowering.outline(module, chip_of("sm_90"), buffers_of(PROBLEM))
        text = str(module)
    assert "dynamic_shared_memory_size %c4096_i32" in text
    assert "gpu.dynamic_shared_memory" in text
    assert "memref.alloc" not in text


@pytest.mark.drawn(2)
@pytest.mark.parametrize("chip", CHIPS)
def test_every_chip_gets_its_own_ptx_which_its_ptxas_takes(chip: str) -> None:
    program = lower_matmul(chip)
    assert f".target {chip}\n" in program.ptx
    ptxas = find_ptxas()
    if ptxas is None or chip not in ptxas.chips:
        pytest.skip("no ptxas for this chip: extra cuda, or one on PATH")
    assembled = ptxas.assemble(program)
    require_launchable(assembled)
    assert assembled.cubin.startswith(b"\x7fELF")
    assert assembled.resources[0].blocks_per_multiprocessor > 0


def test_buffers_above_the_limit_of_the_chip_are_refused() -> None:
    # two tiles of 128 x 256 f32 are 256 KiB: neither MLIR nor ptxas would mind
    problem = Matmul(128, 128, 512)
    found = r"^shared memory of matmul_kernel: found 262144 bytes, allowed 232448 \(at line \d+:\d+\)$"
    large = transformed(problem, gpu_script(block=128, depth=256))
    with large as module, pytest.raises(CandidateError, match=found) as failure:
        program_of(module, "sm_90", buffers_of(problem))
    assert failure.value.stage is Stage.RESOURCES


def test_several_kernels_are_one_ptx_text_and_launched_in_order() -> None:
    program = lower(TWO_KERNELS)
    assert program.launches == (
        Launch("twice_kernel", (2, 1, 1), (32, 1, 1), 0, ("a", "workspace")),
        Launch("twice_kernel_1", (1, 1, 1), (32, 2, 1), 0, ("workspace", "c")),
    )
    assert program.buffers == (*AB, KernelBuffer("workspace", 256, "scratch"))
    assert sorted(ENTRY.findall(program.ptx)) == ["twice_kernel", "twice_kernel_1"]
    # an unread atomic is relaxed and within the device
    assert re.search(r"(atom|red)(\.relaxed)?(\.gpu)?\.global(\.gpu)?\.add\.f32", program.ptx)
    assert "acq_rel" not in program.ptx
    assert "fence" not in program.ptx


def test_what_no_pass_can_lower_is_the_candidates_failure_in_one_line() -> None:
    left = "linalg.fill ins(%x : f32) outs(%w : memref<64xf32>)\n    gpu.terminator"
    message = r"^linalg\.fill at line .*: found no lowering, allowed what lowers to NVVM$"
    with pytest.raises(CandidateError, match=message) as failure:
        lower(TWO_KERNELS.replace("gpu.terminator", left, 1))
    assert failure.value.stage is Stage.COMPILE


def test_code_outside_of_the_kernels_is_refused() -> None:
    outside = pytest.raises(CandidateError, match=r"^matmul: found \S+ outside of every gpu\.launch$")
    with parsed(gpu_payload(PROBLEM)) as module, outside:
        program_of(module, "sm_90", buffers_of(PROBLEM))


def test_outlined_kernels_stay_as_they_are(golden: Callable[[str, str], None]) -> None:
    with parsed(TWO_KERNELS) as module:
        lowering.outline(module, chip_of("sm_90"), AB)
        golden("gpu_lowering_two_kernels.mlir", str(module))
