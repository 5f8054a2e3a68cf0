"""Documents of fixed outcomes: the same ones whenever and wherever they are written."""

from pathlib import Path

import pytest

from benchmarks.golden_hashes.candidates import BuiltCandidate, build, golden_candidates
from benchmarks.golden_hashes.command_line import CommandLine
from benchmarks.golden_hashes.database import write_database
from benchmarks.golden_hashes.documents import documents_of_trial


def documents(folder: Path, built: BuiltCandidate) -> dict[str, str]:
    """Returns the documents of a database in a new folder."""
    folder.mkdir()
    trials = write_database(folder / "golden.db", (built,))
    tuner = CommandLine(folder / "golden.db")
    run = tuner.printed("show", "run:1", "--json")
    return documents_of_trial(tuner, trials[built.golden.number]) | {"run": run}


@pytest.mark.slow
def test_documents_depend_neither_on_the_folder_nor_on_the_clock(tmp_path: Path) -> None:
    built = build(golden_candidates()[0])
    first = documents(tmp_path / "a", built)
    assert first == documents(tmp_path / "another", built)
    assert not [part for part, text in first.items() if str(tmp_path) in text]
    _, _, steps = built.script.text.partition("{memcpy_op")  # before it, the guard finds the function
    assert steps.rpartition("transform.yield")[0] in first["exported"]
