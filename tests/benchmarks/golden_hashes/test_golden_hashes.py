"""Golden hashes: each strategy once, documents that depend on nothing else, differences named."""

from pathlib import Path

import pytest

from benchmarks.golden_hashes import tuner_names
from benchmarks.golden_hashes.__main__ import compared
from benchmarks.golden_hashes.candidates import bound, build, golden_candidates
from benchmarks.golden_hashes.command_line import CommandLine
from benchmarks.golden_hashes.comparison import differences
from benchmarks.golden_hashes.database import write_database
from benchmarks.golden_hashes.documents import documents_of_trial
from benchmarks.golden_hashes.programs import PROGRAMS, without_modules
from benchmarks.golden_hashes.tuner_names import GPU_WHEELS, packages
from tests.source_files import ROOT, imports, tree_of
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file


def test_every_strategy_and_element_type_has_a_candidate_and_kernel_code_is_no_part_of_the_host() -> None:
    entries = load_space_file(default_space_file()).strategies
    wanted = {(entry.name, dtype) for entry in entries for dtype in entry.dtypes}
    candidates = golden_candidates()
    found = {(golden.candidate.strategy, golden.problem.dtype) for golden in candidates}
    assert wanted - found == set()
    assert len(candidates) == len({golden.name for golden in candidates}) == 115
    assert len({(golden.problem, golden.candidate, golden.machine) for golden in candidates}) == 115
    host, modules = without_modules(HOST)
    assert modules == {"one": "//\n.version 8.4", "two": 'a "word"'}
    assert "version" not in host
    assert "llvm.func @main()" in host
    assert [program.file for program in PROGRAMS if not program.path.is_file()] == []
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) == 12


@pytest.mark.mlir
def test_every_candidate_has_the_knobs_that_its_template_asks_for() -> None:
    scripts = {golden.name: bound(golden) for golden in golden_candidates()}
    assert [name for name, script in scripts.items() if "__transform_main" not in script.text] == []


def test_one_file_alone_imports_from_the_tuner() -> None:
    files = (ROOT / "benchmarks" / "golden_hashes").glob("*.py")
    importing = {file.name for file in files for name in imports(tree_of(file)) if name.startswith("tuner.")}
    assert importing == {Path(tuner_names.__file__).name}


THEN = {"01 one": {"script": "a", "code": "b"}, "02 two": {"script": "c", "code": "d"}}
OTHER = {"01 one": {"script": "a", "shown": "b"}, "03 three": {"script": "e"}}
MISSING = "02 two: script (missing), code (missing)"


@pytest.mark.parametrize(
    ("now", "lines"),
    [
        (dict(reversed(THEN.items())), []),
        (THEN | {"02 two": {"script": "x", "code": "y"}}, ["02 two: script, code"]),
        (THEN | {"01 one": {"script": "a", "code": "y"}}, ["01 one: code"]),
        (OTHER, ["01 one: code (missing), shown (new)", MISSING, "03 three: script (new)"]),
    ],
)
def test_changed_missing_and_new_parts_are_named(now: dict[str, dict[str, str]], lines: list[str]) -> None:
    assert differences(THEN, now) == lines


def test_the_exit_code_says_whether_all_is_equal(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"item": name, "sha256": hashes} for name, hashes in THEN.items()]
    before = {"rows": rows, "settings": {"packages": dict(packages(GPU_WHEELS))}}
    assert (compared(before, THEN), capsys.readouterr().err) == (0, "all of 2 items are equal\n")
    now = THEN | {"01 one": {"script": "a", "code": "y"}}
    assert (compared(before, now), capsys.readouterr().err) == (1, "01 one: code\n")
    other = {"rows": [], "settings": {"packages": {"torch-mlir": "1"}}}
    assert compared(other, {"01 one": {"code": "b"}}) == 1
    assert "other compilers: {'torch-mlir': '1'} then, " in capsys.readouterr().err


@pytest.mark.slow
def test_documents_depend_neither_on_the_folder_nor_on_the_clock(tmp_path: Path) -> None:
    built, documents = build(golden_candidates()[0]), []
    for folder in (tmp_path / "a", tmp_path / "another"):
        folder.mkdir()
        trials = write_database(folder / "golden.db", (built,))
        tuner = CommandLine(folder / "golden.db")
        run = {"run": tuner.printed("show", "run:1", "--json")}
        documents.append(documents_of_trial(tuner, trials[built.golden.number]) | run)
    assert documents[0] == documents[1]
    assert not [part for part, text in documents[0].items() if str(tmp_path) in text]
    _, _, steps = built.script.text.partition("{memcpy_op")  # before it, the guard finds the function
    assert steps.rpartition("transform.yield")[0] in documents[0]["exported"]


HOST = r"""  gpu.binary @one  [#gpu.object<#nvvm.target<chip = "sm_90">, code = {}, "//\0A.version 8.4\00">]
  gpu.binary @two  [#gpu.object<#nvvm.target<chip = "sm_90", O = "3">, assembly = "a \22word\22">]
  llvm.func @main()
"""
