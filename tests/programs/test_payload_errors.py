"""Errors about payloads: the way out of a dynamic number of rows."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.programs.test_tuning import REQUEST, Programs, settings
from tests.tuning import fakes
from tuner.core.errors import UsageError
from tuner.db.store import Store
from tuner.programs.payload_errors import row_range_hint
from tuner.programs.tuning import ProgramTuning
from tuner.tuning.events import Interruption, ignore

TEXT = "linalg.matmul ins(%a, %b : tensor<?x32xf32>, tensor<32x48xf32>) outs(%c : tensor<?x48xf32>)"
COMMAND = "tuner tune matmul 1..4096x48x32"


def test_a_payload_with_dynamic_rows_has_the_command_that_tunes_a_range() -> None:
    assert row_range_hint(TEXT) == COMMAND
    assert row_range_hint(TEXT.replace("?x32", "4x32")) == ""
    assert row_range_hint(TEXT.replace("32x48", "?x48")) == ""


def test_a_program_of_dynamic_rows_is_refused_with_that_command(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "results.db")) as store:
        tuning = ProgramTuning(fakes.backends(), Programs(()).steps, store, Interruption(), ignore)
        with pytest.raises(UsageError, match="no matmul of static sizes and known types") as refused:
            tuning.tune(replace(REQUEST, text=TEXT), settings)
    assert refused.value.hint == COMMAND
