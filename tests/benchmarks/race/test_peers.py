"""The logs of other tuners are read as they write them, and each peer says how it is run."""

import datetime
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.race.environments import ROOT, environment_of
from benchmarks.race.peer import LoggedTrial, RaceMatmul
from benchmarks.race.peers import BASELINE, PEERS, ours, tvm, xtc
from benchmarks.race.peers.iree import module_text
from benchmarks.race.served import kernel_server


def test_every_peer_has_a_version_settings_with_their_page_and_types() -> None:
    assert BASELINE in PEERS
    for peer in PEERS.values():
        assert peer.settings
        assert peer.source.startswith("https://") or (ROOT / peer.source).exists()
        assert set(peer.dtypes) <= set(kernel_server.TYPES)
        pinned = [name for name in peer.requirements if name.startswith(peer.package)]
        assert not pinned or all("==" in name for name in pinned)
    assert environment_of(PEERS[BASELINE]).version.startswith("0.3.")


def test_a_log_of_xtc_gives_times_and_samples_without_a_line_that_is_not_complete(tmp_path: Path) -> None:
    log = tmp_path / "results.csv"
    assert xtc.logged(log) == ()
    lines = ("i,j,X,time,peak,backend", "2,4,[2; 4],2.5e-05,0.27,mlir", "1,1,[1; 1],inf,0,mlir", "3,1,[3;")
    log.write_text("\n".join(lines))
    assert xtc.logged(log) == ((2.5e-5, ("2", "4")), (None, ("1", "1")))


def test_records_of_tvm_give_means_and_the_first_ones_are_copied(tmp_path: Path) -> None:
    tuned, copied = tmp_path / "tuned", tmp_path / "copied"
    tuned.mkdir()
    copied.mkdir()
    records = tuned / tvm.RECORDS
    assert tvm.logged(records) == ()
    written = [json.dumps([0, [[[], []], run_s, {}, []]]) for run_s in ([1e-3, 3e-3], [1e10], [5e-3])]
    records.write_text("\n".join(written) + "\n[0, [[")
    (tuned / tvm.WORKLOADS).write_text("{}\n")
    assert tvm.logged(records) == (2e-3, None, 5e-3)
    tvm.copy_first(tuned, 2, copied)
    assert tvm.logged(copied / tvm.RECORDS) == (2e-3, None)


def test_trials_of_tuner_have_the_seconds_since_the_start_of_its_process(tmp_path: Path) -> None:
    database = tmp_path / "race.db"
    started = datetime.datetime(2026, 1, 31, 12)
    assert ours.logged(database, started) == ()
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE trial (finished TEXT, ranked_s REAL, status TEXT)")
        rows = (
            ("2026-01-31 12:00:05.5", None, "failed"),
            ("2026-01-31 12:00:03", 2e-3, "measured"),
            (None, None, None),
        )
        connection.executemany("INSERT INTO trial VALUES (?, ?, ?)", rows)
    assert ours.logged(database, started) == (LoggedTrial(3.0, 2e-3), LoggedTrial(5.5, None, is_failed=True))


@pytest.mark.parametrize(("dtype", "zero"), [("f32", "0.0 : f32"), ("bf16", "0.0 : f32"), ("i8", "0 : i32")])
def test_the_module_for_iree_sums_in_the_type_of_c_and_writes_it_in_place(dtype: str, zero: str) -> None:
    text = module_text(RaceMatmul(2, 3, 4, dtype))
    assert f"arith.constant {zero}" in text
    assert f"%a: tensor<2x4x{dtype}>, %b: tensor<4x3x{dtype}>" in text
    assert "{iree.abi.output = 0 : index}" in text
