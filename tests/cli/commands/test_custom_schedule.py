"""A user's own schedule through the commands: tuned, exported, applied, and refused when it is wrong."""

import re
import shutil
import warnings
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner, require, require_fields
from tests.cli.real import brief_remeasurement, real_candidates
from tests.mlir import test_script_linking as linking
from tests.support.llvm_tools import stock_result
from tuner.api import tuning
from tuner.core.matmul import Matmul

pytestmark = [pytest.mark.mlir, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[3] / "examples" / "matmul_knobs.mlir"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    """Gives a database with a real run of the example, small, and with a tile that never compiles."""
    folder = tmp_path_factory.mktemp("own")
    script = folder / "own.mlir"
    text = EXAMPLE.read_text().replace("{min = 2, max = 16, divides = 16}", "[8, 24]")
    script.write_text(text.replace("[1, 2, 4]", "[2]"))
    tuner = Tuner(folder / "results.db", real_candidates())
    with brief_remeasurement():
        options = "--sampler exhaustive --trials 20 --workers 1 --strategy"
        tuner.done(f"tune matmul 128x128x128 {options}", str(script))
    return tuner


def test_every_feasible_choice_is_tried_and_timed_or_its_failing_op_reported(real: Tuner) -> None:
    trials = real("history --json").json
    assert len(trials) == 2 * (2 + 1)  # the constraint leaves 8 rows 16 or 32 columns, 24 rows 16
    for trial in trials:
        status = "measured" if trial["knobs"]["tile_m"] == 8 else "failed"
        require_fields(trial, strategy="own", status=status)
    way_out = "a tile size does not divide (pad, peel, or give large enough vector_sizes)"
    failed = "linalg.fill at payload:7:16: Attempted to vectorize, but failed"
    why = f"{failed}; its sizes are dynamic: {way_out}"
    for trial in real("history --status failed --json").json:
        require_fields(trial, stage="compile", reason=why)


def test_its_choices_are_explained_and_its_asserts_reject_points_before_a_trial(real: Tuner) -> None:
    done = real("explain matmul 128x128x128 matmul_knobs(tile_m=8) --strategy", str(EXAMPLE))
    assert done.out.startswith("matmul_knobs(tile_m=8) is in ")
    found = real("space matmul 128x128x128 --strategy", str(EXAMPLE), "--json").json
    require_fields(found, cartesian=72, feasible=54, rejected={"(tile_m * tile_n) <= 384": 18})


def test_the_exported_script_is_one_candidate_and_applies_anywhere(real: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "best.mlir"
    assert real("export matmul 128x128x128 -o", str(path)).code == 0
    assert "portable  yes: its script calls no op of tuner" in real("show run:1").out
    assert '<"tile_m"> = 8 from options' in path.read_text()
    assert "constrain_params" not in path.read_text()
    applied = real.done("apply", str(path), str(tmp_path / "best.source.mlir"))
    assert "linalg.matmul" not in applied.out
    assert "vector.fma" in applied.out or "vector.outerproduct" in applied.out
    found = real("space matmul 128x128x128 --strategy", str(path), "--json").json
    require_fields(found, cartesian=1, feasible=1)
    payload = (tmp_path / "best.source.mlir").read_text()
    assert "linalg.matmul" not in stock_result(path.read_text(), payload, tmp_path)


def test_a_space_file_may_restrict_a_script_none_applies_with_open_knobs(real: Tuner, tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path / "own.mlir")
    (tmp_path / "space.yaml").write_text(
        "strategies:\n  mine:\n    template: own.mlir\n    ops: [matmul]\n    dtypes: [f32]\n"
        "    knobs:\n      tile_n: [16, 32]\n    constraints:\n      - outer_loop == 0\n"
    )
    found = real("space matmul 128x128x128 --space", str(tmp_path / "space.yaml"), "--json").json
    assert (found["cartesian"], found["feasible"]) == (4 * 2 * 3 * 2, (4 + 3) * 3)
    assert found["rejected"] == {"outer_loop == 0": 24, "(tile_m * tile_n) <= 384": 3}
    path = tmp_path / "payload.mlir"
    path.write_text("func.func @f() { return }")
    done = real.failed("apply", str(EXAMPLE), str(path))
    require(
        done.err,
        f"transform.tune.knob at {EXAMPLE}:",
        'non-deterministic choice "tile_m"',
        "tuner tune --strategy FILE selects one",
    )


def test_a_script_with_a_mistake_is_the_users_and_is_reported_in_one_line(real: Tuner, here: Path) -> None:
    for old, new, message in (
        ("transform.yield\n  }", "transform.bogus\n  }", "own.mlir:"),
        ("[16, 32, 64]", "[]", "own.mlir:12:15: knob 'tile_n': options: found 0 values, allowed 1..4096"),
        ("smt.int.constant 384", "smt.int.constant 3", "leaves none of the 72 combinations of strategy own"),
    ):
        Path("own.mlir").write_text(EXAMPLE.read_text().replace(old, new))
        done = real("tune matmul 64x64x64 --strategy own.mlir --trials 1")
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert message in done.err


def test_a_misspelled_op_fails_each_trial_at_once_and_is_explained_with_its_line(here: Path) -> None:
    tuner = Tuner(here / "results.db", real_candidates())
    Path("own.mlir").write_text(EXAMPLE.read_text().replace('["linalg.matmul"]}', '["linalg.matmull"]}'))
    tuner.failed("tune matmul 64x64x64 --strategy own.mlir --trials 1")
    (trial,) = tuner("history --json").json
    assert trial["stage"] == "compile"
    explained = tuner("explain 1").out
    assert "did you mean linalg.matmul?" in " ".join(explained.split())
    line = '%product = transform.structured.match ops{["linalg.matmull"]} in %f'
    require(explained, "script    line 8, column 16: transform.structured.match\n", line)


def test_a_script_whose_candidates_all_fail_alike_ends_the_search_early(here: Path) -> None:
    tuner = Tuner(here / "results.db", real_candidates())
    Path("own.mlir").write_text(EXAMPLE.read_text().replace('["linalg.matmul"]}', '["linalg.matmull"]}'))
    done = tuner.failed("tune matmul 64x64x64 --strategy own.mlir --trials 60 --workers 1")
    ended = re.search(
        r"search: ended: all (\d+) trials failed at compile: .*did you mean linalg.matmul\?", done.err
    )
    assert ended is not None
    assert 10 <= int(ended[1]) <= 12  # some were in work when the tenth had failed


def test_a_schedule_of_two_files_is_applied_counted_and_tuned(here: Path) -> None:
    tuner = Tuner(here / "results.db", real_candidates())
    texts = {
        "main": linking.MAIN,
        "library": linking.LIBRARY,
        "payload": linking.PAYLOAD,
        "knobs": linking.KNOBS,
        "tiled": linking.TILED,
    }
    for name, text in texts.items():
        Path(f"{name}.mlir").write_text(text)
    assert "linalg.matmul {of_main}" in tuner.done("apply main.mlir payload.mlir --library library.mlir").out
    assert "--library FILE names a script" in tuner.failed("apply main.mlir payload.mlir").err
    own = "matmul 64x64x64 --strategy knobs.mlir --library tiled.mlir"
    assert tuner.done(f"space {own} --json").json["cartesian"] == 4
    with brief_remeasurement():
        tuner.done(f"tune {own} --sampler exhaustive --trials 4 --workers 1")
    assert {trial["status"] for trial in tuner("history --json").json} == {"measured"}


@pytest.fixture(scope="module")
def of_two_files(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    """Gives a database with a real run of a schedule in two files, made by ``tuner.tune``."""
    folder = tmp_path_factory.mktemp("two")
    script, library = folder / "knobs.mlir", folder / "tiled.mlir"
    script.write_text(linking.KNOBS)
    library.write_text(linking.TILED)
    database = folder / "results.db"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the schedule leaves tensors; the machine may be busy
        tuning.tune(
            Matmul(64, 64, 64),
            strategy=str(script),
            library=library,
            sampler="exhaustive",
            trials=4,
            workers=1,
            db=database,
        )
    return Tuner(database, real_candidates())


def test_its_knobs_are_those_of_both_files_in_python(of_two_files: Tuner) -> None:
    trials = of_two_files("history --json").json
    assert {trial["status"] for trial in trials} == {"measured"}
    knobs = {(trial["knobs"]["tm"], trial["knobs"]["tn"]) for trial in trials}
    assert knobs == {(4, 16), (4, 32), (8, 16), (8, 32)}


def test_a_trial_of_it_is_lowered_stage_by_stage(of_two_files: Tuner) -> None:
    lowered = of_two_files.done("lower --trial 1 --json").json
    assert lowered["problem"] == "matmul 64x64x64 f32 nn none"
    assert list(lowered["stages"])[:3] == ["source", "script", "payload"]
    assert "transform.named_sequence @tiled(" in lowered["stages"]["script"]
    assert "linalg.matmul" in lowered["stages"]["source"]
    assert "linalg.matmul" not in lowered["stages"]["payload"]
    payload = of_two_files.done("lower --trial 1 --to payload").out
    assert payload == lowered["stages"]["payload"].rstrip() + "\n"
    unknown = of_two_files("lower --trial 9 --to payload")
    assert (unknown.code, unknown.err) == (2, "error: trial: found 9, allowed 1 to 4\n")
    both = of_two_files("lower matmul --trial 1")
    assert both.code == 2
    require(both.err, "--trial cannot be combined with matmul")


def test_a_script_that_declares_sequences_is_checked_with_the_file_that_has_them(
    of_two_files: Tuner, here: Path
) -> None:
    of_two_files.done("export matmul 64x64x64 -o best.mlir")
    fixed = {"tm": (linking.KNOBS, "[4, 8]", 4), "tn": (linking.TILED, "[16, 32]", 16)}
    for name, (text, choices, value) in fixed.items():
        knob = f'transform.tune.knob<"{name}"> options = {choices}'
        assert knob in text
        Path(f"{name}.mlir").write_text(text.replace(knob, f"transform.param.constant {value} : i64"))
    shutil.copy("best.provenance.json", "tm.provenance.json")
    checked = of_two_files("check tm.mlir --library tn.mlir")
    assert checked.code in (0, 1, 3)  # 1: other values were best; 3: a busy machine
    assert checked.out.startswith("correct; ")
    alone = of_two_files("check tm.mlir")
    assert alone.code == 1
    require(alone.out, "unresolved external named sequence; --library FILE names a script that defines it")
