import re

import pytest

from tuner.core.gpu import chip_of
from tuner.core.machine import gpu_machine
from tuner.core.problem import Matmul, Problem
from tuner.space.scripts.choice import default_script

PADDED = re.compile(r'"tuner\.pad_views"\(%matmul_tensors\) {sizes = array<i64: ([^>]+)>}')
SIMULATOR = gpu_machine("simulator", chip_of("sm_90"), "PTX simulator")


PROBLEMS = (
    *(Matmul(64, 64, 64), Matmul(3, 5, 7), Matmul(1, 1, 1)),
    *(Matmul(64, 32, 48, "bf16", "tn"), Matmul(8, 8, 8, "f64")),
)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_size_gets_a_script_for_it(problem: Problem) -> None:
    script = default_script(problem, SIMULATOR)
    assert script is not None
    (padded,) = PADDED.findall(script.text)
    assert all(int(one) >= size for one, size in zip(padded.split(", "), problem.sizes, strict=True))


def test_what_the_file_wants_tried_first_is_taken_where_it_is_allowed() -> None:
    script = default_script(Matmul(256, 256, 64), SIMULATOR)
    assert script is not None
    assert "transform.nvgpu.pipeline_shared_memory_copies" in script.text  # tiled, not the naive strategy


def test_a_problem_of_no_strategy_has_none() -> None:
    from tests.fakes import FakeTarget

    assert default_script(Matmul(8, 8, 8, "f16"), FakeTarget().machine()) is None
