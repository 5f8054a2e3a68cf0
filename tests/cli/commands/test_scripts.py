import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner, require, require_fields
from tests.cli.real import brief_remeasurement, real_candidates
from tests.db.values import time_again
from tests.results.regression.test_gate import changed
from tests.tuning import fakes
from tests.tuning.fakes import present
from tests.tuning.watched_target import Day, backends
from tuner.db.store import Store
from tuner.space.scripts.header import provenance_file

ROOT = Path(__file__).parents[3]


@pytest.fixture
def script(tuned: Tuner, tmp_path: Path) -> Path:
    path = tmp_path / "best.mlir"
    assert tuned("export matmul 8x8x8 -o", str(path)).code == 0
    return path


def edited(script: Path, old: str, new: str) -> str:
    """Changes the exported file, or the file with its provenance; returns its path."""
    files = [file for file in (script, provenance_file(script)) if old in file.read_text()]
    assert len(files) == 1
    for file in files:
        file.write_text(file.read_text().replace(old, new))
    return str(script)


def test_a_script_as_fast_as_recorded_passes(tuned: Tuner, script: Path) -> None:
    why = "not distinguishable, the 99 % interval of the ratio of times is 1.000 .. 1.000, 5 sessions"
    assert tuned.done("check", str(script)).out.splitlines() == [
        "correct; not slower relative to the baseline library",
        *("time      1 ms, recorded 1 ms", "reliable  yes", f"ratio     {why}"),
    ]
    document = tuned("check", str(script), "--json").json
    assert document.keys() >= {"median_s", "recorded_s"}
    require_fields(document, correct=True, ratio=None, interval=[1.0, 1.0])
    assert document["ratio_unknown"].startswith("not distinguishable, the 99 % interval")
    require_fields(document, reliability="reliable", recorded_reliability="reliable")


@pytest.mark.slow
def test_a_slower_script_fails_unless_that_is_allowed(tmp_path: Path) -> None:
    watched = Tuner(tmp_path / "results.db", backends(Day()))  # with a library and a reference kernel
    watched.done("tune matmul 8x8x8 --sampler exhaustive --trials 20")
    watched.done("export matmul 8x8x8 -o", str(tmp_path / "watched.mlir"))
    path = edited(tmp_path / "watched.mlir", '"kernel_s": 0.001,', '"kernel_s": 0.0009,')
    done = watched.failed("check", path)
    slower = "correct; slower relative to the baseline library and the reference kernel"
    require(done.out, slower, "ratio     1.111 (99 % interval 1.111 .. 1.111), 15 sessions")
    for share in ("15%", "0.15"):
        watched.done("check", path, "--max-slowdown", share)
    document = watched("check", path, "--json").json
    require_fields(document, correct=True, passed=False, finding="slower", reliability="reliable")
    assert [document["ratio"], *document["interval"]] == pytest.approx([1 / 0.9] * 3)


def test_a_check_that_shows_nothing_exits_with_3_and_says_what_to_type(tuned: Tuner, script: Path) -> None:
    path = edited(script, '"reliability": "reliable"', '"reliability": "unreliable: load"')
    done = tuned("check", path)
    assert done.code == 3
    assert done.out.startswith("correct; cannot tell if slower: the recorded time is unreliable: load\n")
    assert "tuner tune --resume 1 --retime" in done.err
    again = done.err.rpartition("then: tuner ")[2].split()
    assert again[-2:] == ["-o", str(path)]
    document = tuned("check", path, "--json").json
    require_fields(document, correct=True, passed=False, ratio=None, finding="cannot tell", interval=None)
    assert document["reliability"].startswith("unknown: timed alone")
    tuned.done(*again)
    assert tuned("check", path).code == 0


def test_a_wrong_script_fails(tuned: Tuner, script: Path) -> None:
    path = edited(script, '{"comment"', '{"at": "verify", "deed": "wrong", "comment"')
    assert "fails at stage verify: element (0, 1)" in tuned.failed("check", path).out
    require_fields(tuned("check", path, "--json").json, correct=False, median_s=None, ratio=None)


def test_only_a_time_of_this_machine_by_any_of_its_names_is_compared(tuned: Tuner, script: Path) -> None:
    host = replace(fakes.MACHINE, name="Xeon (family 6 model 207, avx512 vnni amx_bf16, caches ?/?/?)")
    tuned.backends = fakes.backends(machine=lambda _target: host)
    before = "Xeon (family 6 model 207, avx512 vnni, caches ?/?/?)"
    assert tuned("check", edited(script, '"machine": "fake"', f'"machine": "{before}"')).code == 0
    done = tuned("check", edited(script, before, "Xeon (family 6 model 207, avx512, caches ?/?/?)"))
    assert done.code == 3
    assert "it was recorded on another machine, Xeon (family 6 model 207, avx512, " in done.out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"run": 1', '"run": "one"', "best.provenance.json: is damaged: run: found 'one'"),
        ('"target": "fake"', '"target": "tpu"', "target 'tpu': not known here"),
        ('"shape": [\n   8,\n   8,\n   8\n  ]', '"shape": [99999, 99999, 99999]', "GiB, available 1.0 GiB"),
    ],
)
def test_what_cannot_be_checked_exits_2(tuned: Tuner, script: Path, old: str, new: str, message: str) -> None:
    assert message in tuned.refused("check", edited(script, old, new))


def test_a_script_without_its_provenance_is_applied_and_not_checked(
    tuned: Tuner, script: Path, tmp_path: Path
) -> None:
    applied = tuned.done("apply", str(script), str(tmp_path / "best.source.mlir")).out
    moved = script.rename(tmp_path / "moved.mlir")
    assert tuned.done("apply", str(moved), str(tmp_path / "best.source.mlir")).out == applied
    said = "error: moved.mlir: found no moved.provenance.json next to it, which says what the script is for\n"
    refused = tuned.refused("check", str(moved))
    assert refused.startswith(said)
    assert refused.splitlines()[1].startswith("hint: move that file with the script, or write both: ")
    assert "check: a script on standard input has no provenance" in tuned.refused("check -")


def test_apply_prints_the_payload_where_the_processor_has_what_it_needs(tuner: Tuner, tmp_path: Path) -> None:
    script, payload = tmp_path / "s.mlir", tmp_path / "p.mlir"
    script.write_text("script\n")
    payload.write_text("payload\n")
    both = (str(script), str(payload))
    assert tuner("apply", *both).out == "// applied\npayload\n"
    assert tuner("apply --allow-effects", *both).out == "// applied with effects\npayload\n"
    assert tuner("apply", str(script), "-", stdin="from stdin\n").out == "// applied\nfrom stdin\n"
    assert tuner("apply --json", *both).json == {"payload": "// applied\npayload\n"}
    script.write_text(NEEDS_VNNI)
    assert tuner("apply --cpu znver4", *both).out == "// applied\npayload\n"
    refused = tuner("apply --cpu znver3", *both)
    assert refused.err.startswith("error: s.mlir: needs vnni, which znver3, as EPYC 7763 does not offer\n")
    unknown = tuner("apply --cpu zen4", *both)
    assert (unknown.code, unknown.err.count("\n")) == (2, 1)
    assert unknown.err.startswith("error: cpu: found 'zen4', allowed x86-64-v3, x86-64-v4, haswell, ")
    script.write_bytes(b"\xff\xfe")
    assert f"{script}: not MLIR text: byte 0 is not UTF-8" in tuner("check", str(script)).err


SCHEDULE = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op) {
    transform.yield
  }
}
"""


@pytest.mark.mlir
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.mlir", "func.func @f() {\n  linalg.matmulx\n}\n", ":2:3: custom op 'linalg.matmulx' is unknown"),
        ("s.mlir", SCHEDULE.replace("yield", "yeild"), ":3:5: custom op 'transform.yeild' is unknown"),
    ],
    ids=["payload", "script"],
)
def test_what_apply_cannot_parse_is_named_by_its_file(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    files = {"s.mlir": SCHEDULE, "p.mlir": "func.func @f() { return }\n", name: text}
    for file, content in files.items():
        (tmp_path / file).write_text(content)
    tool = Tuner(tmp_path / "results.db", real_candidates())
    done = tool("apply", str(tmp_path / "s.mlir"), str(tmp_path / "p.mlir"))
    assert done.code in (1, 2)
    assert done.err.startswith(f"error: {tmp_path / name}{message}")


@pytest.mark.mlir
def test_apply_names_the_files_of_places_and_a_payload_that_is_missing(tmp_path: Path) -> None:
    script, payload = tmp_path / "s.mlir", tmp_path / "p.mlir"
    match = (
        '%0 = transform.structured.match ops{["linalg.fill"]} in %m : (!transform.any_op) -> '
        "!transform.any_op\n transform.structured.vectorize %0 : !transform.any_op\n transform.yield"
    )
    script.write_text(SCHEDULE.replace("transform.yield", match))
    payload.write_text("func.func @f() { return }\n")
    tool = Tuner(tmp_path / "results.db", real_candidates())
    assert f"transform.structured.match at {script}:3:10: " in tool("apply", str(script), str(payload)).err
    refused = tool.refused("apply", str(script))
    assert refused.startswith("error: apply: the payload is missing: s.mlir has no function\n")
    assert refused.endswith(f"hint: tuner apply {script} PAYLOAD.mlir\n")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("notes.md", "found a .md file, allowed MLIR text (.mlir), FILE.py:FUNCTION, FILE.pt2\n"),
        (
            "weights.pt",
            "found a .pt file, allowed MLIR text (.mlir), FILE.py:FUNCTION, FILE.pt2\nhint: a PyT",
        ),
        (
            "model.py",
            "found a Python file, allowed MLIR text, or FILE.py:FUNCTION of a PyTorch model\nhint: ",
        ),
    ],
)
def test_files_that_are_not_payloads_are_refused_by_their_names(
    tmp_path: Path, file: str, message: str
) -> None:
    tuner = Tuner(tmp_path / "results.db", real_candidates())
    path = tmp_path / file
    path.write_text("# func.func\n")
    commands = [f"run {path}", f"lower {path}"]
    if not file.endswith(".py"):  # of which ``tune`` says the command line
        commands.append(f"tune {path}")
    for command in commands:
        assert tuner.refused(command).startswith(f"error: {path}: {message}")


NEEDS_VNNI = '"tuner.vnni_block"(%block) {lanes = 8 : i64} : (!transform.any_op) -> ()\n'


@pytest.mark.parametrize("form", ["transform.named_sequence @__transform_main", '"transform.sequence"()'])
def test_exchanged_arguments_of_apply_are_recognized(tuner: Tuner, tmp_path: Path, form: str) -> None:
    payload, script = tmp_path / "payload.mlir", tmp_path / "schedule.mlir"
    payload.write_text("// for transform.named_sequence @mine\nfunc.func @f() { return }\n")
    script.write_text(f"module {{\n  {form}\n}}\n")
    done = tuner("apply", str(payload), str(script))
    assert done.code == 2
    require(
        done.err,
        "error: apply: script and payload are exchanged: payload.mlir has no transform sequence, "
        "schedule.mlir has one\n",
        f"hint: tuner apply {script} {payload}\n",
    )


def test_a_script_that_needs_another_machine_is_refused(tuned: Tuner, script: Path, tmp_path: Path) -> None:
    script.write_text(script.read_text() + NEEDS_VNNI)
    payload = tmp_path / "p.mlir"
    payload.write_text("payload\n")
    hint = "tuner targets shows what this machine has"
    for command, what in ((f"check {script}", "the script"), (f"apply {script} {payload}", script.name)):
        line = f"error: {what}: needs vnni, which none does not offer\nhint: {hint}\n"
        assert tuned.refused(command) == line


# Gates and audits.


@pytest.fixture
def baseline(tuned: Tuner, tmp_path: Path) -> Path:
    file = tmp_path / "gate.json"
    done = tuned.done("check --baseline", str(file), "--record", "best")
    assert done.out == f"recorded 1 kernel; {file} has 1\n"
    return file


def test_unchanged_code_passes_and_wrong_arguments_exit_with_2(tuned: Tuner, baseline: Path) -> None:
    done = tuned.done("check --baseline", str(baseline))
    require(done.out, "### tuner check: passed", "| matmul 8x8x8 f32 nn none fake | same code | - |")
    empty = ("--summary", "")  # a variable of CI, elsewhere
    assert tuned("check --baseline", str(baseline), *empty).code == 0
    for text, message in (
        (("--record", "first"), "ID: found 'first', allowed the number of a trial"),
        (("--max-slowdown", "much"), "max-slowdown: found 'much', allowed a percentage"),
    ):
        assert message in tuned.refused("check --baseline", str(baseline), *text)


def test_slower_code_exits_with_1_and_a_table(tuned: Tuner, baseline: Path, tmp_path: Path) -> None:
    tuned.backends = changed(x=8)
    done = tuned.failed("check --baseline", str(baseline), "--summary", str(tmp_path / "summary.md"))
    assert "### tuner check: 1 of 1 kernel slower or failed" in done.out
    row = "| **slower** | +100.0% | +100.0% .. +100.0% | 0.0% | 1 ms | 2 ms | reliable |"
    assert row in done.out
    assert row in (tmp_path / "summary.md").read_text()
    assert "fake: slower, +100.0% time (99 % interval +100.0% .. +100.0%), 5 sessions" in done.err
    assert tuned("check --baseline", str(baseline), "--max-slowdown", "200%").code == 0
    document = tuned("check --baseline", str(baseline), "--json").json
    (entry,) = document["entries"]
    assert not document["passed"]
    require_fields(entry, status="slower", slowdown=pytest.approx(1.0), slowdown_unknown=None)
    require_fields(entry, recorded_s=1e-3, then_s=1e-3, now_s=2e-3, reliability="reliable")


def test_code_that_is_as_fast_has_no_ratio_and_a_reason_no_markdown(tuned: Tuner, baseline: Path) -> None:
    tuned.backends = changed(another=1)
    (entry,) = tuned("check --baseline", str(baseline), "--json").json["entries"]
    require_fields(entry, status="not slower", slowdown=None, interval=[0.0, 0.0])
    assert entry["slowdown_unknown"].startswith("not distinguishable, the 99 % interval")
    assert "| not slower | - | +0.0% .. +0.0% |" in tuned("check --baseline", str(baseline)).out
    tuned.backends = changed(at="compile", deed="fail", note="|")
    done = tuned.failed("check --baseline", str(baseline))
    assert "- matmul 8x8x8 f32 nn none fake: fails at stage compile: fails at compile" in done.out


def test_a_trial_takes_the_place_of_the_best(tuned: Tuner, baseline: Path) -> None:
    (trial,) = tuned("history --sort -median --limit 1 --json").json
    done = tuned("check --baseline", str(baseline), "--record", str(trial["trial"]), "--json")
    assert done.json == {"file": str(baseline), "recorded": 1, "entries": 1}
    (entry,) = json.loads(baseline.read_text())["entries"]
    assert entry["measurement"]["median_s"] == trial["median_s"]


def test_an_unreliable_time_is_recorded_with_a_line_that_says_so(tuned: Tuner, tmp_path: Path) -> None:
    file, why = str(tmp_path / "gate.json"), "two timings of the same code differ by 30%"
    said = "recorded matmul 8x8x8 f32 nn none fake: trial {}"
    id_ = best_of(tuned)
    assert tuned.done("check --record best --baseline", file).err == f"{said.format(id_)}\n"
    with Store.open(str(tuned.database)) as store:
        stored = store.trial(id_)
        store.propose(1, 20, 0, stored.record.candidate)  # so the round is of more trials, and answers
        time_again(store, 1, (id_, present(stored.final)), noise=0.3, unreliable=why)
    done = tuned.done("check --baseline", file, "--record", str(id_))
    again = "note: a check times the recorded code again, next to today's"
    assert done.err == f"{said.format(id_)}; its time is unreliable: {why}\n{again}\n"


@pytest.mark.mlir
@pytest.mark.slow
def test_a_reopened_export_and_a_script_that_is_gone_are_compiled_as_recorded(here: Path) -> None:
    tuner = Tuner(here / "results.db", real_candidates())
    shutil.copy(ROOT / "examples" / "matmul_knobs.mlir", here / "mine.mlir")
    tune = "tune matmul 32x32x32 --trials 1 --strategy"
    with brief_remeasurement():
        tuner.done(f"{tune} mine.mlir")
        tuner.done("export matmul 32x32x32 -o best.mlir")
        tuner.done(f"{tune} best.mlir --reopen --fresh")
    (here / "best.mlir").write_text("// another export")
    (here / "mine.mlir").unlink()
    trials = [str(each["trial"]) for each in tuner.done("history --json").json]
    for trial in trials:
        file = f"gate{trial}.json"
        tuner.done("check --baseline", file, "--record", trial)
        (entry,) = tuner.done("check --baseline", file, "--json").json["entries"]
        assert entry["status"] == "same code"
    assert tuner.done("check --best --json").json["flagged"] == 0


def test_replays_and_empty_databases_are_refused(tuner: Tuner, tmp_path: Path) -> None:
    refused = tuner.refused("check --record best --baseline", str(tmp_path / "gate.json"))
    assert "record: nothing was timed on this machine\nhint: tuner tune" in refused
    assert "cannot be read" in tuner.refused("check --baseline", str(tmp_path / "gate.json"))
    recording = files("tuner") / "space" / "recorded" / "matmul_48x64x40.t4.json.gz"
    text = ("matmul", "48x64x40", "--target", f"replay:{recording}", "--trials", "2", "--sampler", "random")
    assert tuner("tune", *text).code == 0
    refused = tuner.refused("check --record 1 --baseline", str(tmp_path / "gate.json"))
    assert "trial 1: is a replay: nothing was timed" in refused


def test_trials_of_another_machine_and_those_that_fail_are_not_recorded(tuned: Tuner, tmp_path: Path) -> None:
    elsewhere = fakes.backends(machine=lambda _target: fakes.OTHER_MACHINE)
    refused = replace(tuned, backends=elsewhere).refused("check --baseline gate.json --record 1")
    assert refused.endswith(": trial 1: was timed on 'fake', this machine is 'another'\n")
    failing = replace(tuned, backends=changed(at="compile", deed="fail"))
    file = tmp_path / "gate.json"
    done = failing.done("check --record best --baseline", str(file))
    assert done.out == f"recorded 0 kernels; {file} has 0\n"
    assert done.err.startswith("note: skipped trial ")
    (trial,) = tuned("history --sort median --limit 1 --json").json
    assert failing("check", "--baseline", str(file), "--record", str(trial["trial"])).code == 2


def best_of(tuned: Tuner) -> int:
    return int(tuned("export matmul 8x8x8 --json").json["trial"])


def test_bests_that_are_asked_for_and_hold_exit_with_0(tuned: Tuner) -> None:
    done = tuned.done("check --best")
    assert "matmul 8x8x8 f32 nn none fake  unchanged: the same script and compiler" in done.out
    assert done.out.endswith("1 best audited, 0 flagged\n")
    assert tuned("check --best --shape 9x9x9").out == "0 bests audited, 0 flagged\n"
    assert "max-slowdown: found 'much'" in tuned.refused("check --best --max-slowdown much")
    tuned.backends = changed(comment="other")
    document = tuned("check --best --json").json
    (best,) = document["audited"]
    require_fields(best, status="same code", holds=True, recorded_s=1e-3, now_s=None)
    assert document["flagged"] == 0


def test_runs_of_another_version_that_are_left_out_are_named(tuned: Tuner, tmp_path: Path) -> None:
    tuned.done("tune matmul 8x8x8 --epilogue relu --trials 1")
    with closing(sqlite3.connect(tuned.database)) as connection, connection:
        connection.execute("UPDATE problem SET epilogue = 'softplus', key = 'of 9.9' WHERE epilogue = 'relu'")
    note = "note: 1 run of of 9.9 left out: this version does not know that problem\n"
    for command in (
        "check --best",
        f"check --record best --baseline {tmp_path / 'gate.json'}",
        f"export --format c -o {tmp_path / 'out'}",
    ):
        assert tuned(command).err.startswith(note), command


def test_slower_code_is_flagged_and_told_as_stale(tuned: Tuner) -> None:
    tuned.backends = changed(x=9)
    best = best_of(tuned)
    slower = "slower: 5 ms, other code, recorded 1 ms, slower relative to the baseline library, +400.0% time"
    assert slower in tuned.failed("check --best").out
    assert "stale     slower in an audit: other code" in tuned("show", str(best)).out
    assert best_of(tuned) != best
    assert "  stale  " in tuned("history --run 1").out
