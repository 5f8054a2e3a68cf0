"""Which outcome of the past holds for a candidate, over SQLite and PostgreSQL alike."""

from dataclasses import replace

import pytest

from tests.db.values import KEY, SCRIPT, TOO_WIDE, add, begin, outcome, sha256, timed
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage
from tuner.core.problem import Matmul
from tuner.core.records import Measurement, Verdict
from tuner.core.runs import ReuseKey
from tuner.db.store import Store


@pytest.mark.drawn(2)
@pytest.mark.parametrize("result", [timed(0.5), Verdict(0.25, 4096)], ids=["timed", "verified"])
def test_a_known_outcome_is_recalled_by_script_or_by_code(
    store: Store, result: Measurement | Verdict
) -> None:
    known = add(store, begin(store), 0, outcome(result, artifact="c0de"))
    for options in (
        {"script_sha256": sha256(SCRIPT)},
        {"artifact_sha256": "c0de"},
        {"script_sha256": sha256(SCRIPT), "artifact_sha256": "c0de"},
    ):
        found = store.recall(KEY, **options)
        assert found is not None
        assert (found.id, found.record) == (known, outcome(result, artifact="c0de"))


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"script_sha256": "", "artifact_sha256": ""},
        {"script_sha256": sha256("another")},
        {"artifact_sha256": "beef"},
        {"script_sha256": sha256(SCRIPT), "artifact_sha256": "beef"},
    ],
    ids=str,
)
def test_nothing_is_recalled_without_equal_code(store: Store, options: dict[str, str]) -> None:
    add(store, begin(store), 0, outcome(timed(0.5), artifact="c0de"))
    add(store, begin(store), 0, replace(outcome(TOO_WIDE), script_sha256=""), script="")
    assert store.recall(KEY, **options) is None


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "key",
    [
        replace(KEY, problem=Matmul(512, 512, 513)),
        replace(KEY, target=TargetName("simulator")),
        replace(KEY, threads=2),
        replace(KEY, machine="Ryzen 9 avx2"),
        replace(KEY, compiler="LLVM 22"),
    ],
    ids=["problem", "target", "threads", "machine", "compiler"],
)
def test_nothing_is_recalled_under_another_key(store: Store, key: ReuseKey) -> None:
    add(store, begin(store), 0, outcome(timed(0.5)))
    assert store.recall(key, sha256(SCRIPT)) is None
    assert store.recall(KEY, sha256(SCRIPT)) is not None


@pytest.mark.drawn(2)
@pytest.mark.parametrize("stage", Stage)
def test_failures_are_recalled_when_they_would_repeat(store: Store, stage: Stage) -> None:
    add(store, begin(store), 0, outcome(Failure(stage, "why")))
    found = store.recall(KEY, sha256(SCRIPT))
    if stage in (Stage.BIND, Stage.COMPILE, Stage.RESOURCES, Stage.VERIFY):
        assert found is not None
        assert found.record == outcome(Failure(stage, "why"))
    else:
        assert found is None


def test_an_incomplete_or_pending_or_reused_outcome_is_not_recalled(store: Store) -> None:
    run = begin(store)
    add(store, run, 0, outcome(timed(0.5, is_complete=False)))
    add(store, run, 1, None)
    original = add(store, run, 2, outcome(timed(0.4)))
    add(store, run, 3, replace(outcome(timed(0.4)), reused_from=original))
    found = store.recall(KEY, sha256(SCRIPT))
    assert found is not None
    assert found.id == original


def test_the_latest_outcome_is_recalled(store: Store) -> None:
    add(store, begin(store), 0, outcome(timed(0.5)))
    latest = add(store, begin(store), 0, outcome(timed(0.6)))
    found = store.recall(KEY, sha256(SCRIPT))
    assert found is not None
    assert found.id == latest


def test_a_stale_time_is_not_recalled(store: Store) -> None:
    known = add(store, begin(store), 0, outcome(timed(0.5)))
    assert store.recall(KEY, script_sha256=sha256(SCRIPT)) is not None
    store.mark_stale(known, "the code is another one now")
    assert store.recall(KEY, script_sha256=sha256(SCRIPT)) is None
