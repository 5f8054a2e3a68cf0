"""The fixed candidates: all that the search space is there for, each one once."""

from pathlib import Path

from benchmarks.golden_hashes import tuner_names
from benchmarks.golden_hashes.candidates import golden_candidates
from tests.source_files import ROOT, imports, tree_of
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file


def test_every_strategy_and_element_type_of_the_space_has_a_candidate() -> None:
    entries = load_space_file(default_space_file()).strategies
    wanted = {(entry.name, dtype) for entry in entries for dtype in entry.dtypes}
    found = {(golden.candidate.strategy, golden.problem.dtype) for golden in golden_candidates()}
    assert wanted - found == set()


def test_names_report_the_candidates_apart() -> None:
    candidates = golden_candidates()
    assert len(candidates) == len({golden.name for golden in candidates}) == 87
    assert len({(golden.problem, golden.candidate, golden.machine) for golden in candidates}) == 87


def test_one_file_alone_imports_from_the_tuner() -> None:
    folder = ROOT / "benchmarks" / "golden_hashes"
    importing = [
        path.name
        for path in sorted(folder.glob("*.py"))
        if any(name.split(".")[0] == "tuner" for name in imports(tree_of(path)))
    ]
    assert importing == [Path(tuner_names.__file__).name]
