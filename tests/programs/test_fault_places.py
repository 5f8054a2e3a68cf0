"""Faults of kernels on the simulator name the line and column of the payload."""

import numpy as np
import pytest

from benchmarks.fuzzing.program_check import SIMULATOR
from benchmarks.program_compiler import compiler_of
from tests.programs.kernel_programs import arrays, program, ran, store
from tests.texts import text_beside
from tuner.core.gpu import DeviceError
from tuner.programs.run.device_function import DeviceFunction
from tuner.simulator.device.simulated_device import SimulatedDevice

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.gpu.lowering")


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_an_access_out_of_bounds() -> None:
    text = program(text_beside(__file__, "OUT_OF_BOUNDS"))
    place = f"at line {line_of(text, '[%c1, %far]')}:"
    with pytest.raises(DeviceError, match=rf"ld\.global.*\({place}\d+\): out of bounds"):
        ran(text, *arrays())


def test_a_race() -> None:
    text = program(text_beside(__file__, "RACE"))
    device = SimulatedDevice("sm_90")
    loaded = DeviceFunction(compiler_of(SIMULATOR).compile(text, None, None).code, device)
    loaded(*arrays())
    loaded.close()
    assert f"(at line {line_of(text, '%s[%r]')}:" in " ".join(map(str, device.reports))


def test_code_for_a_gpu_is_the_same_but_for_the_places() -> None:
    from tests.mlir.kernels import parsed
    from tuner.core.gpu import chip_of
    from tuner.mlir.gpu.lowering import kernels_to_ptx, outline_kernels, without_debug_sections

    def ptx(*, has_lines: bool) -> list[str]:
        with parsed(program(store("%v"))) as module:
            alignment_bytes = outline_kernels(module, chip_of("sm_90"))
            text = kernels_to_ptx(module, chip_of("sm_90"), alignment_bytes, has_lines=has_lines)
        return without_debug_sections(text).splitlines()

    marks = ("\t.loc", "\t.file", "$L__")
    plain = [line for line in ptx(has_lines=True) if not line.startswith(marks) and line]
    assert plain == [line for line in ptx(has_lines=False) if line]
    assert np.any([".loc" in line for line in ptx(has_lines=True)])
