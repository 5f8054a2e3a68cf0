"""Every payload goes through the lowering to PTX and cubin, on every chip."""

import functools
from dataclasses import replace

import pytest

from tests.mlir.gpu.kernels.cases import CASES, Case
from tests.mlir.kernels import parsed
from tuner.core.gpu import CHIPS, chip_of
from tuner.core.gpu_code import KernelProgram
from tuner.mlir.gpu import lowering
from tuner.search.cost_model.occupancy import require_launchable
from tuner.targets.gpu.compiler import find_ptxas

pytestmark = pytest.mark.mlir


IDS = [case.name for case in CASES]


@functools.cache
def program_of(case: Case, chip: str = "sm_90") -> KernelProgram:
    with parsed(case.text) as module:
        program = lowering.lower_to_program(module, chip_of(chip), case.buffers)
    assert isinstance(program, KernelProgram)
    return program


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_payload_lowers_with_its_shared_memory_dynamic(case: Case) -> None:
    program = program_of(case)
    (launch,) = program.launches
    assert launch.dynamic_shared_bytes == case.shared_bytes
    assert launch.arguments == tuple(buffer.name for buffer in case.buffers)
    statics = program.ptx.count(".shared .align") - program.ptx.count(".extern .shared .align")
    assert statics == 0
    assert program.ptx.count(".extern .shared") == (1 if case.shared_bytes else 0)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_payload_assembles_and_can_be_launched(case: Case, chip: str) -> None:
    ptxas = find_ptxas()
    if ptxas is None or chip not in ptxas.chips:
        pytest.skip("no ptxas for this chip: extra cuda, or one on PATH")
    program = ptxas.assemble(program_of(case, chip))
    require_launchable(program)
    assert program.cubin.startswith(b"\x7fELF")


def test_without_the_barrier_between_them_buffers_are_apart() -> None:
    (case,) = (case for case in CASES if case.name == "reuse")
    head, middle, tail, rest = case.text.split("    gpu.barrier\n")
    together = program_of(replace(case, source="    gpu.barrier\n".join((head, middle + tail, rest))))
    assert together.launches[0].dynamic_shared_bytes == 2 * case.shared_bytes


def test_private_attributions_are_every_threads_own() -> None:
    (case,) = (case for case in CASES if case.name == "private")
    ptx = program_of(case).ptx
    assert ".local .align 4 .b8" in ptx
    assert "st.local" in ptx
