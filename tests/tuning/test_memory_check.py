import dataclasses
from pathlib import Path

import pytest

from tests.tuning import fakes
from tests.tuning.fakes import MACHINE
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.core.processors import Processors
from tuner.db.store import Store
from tuner.tuning.events import Interruption
from tuner.tuning.request import GIB, require_memory, require_threads, require_workers
from tuner.tuning.run import begin


def test_a_problem_that_fits_passes() -> None:
    require_memory(Matmul(512, 512, 512), MACHINE)


@pytest.mark.parametrize("sizes", [(2**31 - 1, 2**31 - 1, 2**31 - 1), (50_000, 50_000, 1), (1, 1, 2**31 - 1)])
def test_an_enormous_problem_is_refused_with_both_sizes(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError, match=r"reference need [\d.]+ GiB, available 8\.0 GiB"):
        require_memory(Matmul(*sizes), dataclasses.replace(MACHINE, memory_bytes=8 * GIB))


def test_a_machine_whose_memory_is_unknown_refuses_nothing() -> None:
    """That of another tuner's recording, where nothing is allocated."""
    require_memory(Matmul(100_000, 100_000, 100_000), dataclasses.replace(MACHINE, memory_bytes=0))


def test_more_workers_than_the_memory_holds_are_refused() -> None:
    machine = dataclasses.replace(MACHINE, memory_bytes=2 * GIB)
    require_workers(10, machine)
    require_workers(10**6, dataclasses.replace(machine, memory_bytes=0))
    with pytest.raises(UsageError, match="workers: found 11, allowed 1 to 10: each is a process"):
        require_workers(11, machine)


def test_a_run_with_a_million_processes_does_not_begin(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "results.db")) as store:
        with pytest.raises(UsageError, match="workers: found 1000000, allowed 1 to"):
            begin(fakes.settings(workers=10**6), fakes.backends(), store, Interruption())
        assert store.runs() == ()


def test_more_threads_than_processors_are_refused() -> None:
    machine = dataclasses.replace(MACHINE, name="eight", logical_cores=8, chip="")
    eight = Processors(present=8, allowed=8)
    require_threads(8, machine, eight)
    require_threads(9, dataclasses.replace(machine, logical_cores=0), eight)
    require_threads(9, dataclasses.replace(machine, chip="sm_90"), Processors(8, 1))
    with pytest.raises(UsageError, match="threads: found 9, allowed up to 8, the processors of eight"):
        require_threads(9, machine, eight)


@pytest.mark.parametrize(
    ("processors", "message"),
    [
        (Processors(8, 2), r"found 4, allowed up to 2: the affinity mask .*taskset.* allows 2 of 8"),
        (Processors(8, 8, 2.5), r"found 4, allowed up to 2: the quota .*\(cpu.max\) is 2.5 processors"),
        (Processors(8, 3, 2.0), r"found 4, allowed up to 2: the quota of the control group"),
        (Processors(8, 2, 4.0), r"found 4, allowed up to 2: the affinity mask"),
        (Processors(1, 1, 0.5), r"found 4, allowed up to 1, the processors of"),
    ],
)
def test_processors_that_the_process_may_not_use_are_no_package_for_threads(
    processors: Processors, message: str
) -> None:
    machine = dataclasses.replace(MACHINE, logical_cores=processors.allowed)
    require_threads(processors.usable, machine, processors)
    with pytest.raises(UsageError, match=f"^threads: {message}") as raised:
        require_threads(4, machine, processors)
    assert "\n" not in str(raised.value)


def test_a_run_with_a_million_threads_does_not_begin(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "results.db")) as store:
        with pytest.raises(
            UsageError, match="threads: found 1000000, allowed up to 2, the processors of fake"
        ):
            begin(fakes.settings(threads=10**6), fakes.backends(), store, Interruption())
        assert store.runs() == ()
