import pytest

from tests.programs.lower.device_programs import LOOP_WITH_HOST, host_text, main_function

pytestmark = pytest.mark.mlir

synchronous = pytest.importorskip("tuner.programs.lower.streams.synchronous")


def test_the_host_waits_for_each_piece_of_work_in_loops_too() -> None:
    with main_function(LOOP_WITH_HOST) as (module, function):
        synchronous.wait_for_each(function)
        assert module.operation.verify()
        lines = [line.strip() for line in host_text(module).splitlines() if "gpu." in line][1:]
    assert len(lines) == 3 * 13
    for begin, work, end in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        token = begin.removesuffix(" = gpu.wait async")
        assert f" async [{token}] " in work
        assert end == f"gpu.wait [{work.split(' = ')[0].split(', ')[-1]}]"
