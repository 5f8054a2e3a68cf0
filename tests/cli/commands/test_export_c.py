"""``tuner export --format c``: options that go with it, and files; fakes measure, nothing is compiled."""

from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.targets.interface import TargetStatus


@pytest.fixture
def tuned_on_cpu(tmp_path: Path) -> Tuner:
    processor = (TargetStatus("cpu", True, "for tests"),)
    tuner = Tuner(tmp_path / "results.db", fakes.backends(processor))
    assert tuner("tune", "matmul", "8x8x8", "--target", "cpu", "--trials", "2").code == 0
    return tuner


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("phrase", "message"),
    [
        (("--prefix", "x"), "--prefix needs --format c\n"),
        (("--format", "c"), "--format c: writes several files into a folder\nhint: -o DIR\n"),
        (("--format", "c", "--trial", "3"), "--trial cannot be combined with --format c\nhint: --run N\n"),
        (
            ("--format", "c", "--prefix", "No", "-o", "out"),
            "--prefix: found 'No', allowed a lower-case letter, then up to 30 of a-z, 0-9 and _\n",
        ),
    ],
)
def test_options_that_cannot_be_combined_are_refused(
    phrase: tuple[str, ...], message: str, tuned_on_cpu: Tuner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tuned_on_cpu.database.parent)
    assert tuned_on_cpu.refused("export", *phrase) == f"error: {message}"
    assert not Path("out").exists()
