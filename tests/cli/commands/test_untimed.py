"""Commands on results without a time: verified by a simulator, shown, exported, checked again."""

import re
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Tuner, counts, require, require_fields
from tests.tuning import fakes

TUNE = "tune matmul 8x8x8 --target simulator --dtype f16 --sampler exhaustive"


@pytest.fixture
def untimed(tmp_path: Path) -> Tuner:
    return Tuner(tmp_path / "results.db", fakes.untimed_backends())


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    tuner = Tuner(tmp_path_factory.mktemp("verified") / "results.db", fakes.untimed_backends())
    done = tuner.done(f"{TUNE} --trials 20 --chip sm_90")
    return tuner.database, done


@pytest.fixture
def verified(untimed: Tuner, whole_run: tuple[Path, Done]) -> Tuner:
    shutil.copy(whole_run[0], untimed.database)
    return untimed


def test_a_run_without_times_reports_what_was_verified_and_what_to_do(whole_run: tuple[Path, Done]) -> None:
    done = whole_run[1]
    why = "times     none: target simulator:sm_90 has no clock, nothing is ranked"
    require(done.out, "verified  18 of 20 trials of run 1", why, "order     trials 1, 3, ")
    blocks = r"\d+ blocks, of which \d+ x \d+ run at once"
    spills = rf"\d+ bytes spilled, {blocks}, [\d.]+ bytes read per flop, occupancy \d+%"
    facts = rf"first, by occupancy and bytes read per flop; \d+: .*{spills}"  # without machine code
    assert re.search(facts, " ".join(done.out.split()))
    require(done.out, "18 verified, 2 failed, 9 of them reused", "tuner history --run 1 --status verified")
    assert "tuner export --trial 1 -o verified.mlir" in done.out
    assert "baseline" not in done.err


def test_json_has_no_best_and_a_run_in_which_nothing_is_right_fails(untimed: Tuner) -> None:
    document = untimed(f"{TUNE} --trials 20 --json").json
    found = counts(proposed=20, verified=18, failed=2, reused=9)
    require_fields(document, best=None, target="simulator:sm_90", counts=found)
    target = untimed.backends.statuses()[:1]
    untimed.backends = fakes.backends(target, runner=fakes.untimed_runner, bind=lambda *_: fakes.failing_bind)
    done = untimed.failed(f"{TUNE} --trials 2 --fresh")
    assert "no candidate worked: 2 trials: 0 measured, 2 failed" in done.err


def test_verified_trials_are_found_by_status_target_and_output(verified: Tuner) -> None:
    for options, count in (
        *(("--status verified", 18), ("--target simulator", 20), ("--target simulator:sm_80", 0)),
        *(("--output-dtype f32", 20), ("--output-dtype f16", 0)),
    ):
        assert len(verified(f"history {options} --json").json) == count
    verified(f"{TUNE} --trials 3 --output-dtype f16")
    found = verified("history --output-dtype f16 --json").json
    assert [trial["problem"]["output"] for trial in found] == ["f16"] * 3
    assert "8x8x8 f16 -> f16" in verified("history --output-dtype f16").out


def test_show_reports_resources_and_notes_and_there_is_no_best(verified: Tuner) -> None:
    shown = verified("show 1").out
    error = "verified  64 elements, largest error 0.25 of the tolerance"
    require(shown, "status    verified", error, "note      1 of 1 blocks")
    kernel = "k: 32 registers, 0 + 0 bytes spilled, 1024 + 0 shared bytes (dynamic +"
    assert f"kernel    {kernel}\n          static), occupancy 50%: 4 blocks\n" in shown
    document = verified("show 1 --json").json
    assert document["resources"][0]["registers"] == 32
    assert document["verdict"]["notes"] == ["1 of 1 blocks"]
    assert "best      none: nothing was timed" in verified("show run:1").out
    refused = verified.refused("export matmul 8x8x8 --dtype f16 --target simulator")
    found = "nothing measured, only verified, which ranks nothing; the latest such trial is 20 of run 1"
    assert refused.endswith(f": {found}\nhint: tuner export --trial 20\n")
    assert "hint: tuner export --trial 20" in verified("export matmul 8x8x8 --dtype f16").err


def test_a_verified_trial_is_exported_in_every_form(verified: Tuner, tmp_path: Path) -> None:
    script = verified("export --trial 1").out
    require(script, ": verified, not timed; baseline not measured\n", " on simulator:sm_90, ")
    assert verified("export --trial 1 --format ptx").out == '{"x": 0}'
    cubin = tmp_path / "k.cubin"
    done = verified("export --trial 1 --format cubin -o", str(cubin))
    assert (done.code, "its PTX is verified; this machine code never ran" in done.err) == (0, True)
    assert cubin.read_bytes() == b"elf"
    as_json = verified("export --trial 1 --format ptx --json").json
    assert as_json == {"trial": 1, "format": "ptx", "text": '{"x": 0}'}
    refused = verified.refused("export --trial 1 --format cubin --json")
    assert "cubin: machine code cannot be printed as JSON\nhint: -o FILE\n" in refused
    assert "source of 8x8x8" in verified("export --trial 1 --format source").out


def test_an_exported_script_is_verified_again(verified: Tuner, tmp_path: Path) -> None:
    script = tmp_path / "verified.mlir"
    verified("export --trial 1 -o", str(script))
    done = verified("check", str(script))
    assert (done.code, done.out) == (0, "correct; 64 elements verified, nothing timed\n")
    nothing = ("median_s", "recorded_s", "recorded_reliability", "ratio", "interval")
    reasons = dict.fromkeys(("ratio_unknown", "reason"), "64 elements verified, nothing timed")
    found = {"correct": True, "passed": True, "finding": "verified", "sessions": 0, **reasons}
    document = {**dict.fromkeys(nothing), **found, "reliability": "unknown: not timed"}
    assert verified("check", str(script), "--json").json == document
    wrong = '{"x": 0, "deed": "wrong", "at": "verify"}'
    script.write_text(script.read_text().replace('{"comment": "a", "x": 0}', wrong))
    assert verified("check", str(script)).code == 1
