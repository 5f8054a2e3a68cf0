import json
import os
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner, require
from tests.cli.real import brief_remeasurement, real_candidates
from tests.db.values import time_again
from tests.fakes import candidate
from tests.models.library.values import product
from tests.support.llvm_tools import NEEDS_MLIR_OPT, run_mlir_opt
from tests.tuning import fakes
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.programs import ProgramSource
from tuner.core.requests import CampaignMember, CampaignSettings
from tuner.db.store import Store
from tuner.models.library.header import read_document
from tuner.space.scripts.header import (
    RUN,
    BaselineMedian,
    ScriptProvenance,
    parse_provenance,
    read_provenance,
)
from tuner.targets.target import TargetStatus
from tuner.tuning.campaign import begin_campaign
from tuner.tuning.events import Interruption

LIBRARY = "export --format library -o x"
NOT_THERE = "nothing measured on 'mine', only on fake\nhint: choose with --machine, in Python with machine="


def best(tuner: Tuner) -> int:
    found = re.search(r"best +trial (\d+)", tuner("show run:1").out)
    assert found is not None
    return int(found[1])


def printed_provenance(tuner: Tuner, phrase: str) -> ScriptProvenance:
    """Returns what --format provenance prints for an export."""
    script = tuner.done(f"export {phrase}").out
    return parse_provenance(tuner.done(f"export {phrase} --format provenance").out, script, "stdout")


@pytest.mark.mlir
def test_a_program_is_exported_by_its_name_where_one_problem_of_it_is_tuned(
    tuned: Tuner, tmp_path: Path
) -> None:
    """As after tuner tune FILE --strategy, which tunes its matmuls one by one."""
    program = tmp_path / "own.mlir"
    program.write_text(matmuls(8))
    expected = tuned.done("export matmul 8x8x8")
    done = tuned.done("export", str(program))
    assert (done.out, done.err) == (expected.out, expected.err)
    tuned.done("tune matmul 4x8x8 --trials 2")
    program.write_text(matmuls(8, 4))
    refused = tuned.refused("export", str(program))
    assert f"error: {program}: 2 problems of it are tuned, each has its own schedule\n" in refused
    assert re.search(r"with one of --trial \d+ \(matmul 8x8x8 f32.*\), --trial \d+ \(matmul 4x8x8", refused)
    program.write_text(matmuls(3))
    untuned = f"error: {program}: no problem of it has a time yet\nhint: tuner tune {program}"
    assert tuned.refused("export", str(program)).startswith(untuned)
    assert tuned.refused("export none.mlir") == "error: none.mlir: no such file\n"


def matmuls(*rows: int) -> str:
    """Returns a program with a product of m x 8 x 8 for each m of ``rows``."""
    functions = []
    for m in rows:
        a = f"tensor<{m}x8xf32>"
        b = "tensor<8x8xf32>"
        functions.append(
            f"func.func @f{m}(%a: {a}, %b: {b}, %c: {a}) -> {a} {{\n"
            "%zero = arith.constant 0.0 : f32\n"
            f"%start = linalg.fill ins(%zero : f32) outs(%c : {a}) -> {a}\n"
            f"%d = linalg.matmul ins(%a, %b : {a}, {b}) outs(%start : {a}) -> {a}\n"
            f"return %d : {a}\n}}\n"
        )
    return "".join(functions)


def test_a_program_of_fusions_is_exported_by_its_file_and_an_edited_file_is_noted(
    tuner: Tuner, tmp_path: Path
) -> None:
    program = tmp_path / "own.mlir"
    program.write_text("func.func @f() { return }\n")
    source = ProgramSource(str(program), None, (), "warm", ())
    members = (CampaignMember(fakes.settings(problem=Matmul(8, 8, 8)), "g0", 1),)
    settings = CampaignSettings("own.mlir", 3, None, 0, (), program=source)
    with Store.open(str(tuner.database)) as store:
        begin_campaign(settings, members, fakes.backends(), store, Interruption())
    os.utime(program, (0, 0))
    assert "note: " not in tuner.done("export", str(program)).err.replace("note: the best is", "")
    os.utime(program)
    assert (
        f"note: {program} was changed after campaign 1 tuned it\n" in tuner.done("export", str(program)).err
    )


def test_an_export_replaces_its_own_script_and_no_other_file(tuned: Tuner, tmp_path: Path) -> None:
    script, payload = tmp_path / "best.mlir", tmp_path / "payload.mlir"
    for _ in range(2):
        tuned.done("export matmul 8x8x8 -o", str(script))
    payload.write_text("func.func @mine() { return }\n")
    line = f"error: {payload}: exists, and is not a script that tuner exported\n"
    real = Tuner(tmp_path / "results.db", real_candidates())
    assert tuned.refused("export matmul 8x8x8 -o", str(payload)).startswith(line)
    assert real.refused("export matmul 8x8x8 --untuned -o", str(payload)).startswith(line)
    assert payload.read_text() == "func.func @mine() { return }\n"
    assert not (tmp_path / "payload.provenance.json").exists()
    document = tmp_path / "best.json"
    for verb in ("wrote", "replaced"):
        done = tuned.done("export matmul 8x8x8 --format json -o", str(document))
        assert f"{verb} {document}\n" in done.err


def test_the_best_of_a_shape_is_that_of_tune_and_portable(tuned: Tuner) -> None:
    provenance = printed_provenance(tuned, "matmul 8x8x8")
    assert (provenance.trial, dict(provenance.knobs)["x"]) == (best(tuned), 7)
    assert provenance.baseline == BaselineMedian("FakeBLAS 1.0", fakes.BASELINE_S)
    assert "portable  yes: stock mlir-opt runs its script" in tuned("show run:1").out
    done = tuned("export matmul 8x8x8 --stock")
    assert done.err == f"note: trial {best(tuned)}: stock mlir-opt runs its script as it is\n"
    assert done.out == tuned("export matmul 8x8x8").out


def test_a_script_a_source_and_a_payload_are_printed_or_written(tuned: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "out.mlir"
    done = tuned("export matmul 8x8x8 -o", str(path))
    assert (done.code, done.out) == (0, "")
    *wrote, given, run, command = done.err.splitlines()
    time = "1 ms (95 % interval 1 ms .. 1 ms)"
    assert given == f"note: the best is trial {best(tuned)} of run 1: {time}; reliable"
    files = (tmp_path / "out.source.mlir", tmp_path / "out.provenance.json", path)
    assert wrote == [f"wrote {file}" for file in files]
    assert (run, command.split()[1]) == ("run out.mlir by:", str(tmp_path / "out.source.mlir"))
    assert (tmp_path / "out.source.mlir").read_text() == "// source of 8x8x8\n"
    assert f"{RUN}\n//   mlir-opt out.source.mlir --transform-" in path.read_text()
    assert read_provenance(path, path.read_text()) == printed_provenance(tuned, "matmul 8x8x8")
    assert json.loads((tmp_path / "out.provenance.json").read_text())["trial"] == best(tuned)
    assert '"trial"' not in path.read_text() + tuned("export matmul 8x8x8").out
    assert tuned("export matmul 8x8x8 --format source").out == "// source of 8x8x8\n"
    payload = tmp_path / "payload.mlir"
    assert tuned("export matmul 8x8x8 --format payload -o", str(payload)).code == 0
    assert payload.read_text() == "// applied\n// source of 8x8x8\n"
    assert not (tmp_path / "payload.source.mlir").exists()


def test_json_is_the_trial_or_the_text_of_a_format_and_names_files(tuned: Tuner, tmp_path: Path) -> None:
    trial = ("export", "--trial", "3")
    by_flag = tuned(*trial, "--json").json
    assert tuned(*trial, "--format", "json").json == by_flag
    assert by_flag["trial"] == 3
    provenance = tuned(*trial, "--format", "provenance").out
    assert tuned(*trial, "--format", "provenance", "--json").out == provenance
    assert parse_provenance(provenance, "", "stdout").trial == 3
    for form in ("script", "source", "payload"):
        text = tuned(*trial, "--format", form).out
        assert tuned(*trial, "--format", form, "--json").json == {"trial": 3, "format": form, "text": text}
    script, source, sidecar = (
        tmp_path / f"out{end}" for end in (".mlir", ".source.mlir", ".provenance.json")
    )
    phrase = ("export", "--trial", "3", "--json", "-o", str(script))
    done = tuned(*phrase, "--format", "script")
    assert done.json == {"trial": 3, "format": "script", "files": [str(source), str(sidecar), str(script)]}
    assert read_provenance(script, script.read_text()).trial == 3
    assert tuned(*phrase).json == {"trial": 3, "format": "json", "files": [str(script)]}
    assert json.loads(script.read_text())["trial"] == 3


def test_what_cannot_be_exported_is_one_line(tuned: Tuner) -> None:
    for phrase, message in (
        (
            "export",
            "export: the problem is missing\nhint: give matmul 512x512x512, PROGRAM.mlir, or --trial ID\n",
        ),
        (
            "export matmul",
            "export: the problem is missing\nhint: give matmul 512x512x512, PROGRAM.mlir, or --trial ID\n",
        ),
        ("export matmul 9x9x9", "fake: nothing measured yet\nhint: tuner tune matmul 9x9x9"),
        ("export matmul 8x8x8 --machine mine", NOT_THERE),
        ("export matmul 8x8x8 --threads 4", "nothing measured yet"),
        ("export --trial 99", "trial: found 99, allowed 1 to 20"),
        ("export matmul 8x8x8 -o /proc/none/best.mlir", "/proc/none/best.source.mlir: cannot be written"),
        ("export matmul 8x8x8 -o /dev/full", "/dev/full: cannot be written: No space left on device"),
        ("export matmul 8x8x8 --format ptx", "trial 15: has no GPU program: it was not compiled"),
        ("export --prefix x", "--prefix needs --format c\n"),
        ("export --format c", "--format c: writes several files into a folder\nhint: -o DIR\n"),
        ("export --format c --trial 3", "--trial cannot be combined with --format c\nhint: --run N\n"),
        ("export --format library", "--format library: writes several files into a folder\nhint: -o DIR"),
        (f"{LIBRARY} --trial 1", "--trial cannot be combined with --format library"),
        ("export --run 1", "--run needs a format of several problems\nhint: --trial ID exports one trial"),
        ("export matmul 8x8x8 --for mlir-22", "--for needs a format of several problems"),
        (f"{LIBRARY} --dtype f64", "export: nothing measured that fits the options"),
        ("export --campaign 1", "--campaign needs a format of several problems"),
        (f"{LIBRARY} --campaign 1", "campaign: found 1, allowed none"),
        (f"{LIBRARY} --target cuda", "a library has schedules for a CPU, not for cud"),
    ):
        assert message in tuned.refused(phrase), phrase


def test_a_prefix_of_names_in_c_is_checked_before_anything_is_written(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path / "results.db", fakes.backends((TargetStatus("cpu", True, "for tests"),)))
    tuner.done("tune matmul 8x8x8 --target cpu --trials 2")
    message = "--prefix: found 'No', allowed a lower-case letter, then up to 30 of a-z, 0-9 and _\n"
    folder = tmp_path / "out"
    assert message in tuner.refused("export --format c --prefix No -o", str(folder))
    reserved = "error: --prefix: 'int' is a reserved word of C or C++\nhint: --prefix int_kernels\n"
    assert reserved in tuner.refused("export --format c --prefix int -o", str(folder))
    assert not folder.exists()


def test_the_best_for_stock_mlir_opt_is_exported_with_its_slowdown(tmp_path: Path) -> None:
    own = Tuner(tmp_path / "results.db", fakes.backends(bind=lambda *_: fakes.bind_with_custom_op))
    own.done("tune matmul 8x8x8 --sampler exhaustive --trials 20")
    assert "portable  no: its script calls tuner.fast; one without, if any:\n" in own("show run:1").out
    stock = own("export matmul 8x8x8 --stock")
    assert "tuner.fast" in own("export matmul 8x8x8").out
    require(stock.out, f"{RUN}\n//   mlir-opt ", without="tuner.fast")
    trial = printed_provenance(own, "matmul 8x8x8 --stock").trial
    (line,) = stock.err.splitlines()
    slowdown = "the best that stock mlir-opt runs, takes +100.0% time (95 % interval "
    assert line.startswith(f"note: trial {trial}, {slowdown}")
    assert own("export --trial", str(best(own)), "--stock").out == stock.out
    (phrase,) = re.findall(r"tuner (export --trial \d+ --stock -o) stock\.mlir", own("show run:1").out)
    assert own(*phrase.split(), str(tmp_path / "stock.mlir")).code == 0
    assert "tuner.fast" not in (tmp_path / "stock.mlir").read_text()
    always = fakes.backends(bind=lambda *_: lambda _chosen: fakes.bind_with_custom_op(candidate(7)))
    own = Tuner(tmp_path / "always.db", always)
    own.done("tune matmul 8x8x8 --trials 1")
    note = "note: no best.stock.mlir: every timed script of the problem calls ops of tuner\n"
    assert note in own("export matmul 8x8x8 -o", str(tmp_path / "best.mlir")).err


def test_an_export_says_what_runs_it_and_leaves_no_stock_script_of_an_earlier_one(here: Path) -> None:
    own = Tuner(here / "results.db", fakes.backends(bind=lambda *_: fakes.bind_with_custom_op))
    own.done("tune matmul 8x8x8 --sampler exhaustive --trials 20")
    stock = own.done("export matmul 8x8x8 --stock -o portable.mlir --json").json["trial"]
    own.done("export --trial 3 --format json -o best.json")
    said = own.done("export matmul 8x8x8 -o best.mlir").err.splitlines()
    assert said[-4:-1] == [
        "run best.mlir by:",
        "  tuner apply best.mlir best.source.mlir",
        "run best.stock.mlir by:",
    ]
    require(said[-1], "  mlir-opt", " best.stock.source.mlir ", "=best.stock.mlir ")
    assert f"note: best.json is of an earlier export: trial 3, not {best(own)}" in said
    said = own.done("export --trial", str(stock), "-o", "best.mlir").err.splitlines()
    assert "removed best.stock.mlir and the files of it, of an earlier export" in said
    assert [*here.glob("best.*stock*")] == []
    require(said[-1], "  mlir-opt", " best.source.mlir ", "=best.mlir ")
    (here / "best.stock.mlir").write_text("// of somebody else\n")
    assert "removed" not in own.done("export --trial", str(stock), "-o", "best.mlir").err
    assert (here / "best.stock.mlir").exists()


def test_a_failed_trial_has_no_time_to_export(tuner: Tuner) -> None:
    tuner.backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    tuner("tune matmul 8x8x8 --trials 1")
    assert "trial 1: failed, and has no time" in tuner("export --trial 1").err
    assert tuner("export --trial 1 --format source").code == 0


def test_the_export_of_a_shape_says_that_its_time_is_unreliable(tuned: Tuner) -> None:
    trial, why = best(tuned), "two timings of the same code differ by 30%"
    with Store.open(str(tuned.database)) as store:
        stored = store.trial(trial)
        assert stored.final is not None
        store.propose(1, 20, 0, stored.record.candidate)  # so the round is of more trials, and answers
        time_again(store, 1, (trial, stored.final), noise=0.3, unreliable=why)
    said = tuned("export matmul 8x8x8 --format source").err
    time = "1 ms (95 % interval 1 ms .. 1 ms)"
    assert said == f"note: the best is trial {trial} of run 1: {time}; unreliable: {why}\n"
    assert tuned("export --trial", str(trial), "--format", "source").err == ""


# ``tuner export --format library``, ``apply --strict`` and ``export --merge``, with real compilers.

PROBLEM, OTHER = Matmul(64, 96, 33), Matmul(32, 64, 48)


def real_run(folder: Path, problem: Problem) -> Tuner:
    """Returns a database in a folder after a real run of a strategy whose scripts stock mlir-opt runs."""
    tuner = Tuner(folder / "results.db", real_candidates())
    phrase = ("--strategy", "matmul_cpu_direct", "--sampler", "random", "--trials", "1", "--workers", "1")
    with brief_remeasurement():
        tuner.done("tune matmul", problem.shape, *phrase, "--no-warm-start")  # what is shipped may prefetch
    return tuner


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    folder = tmp_path_factory.mktemp("real")
    real_run(folder, PROBLEM)
    return real_run(folder, OTHER)


@pytest.fixture(scope="module")
def exported(real: Tuner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    done = real.done("export --format library --run 2 -o", str(folder), "--json")
    assert done.json["files"] == [str(folder / "library.mlir")]
    assert [entry["problem"]["shape"] for entry in done.json["entries"]] == [[32, 64, 48]]
    assert done.err.splitlines()[-1].startswith("exported 1 problem")
    return folder / "library.mlir"


def write(folder: Path, *texts: str) -> str:
    path = folder / "program.mlir"
    path.write_text("".join(texts))
    return str(path)


@pytest.mark.mlir
@pytest.mark.slow
def test_a_library_has_the_problems_that_fit_the_options(real: Tuner, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("kept")
    real.done("export matmul 64x96x33 --format library -o", str(tmp_path), "--for", "mlir-22")
    text = (tmp_path / "library.mlir").read_text()
    assert [entry.problem for entry in read_document(text, "library.mlir").entries] == [PROBLEM]
    assert (tmp_path / "kept.txt").read_text() == "kept"


@pytest.mark.mlir
@pytest.mark.slow
def test_apply_lists_contractions_and_strict_needs_all(real: Tuner, exported: Path, tmp_path: Path) -> None:
    program = write(tmp_path, product("known", OTHER).text, product("unknown", PROBLEM).text)
    done = real.done("apply", str(exported), program)
    assert done.err.splitlines() == [
        "@known: linalg.matmul 32x64x48 f32 nn: matmul_32x64x48_f32_nn",
        "@unknown: linalg.matmul 64x96x33 f32 nn: no entry: no entry has the sizes 64x96x33",
        "library.mlir: took 1 of 2 contractions",
    ]
    assert "call @tuned_matmul_32x64x48_f32_nn" in done.out
    strict = real("apply", str(exported), program, "--strict", "--json")
    assert (strict.code, strict.json["taken"]) == (1, 1)
    assert [each["entry"] for each in strict.json["contractions"]] == ["matmul_32x64x48_f32_nn", ""]
    for problem, options, taken in ((OTHER, ("--strict",), 1), (PROBLEM, (), 0)):
        done = real.done("apply", str(exported), write(tmp_path, product("f", problem).text), *options)
        assert done.err.splitlines()[-1] == f"library.mlir: took {taken} of 1 contractions"
    refused = real.refused("apply", str(exported), program, "--debug-bind-trailing-args", "linalg.matmul")
    assert "library.mlir is a library, whose entry takes the root alone" in refused


@pytest.mark.mlir
def test_an_exported_script_is_no_library_and_names_what_it_is_for(tmp_path: Path) -> None:
    real = real_run(tmp_path, OTHER)
    script = tmp_path / "best.mlir"
    assert real("export matmul", OTHER.shape, "--stock", "-o", str(script)).code == 0
    message = f"error: --strict: {script} is not a library\nhint: tuner export --format library -o DIR\n"
    program = write(tmp_path, product("known", OTHER).text)
    assert real.refused("apply", str(script), program, "--strict") == message
    transposed = Matmul(32, 64, 48, layout="nt")
    done = real.failed("apply", str(script), write(tmp_path, product("f", transposed, on_buffers=True).text))
    has = "is for linalg.matmul 32x64x48 f32 nn, the payload has linalg.matmul 32x64x48 f32 nt in @f"
    hint = "tuner export --format library fits any number of contractions"
    assert done.err == f"error: best.mlir: {has}\nhint: {hint}\n"
    fits = real.done("apply", str(script), write(tmp_path, product("f", OTHER, on_buffers=True).text))
    assert "vector." in fits.out


@pytest.mark.mlir
@pytest.mark.slow
def test_only_libraries_are_merged(real: Tuner, exported: Path, tmp_path: Path) -> None:
    other, output = tmp_path / "other", tmp_path / "merged.mlir"
    assert real("export --format library --run 1 -o", str(other)).code == 0
    done = real("export --json --merge", str(exported), "--merge", f"{other}/library.mlir", "-o", str(output))
    assert done.json == {"files": [str(output)], "entries": 2, "compared": []}
    assert done.err == f"wrote {output}: 2 entries\n"
    program = write(tmp_path, product("one", OTHER).text, product("two", PROBLEM).text)
    assert real("apply", str(output), program, "--strict").code == 0
    path = tmp_path / "best.mlir"
    path.write_text("module {\n}\n")
    message = "best.mlir: is not a library that 'tuner export --format library' wrote"
    assert message in real.refused("export -o m.mlir --merge", str(path))
    assert "cannot be combined with matmul" in real.refused("export --merge a.mlir matmul 8x8x8")


@pytest.mark.mlir
@pytest.mark.slow
@NEEDS_MLIR_OPT
def test_stock_mlir_opt_runs_the_command_in_the_header_and_the_payload(real: Tuner, tmp_path: Path) -> None:
    path, payload = tmp_path / "best.mlir", tmp_path / "payload.mlir"
    assert real("export --trial 1 -o", str(path)).code == 0
    (line,) = re.findall(rf"^{RUN}\n//(.*)$", path.read_text(), re.MULTILINE)
    program, *phrase = shlex.split(line)
    assert program == "mlir-opt"
    require(output_of_mlir_opt(*phrase, folder=tmp_path), "vector.", without="linalg.matmul")
    assert real("export --trial 1 --format payload -o", str(payload)).code == 0
    assert "func.func @matmul" in output_of_mlir_opt(str(payload), folder=tmp_path)


def output_of_mlir_opt(*phrase: str, folder: Path) -> str:
    done = run_mlir_opt(*phrase, folder=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.mlir
@pytest.mark.slow
def test_a_real_export_passes_its_own_check(real: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "best.mlir"
    assert real("export --trial 1 -o", str(path)).code == 0
    done = real("check", str(path), "--max-slowdown", "900%", "--json")  # only a crash is that slow
    results = {0: "not slower", 3: "cannot tell"}  # 3: while something else runs
    assert results.get(done.code) == done.json["finding"], done.out
    assert done.json["correct"]
