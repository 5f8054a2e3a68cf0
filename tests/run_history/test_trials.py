import importlib.util
import sys

import pytest

from tests import trials as made
from tuner.core.errors import Failure, Stage, UsageError
from tuner.run_history.trials import Trials

SLOW, FAILED = made.trial(4, made.measurement(2e-3)), made.trial(5, Failure(Stage.VERIFY, "wrong"))


def test_a_row_has_the_columns_of_the_csv_and_one_of_each_knob() -> None:
    first, second = Trials((SLOW, FAILED)).rows()
    assert (first["trial"], first["shape"], first["median_s"]) == (104, "8x8x8", 2e-3)
    assert (first["knob.knob_0"], first["status"], first["stage"]) == (4, "measured", None)
    assert (second["median_s"], second["stage"], second["reason"]) == (None, "verify", "wrong")


def test_without_pandas_its_installation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"^to_frame: found no pandas, allowed after: pip install pandas$"):
        Trials((SLOW,)).to_frame()


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is optional")
def test_a_frame_has_a_row_per_trial() -> None:
    frame = Trials((SLOW, FAILED)).to_frame()
    assert list(frame["trial"]) == [104, 105]
    assert frame["knob.knob_0"].sum() == 9
