"""The commands that look after results do the same on a file and on a server."""

from pathlib import Path
from typing import cast

import pytest

from tests.cli.conftest import Tuner
from tests.results.regression.test_gate import changed
from tests.tuning import fakes


def commands_on(url: str) -> Tuner:
    return Tuner(cast(Path, url), fakes.backends())  # which becomes the text of TUNER_DB


@pytest.fixture
def tuner(url: str) -> Tuner:
    return commands_on(url)


@pytest.mark.slow
def test_a_run_is_tuned_asked_for_audited_gated_pruned_and_copied(tuner: Tuner, tmp_path: Path) -> None:
    assert tuner("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "20").code == 0
    assert len(tuner("history", "--json").json) == 20
    (best,) = tuner("history", "--best", "--shape", "8x8x8", "--json").json
    assert best["median_s"] == fakes.BEST_S
    assert tuner("audit", "--json").json["flagged"] == 0
    gate = str(tmp_path / "gate.json")
    assert tuner("gate", "--baseline", gate, "--record", "best").code == 0
    tuner.backends = changed(x=8)
    assert tuner("gate", "--baseline", gate).code == 1
    assert tuner("db", "prune", "--json").json["trials"] > 0
    assert tuner("history", "--best", "--json").json == [best]
    copy = tmp_path / "copy.db"
    assert tuner("db", "backup", str(copy)).code == 0
    assert tuner("db", "merge", str(copy), "--json").json == {"runs": 0, "trials": 0}
    assert commands_on(str(copy))("history", "--best", "--json").json[0]["median_s"] == best["median_s"]
