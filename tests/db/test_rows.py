"""Any value comes back as it was given, over SQLite and PostgreSQL alike."""

import datetime
import math
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite

from tests.db.test_database import connected
from tests.db.values import COMPILER, MACHINE, SETTINGS, add, begin, outcome, sha256, time_again, timed
from tests.epilogues import EPILOGUES
from tests.examples import costly
from tests.tuning.fakes import present
from tuner.core.candidate import Candidate, TargetName
from tuner.core.compiled_code import BufferMap, KernelBuffer, KernelCode, Launch, Resources, TensorMapLayout
from tuner.core.dtypes import INPUT_DTYPES, number_type
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.fusion_facts import FusionFacts
from tuner.core.gpu import chip_of
from tuner.core.machine import Machine, gpu_machine
from tuner.core.matmul import Matmul
from tuner.core.plausibility import LEAST_S, MOST_S
from tuner.core.problem import (
    LAYOUTS,
)
from tuner.core.problem_classes import FusedProblem, MatmulProblem
from tuner.core.queries import TaskQuery, TrialQuery
from tuner.core.records import Conditions, GpuState, Measurement, Record, Span, Verdict
from tuner.core.runs import ORIGINS, PATH_FOLLOWS, ChosenStrategy, Compiler, InitialConfiguration, RunSettings
from tuner.core.serialization import encode
from tuner.db import rows
from tuner.db.columns import Compressed, PlainText, UtcDateTime, json_value, plain
from tuner.db.models import ArtifactRow, EnvironmentRow, MachineRow, ResourcesRow
from tuner.db.store import Store

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
kinds = st.text(st.characters(exclude_characters="\0:", exclude_categories=["Cs"]), max_size=20)
with_words = [TargetName("cuda", "sm_90"), TargetName.parse("replay:a:b")]
targets = st.builds(TargetName, kinds) | st.sampled_from(with_words)
seconds = st.floats(allow_nan=False, allow_infinity=False)
call_seconds = st.floats(LEAST_S, MOST_S)
counts64 = st.integers(0, 2**63 - 1)
verdicts = st.builds(Verdict, st.floats(allow_nan=False), counts64)
readings = st.none() | seconds
gpu_states = st.builds(GpuState, *[readings] * 4, st.lists(texts, max_size=2).map(tuple))
spans = st.builds(Span, counts64, readings, readings, st.lists(texts, max_size=2).map(tuple))
measurements = st.builds(
    Measurement,
    st.lists(call_seconds, min_size=1, max_size=5).map(tuple),
    counts64,
    call_seconds,
    st.tuples(call_seconds, call_seconds),
    st.booleans(),
    st.none() | call_seconds,
    st.none() | st.builds(Conditions, gpu_states, gpu_states, st.none() | spans),
)
names = texts.filter(lambda name: PATH_FOLLOWS not in name)
strategies = st.builds(ChosenStrategy, names, st.none() | texts.map(lambda path: Path(f"/{path}")))
failures = st.builds(Failure, st.sampled_from(Stage), texts)
problems = st.builds(
    MatmulProblem,
    st.just("matmul"),
    st.tuples(*[st.integers(1, 2**31 - 1)] * 2, st.integers(1, number_type("i8").depth_limit)),
    st.sampled_from(tuple(INPUT_DTYPES)),
    st.sampled_from(LAYOUTS),
    st.sampled_from(EPILOGUES),
)
knobs = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=8), max_size=4)
candidates = st.builds(Candidate.of, texts, knobs)
points = st.builds(InitialConfiguration, candidates, st.sampled_from(ORIGINS), texts)
DIALECT = sqlite.dialect()


def test_conditions_of_older_databases_have_no_readings_between() -> None:
    state = GpuState(1.98e9, None, 60.0, None, ("power cap",))
    stored = encode(Conditions(state, state))
    del stored["between"]
    assert json_value(Conditions, stored) == Conditions(state, state)


@st.composite
def records(draw: st.DrawFn) -> tuple[Record, str]:
    script = draw(texts)
    result = draw(measurements | verdicts | failures)
    record = Record(
        problem=draw(problems),
        candidate=draw(candidates),
        target=draw(targets),
        outcome=result,
        script_sha256=sha256(script) if script else "",
        artifact_sha256=draw(texts),
        stage_s=tuple(draw(st.lists(st.tuples(texts, seconds), max_size=3))),
        verdict=None if isinstance(result, Verdict) else draw(st.none() | verdicts),
    )
    return record, script


@pytest.mark.slow
@settings(costly(25, 60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=records(), number=counts64, row=counts64, final=st.none() | measurements)
def test_any_record_comes_back_as_it_was_given(
    store: Store, drawn: tuple[Record, str], number: int, row: int, final: Measurement | None
) -> None:
    record, script = drawn
    run = begin(store, replace(SETTINGS, problem=record.problem, target=record.target))
    trial = store.propose(run, number, row, record.candidate)
    store.record(trial, record, script)
    if final is not None:
        time_again(store, run, (trial, final))
    found = store.trial(trial)
    assert found.record == record
    assert (found.final, found.script_text, found.number, found.row) == (final, script, number, row)
    assert (found.run, found.machine, found.threads) == (run, MACHINE, 1)


@settings(costly(15, 30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chosen=st.builds(
        RunSettings,
        problem=problems,
        target=targets,
        threads=counts64,
        strategies=st.lists(strategies, max_size=3).map(tuple),
        space_yaml=texts,
        sampler=texts,
        seed=st.integers(-(2**63), 2**63 - 1),
        trials=st.none() | counts64,
        budget_s=st.none() | seconds,
        workers=counts64,
        fresh=st.booleans(),
        warm_start=st.booleans(),
        warm_files=st.lists(texts, max_size=2).map(tuple),
        prior=texts,
        first=st.none() | st.lists(points, max_size=2).map(tuple),
    ),
    load=st.none() | seconds,
)
def test_any_settings_come_back_as_given(store: Store, chosen: RunSettings, load: float | None) -> None:
    run = store.run(store.begin_run(chosen, MACHINE, COMPILER, "0.1.0", load))
    assert (run.settings, run.load_average) == (chosen, load)


def test_every_field_is_a_column() -> None:
    for value, row, others in (
        (Machine, MachineRow, set()),
        (Compiler, EnvironmentRow, {"fingerprint", "tools"}),
    ):
        columns = {column.name for column in row.__table__.columns}
        assert {field.name for field in fields(value)} == columns - {"id", "content_sha256"} - others


@given(st.sampled_from([field.name for field in fields(Machine)]), st.integers() | st.text())
def test_machines_share_a_row_only_when_they_are_equal(name: str, value: int | str) -> None:
    other = Machine(**{**asdict(MACHINE), name: value})
    is_shared = rows.machine_row(other).content_sha256 == rows.machine_row(MACHINE).content_sha256
    assert is_shared == (repr(other) == repr(MACHINE))


@given(st.lists(st.tuples(st.text(), st.text())).map(tuple))
def test_a_compiler_comes_back_as_it_was_given(packages: tuple[tuple[str, str], ...]) -> None:
    compiler = replace(COMPILER, packages=packages)
    assert rows.compiler_of(rows.environment_row(compiler)) == compiler


def test_a_compiler_of_another_package_version_is_another_row() -> None:
    other = replace(COMPILER, packages=(("numba-cuda-mlir", "0.6.2"),))
    row = rows.environment_row(other)
    assert row.content_sha256 != rows.environment_row(COMPILER).content_sha256
    assert (row.fingerprint, row.tools) == (other.fingerprint, other.tools)


def test_a_fusion_keeps_its_text_and_facts_and_packed_weights_their_format() -> None:
    facts = FusionFacts((4, 8), visible=(-3, 0), elements=("bf16", "f32"))
    fusion = FusedProblem(
        "contraction", (4, 8, 2), "f32", batch=3, text="func.func @fusion() {}", facts=facts
    )
    packed = Matmul(4, 8, 64, weights="i4", group_size=32), Matmul(4, 8, 64, "bf16", "nt", weights="constant")
    for problem in (fusion, *packed):
        assert rows.problem_of(rows.problem_row(problem)) == problem


# GPU programs in the database: kept once, shown with every trial that ran them.

RESOURCES = Resources("matmul", 234, 0, 8, 1024, 98304, 16, 0.125, 2, ("C7519: slow", "and more"))
A_MAP = BufferMap("a_map0", "a", TensorMapLayout((8, 4), (16,), (8, 4), 6, swizzle=3))
LAUNCHES = (
    Launch("matmul", (4, 2, 1), (128, 1, 1), 98304, ("a_map0", "b", "workspace"), (A_MAP,), (8, 2)),
    Launch("reduce", (8, 1, 1), (256, 1, 1), 0, ("workspace", "c")),
)
WORKSPACE = KernelBuffer("workspace", 256, "scratch", is_zeroed=True)
BUFFERS = (KernelBuffer("a", 64, "input"), KernelBuffer("c", 64, "output"), WORKSPACE)
BOTH = (RESOURCES, replace(RESOURCES, kernel="reduce", registers=32, notes=()))
PTX = ".version 8.0\n.target sm_90\n// größer\n"
PROGRAM = KernelCode("sm_90", PTX, b"\x7fELF\0\xff", LAUNCHES, BUFFERS, BOTH)
VERDICT = Verdict(0.25, 4096, ("4 of 64 blocks simulated",))


def verified(program: KernelCode | None = PROGRAM, artifact: str = "c0b1") -> Record:
    resources = () if program is None else program.resources
    return replace(outcome(VERDICT, artifact=artifact), kernel_code=program, resources=resources)


def test_the_code_of_a_device_of_another_maker_is_stored_as_its_target_made_it(store: Store) -> None:
    launches = (Launch("k", (2, 1, 1), (64, 1, 1), 0, ("a", "c")),)
    code = KernelCode("gfx942", "define amdgpu_kernel void @k()", b"\x7fELF of gfx942\xff", launches, BUFFERS)
    trial = add(store, begin(store), 0, verified(code, artifact="a3d"))
    assert store.code(trial) == code
    assert code.is_for_device
    assert not KernelCode.of_host("llvm.func @f()").is_for_device


def stored_rows(url: str) -> list[int | None]:
    counts = (sa.select(sa.func.count()).select_from(table) for table in (ArtifactRow, ResourcesRow))
    with connected(url) as connection:
        return [connection.scalar(count) for count in counts]


def test_a_program_comes_back_with_its_resources_and_notes_even_if_pruned(store: Store) -> None:
    trial = add(store, begin(store), 0, verified())
    assert store.code(trial) == PROGRAM
    assert store.trial(trial).record == replace(verified(), problem=SETTINGS.problem, kernel_code=None)
    refused = replace(verified(), outcome=Failure(Stage.RESOURCES, "matmul: shared bytes"))
    assert store.code(add(store, begin(store), 0, refused)) == PROGRAM
    assert store.trials(TrialQuery(status="failed"))[0].record.resources == PROGRAM.resources


def test_equal_code_is_kept_once_and_none_of_an_outcome_that_is_refused(url: str) -> None:
    with Store.open(url) as store:
        run = begin(store)
        with pytest.raises(ValueError, match="allowed finite seconds"):
            add(store, run, 9, replace(verified(), outcome=timed(math.nan)))
        assert stored_rows(url) == [0, 0]
        for number in range(3):
            add(store, run, number, verified())
    assert stored_rows(url) == [1, 2]


def test_code_for_a_processor_has_no_program(store: Store) -> None:
    run = begin(store)
    assert store.code(add(store, run, 0, outcome(timed(1.0), artifact="c0de"))) is None
    assert store.code(add(store, run, 1, outcome(Failure(Stage.COMPILE, "no")))) is None
    with pytest.raises(UsageError, match="trial: found 99, allowed 1 to 2"):
        store.code(99)


def test_merging_brings_programs_along_once(store: Store, tmp_path: Path) -> None:
    url = str(tmp_path / "other.db")
    with Store.open(url) as other:
        run = begin(other)
        for number, record in enumerate((verified(), verified(), verified(None, artifact="c0de"))):
            add(other, run, number, record)
    assert (store.merge(url), store.merge(url)) == ((1, 3), (0, 0))
    trials = store.trials(TrialQuery(sort="number"))
    assert [store.code(trial.id) for trial in trials] == [PROGRAM, PROGRAM, None]
    assert [trial.record.resources for trial in trials] == [PROGRAM.resources] * 2 + [()]
    assert trials[0].record == replace(verified(), kernel_code=None)


def test_runs_for_a_chip_and_narrow_problems_come_back(store: Store) -> None:
    problem = Matmul(64, 64, 64, "f16", output="f16")
    settings = replace(SETTINGS, problem=problem, target=TargetName("simulator", "sm_90"))
    machine = gpu_machine("simulator", chip_of("sm_90"), "PTX simulator")
    run = store.run(begin(store, settings, machine))
    assert (run.settings, run.machine) == (settings, machine)
    begin(store)
    add(store, run.id, 0, verified())
    for target, count in (("simulator", 1), ("simulator:sm_90", 1), ("simulator:sm_80", 0), ("sim%", 0)):
        assert len(store.trials(TrialQuery(TaskQuery(target=target)))) == count, target
    for output, count in (("f16", 1), ("", 0)):
        assert len(store.trials(TrialQuery(TaskQuery(output=output)))) == count, output
    assert MACHINE.name != machine.name


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_text_that_can_be_stored_is_unchanged(text: str) -> None:
    assert plain(text) == text


@given(st.text(st.characters(categories=["Cs", "Lu"], include_characters="\0")))
def test_any_text_becomes_text_that_can_be_stored(text: str) -> None:
    assert "\0" not in plain(text)
    plain(text).encode("utf-8")


def test_what_cannot_be_stored_stays_visible_and_nothing_stays_nothing() -> None:
    assert plain("a\0b\udc80") == r"a\x00b\udc80"
    assert PlainText().process_bind_param(None, DIALECT) is None
    assert UtcDateTime().process_bind_param(None, DIALECT) is None
    assert UtcDateTime().process_result_value(None, DIALECT) is None
    with pytest.raises(ValueError, match="found 2026-01-01T00:00:00 without a zone"):
        UtcDateTime().process_bind_param(datetime.datetime(2026, 1, 1), DIALECT)


# Offsets, since a bare machine has no names of zones.
OFFSETS = st.timedeltas(datetime.timedelta(hours=-23), datetime.timedelta(hours=23)).map(datetime.timezone)


@given(st.datetimes(datetime.datetime(1971, 1, 1), timezones=OFFSETS))
def test_an_instant_is_stored_and_given_in_utc(time: datetime.datetime) -> None:
    column = UtcDateTime()
    stored = present(column.process_bind_param(time, DIALECT))
    assert stored.tzinfo is datetime.UTC
    for reported in (stored, stored.replace(tzinfo=None), time):
        assert column.process_result_value(reported, DIALECT) == stored


@given(st.binary())
def test_compressed_bytes_come_back_and_code_is_stored_smaller(content: bytes) -> None:
    stored = Compressed().process_bind_param(content, DIALECT)
    assert Compressed().process_result_value(stored, DIALECT) == content
    code = Compressed().process_bind_param(b"fma.rn.f32 %f1, %f2, %f3, %f4;\n" * 100, DIALECT)
    assert code is not None
    assert len(code) < 200
    assert Compressed().process_bind_param(None, DIALECT) is None
    assert Compressed().process_result_value(None, DIALECT) is None
