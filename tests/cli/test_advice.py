"""What errors and empty answers advise to type names this command's problem, target, options and database."""

from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.db.store import Store

PROBLEM = ("--dtype", "f64", "--layout", "nt", "--epilogue", "bias_relu")
OF_PROBLEM = "--dtype f64 --layout nt --epilogue bias_relu"
SHAPE = ("matmul", "9x9x9")


@pytest.fixture
def named(tuned: Tuner, monkeypatch: pytest.MonkeyPatch) -> Tuner:
    """Gives a database with a run and a proposal whose outcome never arrived, in this folder."""
    monkeypatch.chdir(tuned.database.parent)
    with Store.open(str(tuned.database)) as store:
        store.propose(1, 20, 0, Candidate.of("fake", {"x": 1}))
    return tuned


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (("export", *SHAPE, *PROBLEM), f"tuner tune matmul 9x9x9 {OF_PROBLEM} --target fake"),
        (("export", *SHAPE, "--threads", "2"), "tuner tune matmul 9x9x9 --threads 2 --target fake"),
        (
            ("bundle", "export", *SHAPE, "--dtype", "f16", "--chip", "sm_80", "-o", "x"),
            "tuner tune matmul 9x9x9 --dtype f16 --target simulator:sm_80",
        ),
        (("tune", *PROBLEM, "--fresh"), f"tuner tune matmul 512x512x512 {OF_PROBLEM} --fresh"),
        (("tune", "batch_matmul", "--target", "fake"), "tuner tune batch_matmul 8x512x512x512 --target fake"),
        (("tune", *SHAPE, "--arg", "0=7", "--dtype", "f64"), "tuner tune payload.mlir --arg 0=7"),
        (
            ("record-space", "--dtype", "f64", "-o", "a b"),
            "tuner record-space matmul 64x64x64 --dtype f64 -o 'a b'",
        ),
        (("show", "21"), "tuner tune --resume 1"),
        (("explain", "21"), "tuner tune --resume 1"),
        (("diff", "21", "1"), "tuner tune --resume 1"),
        (("diff", "run:x", "1"), "tuner runs"),
        (("show", "x"), "tuner history"),
    ],
)
def test_an_error_ends_with_the_command_for_this_problem_and_database(
    named: Tuner, options: tuple[str, ...], advice: str
) -> None:
    for database, flag in ((), ""), (("--db", "results.db"), " --db results.db"):
        done = named(*options, *database)
        assert done.code in (1, 2)
        assert done.err.splitlines()[-1].endswith(f"{advice}{flag}")


@pytest.mark.parametrize(
    ("options", "advice"),
    [(("history", "--shape", "9x9x9"), "tuner history"), (("runs", "--dtype", "f64"), "tuner runs")],
)
def test_no_match_names_the_question_without_conditions(
    named: Tuner, options: tuple[str, ...], advice: str
) -> None:
    assert named(*options, "--db", "results.db").out.endswith(
        f" without conditions\nhint: {advice} --db results.db\n"
    )


@pytest.mark.parametrize("command", ["history", "runs"])
def test_an_empty_database_names_the_run_that_would_answer(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tuner = Tuner(tmp_path / "results.db", fakes.backends())
    Store.open("new.db").close()
    done = tuner(command, "--shape", "9x9x9", "--dtype", "f64", "--db", "new.db")
    assert done.out.startswith(f"no history yet in sqlite:///{tmp_path / 'new.db'}\n")
    assert done.out.endswith("\nhint: tuner tune matmul 9x9x9 --dtype f64 --db new.db\n")
    assert "tuner tune matmul 512x512x512 --db new.db" in tuner("report", "--db", "new.db").out
    assert tuner("gate", "--baseline", "g.json", "--record", "best", "--db", "new.db").err.endswith(
        "\nhint: tuner tune matmul 512x512x512 --db new.db\n"
    )
