import dataclasses

import pytest

from tests.tuning.fakes import MACHINE
from tuner.errors import UsageError
from tuner.problem import Matmul
from tuner.tuning.memory import GIB, require_memory


def test_a_problem_that_fits_passes() -> None:
    require_memory(Matmul(512, 512, 512), MACHINE)


@pytest.mark.parametrize("sizes", [(2**31 - 1, 2**31 - 1, 2**31 - 1), (50_000, 50_000, 1), (1, 1, 2**31 - 1)])
def test_an_enormous_problem_is_refused_with_both_sizes(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError, match=r"reference need [\d.]+ GiB, available 8\.0 GiB"):
        require_memory(Matmul(*sizes), dataclasses.replace(MACHINE, memory_bytes=8 * GIB))


def test_a_machine_whose_memory_is_unknown_refuses_nothing() -> None:
    """That of another tuner's recording, where nothing is allocated."""
    require_memory(Matmul(100_000, 100_000, 100_000), dataclasses.replace(MACHINE, memory_bytes=0))
