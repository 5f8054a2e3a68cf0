"""``tuner.count_stages``: which stages are counted, and which stay remainders."""

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside

LINE = '"tuner.count_stages"(%func) : (!transform.any_op) -> ()'


def payload(stages: int = 3, low: str = "%c0", ahead: str = "%c32", filled: str = "%c1") -> str:
    """Returns a loop that yields the stage two steps ahead; before its first iteration that was stage 1."""
    text = text_beside(__file__, "PAYLOAD").replace("STAGES", str(stages)).replace("LOW", low)
    return text.replace("AHEAD", ahead).replace("FILLED", filled)


def is_counted(text: str) -> bool:
    assert ("mod " in text) != ("arith.select" in text)
    return "arith.select" in text


def test_any_number_of_stages_is_counted_that_is_no_power_of_two_from_any_iteration(apply: Apply) -> None:
    for stages in (5, 6):
        text = apply(LINE, payload(stages))
        assert is_counted(text)
        assert f"arith.constant {stages} : i32" in text
    assert is_counted(apply(LINE, payload(low="%c16", filled="%c2")))


@pytest.mark.parametrize(
    "change",
    [
        {"stages": 4},  # a mask already
        {"low": "%any"},  # of split K
        {"low": "%c8"},  # between two steps
        {"ahead": "%any"},
        {"filled": "%any"},
        {"filled": "%c0"},  # not what the iteration before would have filled
        {"ahead": "%c16"},
    ],
    ids=str,
)
def test_other_stages_stay_remainders(change: dict[str, object], apply: Apply) -> None:
    assert not is_counted(apply(LINE, payload(**change)))  # type: ignore[arg-type] # of one name each


SHOWN = [(LINE, payload())]
BECOMES = {"count_stages": SHOWN[0]}
