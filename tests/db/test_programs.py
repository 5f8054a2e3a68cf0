"""GPU programs in the database: kept once, told with every trial that ran them."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.db.values import MACHINE, SETTINGS, add, begin, outcome, timed
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.gpu import TensorMapLayout, chip_of
from tuner.core.gpu_code import BufferMap, KernelBuffer, KernelProgram, Launch, Resources
from tuner.core.machine import gpu_machine
from tuner.core.problem import Matmul
from tuner.core.records import Record, Verdict
from tuner.core.runs import TaskQuery, TrialQuery
from tuner.db.address import parse_address
from tuner.db.engine import open_engine
from tuner.db.models import ArtifactRow, ResourcesRow
from tuner.db.store import Store

RESOURCES = Resources("matmul", 234, 0, 8, 1024, 98304, 16, 0.125, 2, ("C7519: slow", "and more"))
A_MAP = BufferMap("a_map0", "a", TensorMapLayout((8, 4), (16,), (8, 4), 6, swizzle=3))
PROGRAM = KernelProgram(
    chip="sm_90",
    ptx=".version 8.0\n.target sm_90\n// größer\n",
    cubin=b"\x7fELF\0\xff",
    launches=(
        Launch("matmul", (4, 2, 1), (128, 1, 1), 98304, ("a_map0", "b", "workspace"), (A_MAP,), (8, 2)),
        Launch("reduce", (8, 1, 1), (256, 1, 1), 0, ("workspace", "c")),
    ),
    buffers=(
        KernelBuffer("a", 64, "input"),
        KernelBuffer("c", 64, "output"),
        KernelBuffer("workspace", 256, "scratch", is_zeroed=True),
    ),
    resources=(RESOURCES, replace(RESOURCES, kernel="reduce", registers=32, notes=())),
)
VERDICT = Verdict(0.25, 4096, ("4 of 64 blocks simulated",))


def verified(program: KernelProgram | None = PROGRAM, artifact: str = "c0b1") -> Record:
    resources = () if program is None else program.resources
    return replace(outcome(VERDICT, artifact=artifact), program=program, resources=resources)


def given(record: Record) -> Record:
    """Returns a record as the store reads it: without the program."""
    return replace(record, program=None)


def stored_rows(url: str) -> list[int | None]:
    """Returns how many programs and kernels a database keeps."""
    engine = open_engine(parse_address(url))
    with engine.connect() as connection:
        counts = [
            connection.scalar(sa.select(sa.func.count()).select_from(table))
            for table in (ArtifactRow, ResourcesRow)
        ]
    engine.dispose()
    return counts


def test_a_program_comes_back_as_it_was(store: Store) -> None:
    trial = add(store, begin(store), 0, verified())
    assert store.program(trial) == PROGRAM


def test_a_trial_reports_its_resources_and_notes(store: Store) -> None:
    trial = add(store, begin(store), 0, verified())
    record = store.trial(trial).record
    assert record == given(replace(verified(), problem=SETTINGS.problem))
    assert record.resources == PROGRAM.resources
    assert isinstance(record.outcome, Verdict)
    assert record.outcome.notes == VERDICT.notes


def test_a_program_that_was_pruned_is_kept_with_its_resources(store: Store) -> None:
    refused = replace(verified(), outcome=Failure(Stage.RESOURCES, "matmul: shared bytes"))
    trial = add(store, begin(store), 0, refused)
    assert store.program(trial) == PROGRAM
    found = store.trials(TrialQuery(status="failed"))[0].record
    assert found is not None
    assert found.resources == PROGRAM.resources


def test_equal_code_is_kept_once(url: str) -> None:
    with Store.open(url) as store:
        run = begin(store)
        for number in range(3):
            add(store, run, number, verified())
    assert stored_rows(url) == [1, 2]


def test_the_program_of_an_outcome_that_is_refused_is_not_kept(url: str) -> None:
    with Store.open(url) as store, pytest.raises(ValueError, match="allowed finite seconds"):
        add(store, begin(store), 0, replace(verified(), outcome=timed(math.nan)))
    assert stored_rows(url) == [0, 0]


def test_code_for_a_processor_has_no_program(store: Store) -> None:
    run = begin(store)
    assert store.program(add(store, run, 0, outcome(timed(1.0), artifact="c0de"))) is None
    assert store.program(add(store, run, 1, outcome(Failure(Stage.COMPILE, "no")))) is None
    with pytest.raises(UsageError, match="trial: found 99, allowed 1 to 2"):
        store.program(99)


def test_merging_brings_programs_along_once(store: Store, tmp_path: Path) -> None:
    url = str(tmp_path / "other.db")
    with Store.open(url) as other:
        run = begin(other)
        add(other, run, 0, verified())
        add(other, run, 1, verified())
        add(other, run, 2, verified(None, artifact="c0de"))
    assert store.merge(url) == (1, 3)
    assert store.merge(url) == (0, 0)
    trials = store.trials(TrialQuery(sort="number"))
    assert [store.program(trial.id) for trial in trials] == [PROGRAM, PROGRAM, None]
    assert [trial.record.resources for trial in trials] == [PROGRAM.resources] * 2 + [()]
    assert trials[0].record == given(verified())


def test_runs_for_a_chip_and_narrow_problems_come_back(store: Store) -> None:
    problem = Matmul(64, 64, 64, "f16", output="f16")
    settings = replace(SETTINGS, problem=problem, target=TargetName("simulator", "sm_90"))
    machine = gpu_machine("simulator", chip_of("sm_90"), "PTX simulator")
    run = store.run(begin(store, settings, machine))
    assert (run.settings, run.machine) == (settings, machine)
    begin(store)
    add(store, run.id, 0, verified())
    for query, count in (
        (TrialQuery(TaskQuery(target="simulator")), 1),
        (TrialQuery(TaskQuery(target="simulator:sm_90")), 1),
        (TrialQuery(TaskQuery(target="simulator:sm_80")), 0),
        (TrialQuery(TaskQuery(target="sim%")), 0),
        (TrialQuery(TaskQuery(output="f16")), 1),
        (TrialQuery(TaskQuery(output="")), 0),
    ):
        assert len(store.trials(query)) == count, query
    assert MACHINE.name != machine.name
