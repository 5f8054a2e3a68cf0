"""``tuner.count_stages``: which stages are counted, and which stay remainders."""

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside

LINE = '"tuner.count_stages"(%func) : (!transform.any_op) -> ()'


def payload(stages: int = 3, low: str = "%c0", ahead: str = "%c32", filled: str = "%c1") -> str:
    """Returns a loop that yields the stage two steps ahead; before its first iteration that was stage 1."""
    text = text_beside(__file__, "PAYLOAD").replace("STAGES", str(stages)).replace("LOW", low)
    return text.replace("AHEAD", ahead).replace("FILLED", filled)


def test_any_number_of_stages_is_counted_that_is_no_power_of_two_from_any_iteration(apply: Apply) -> None:
    for stages, text in ((5, payload(5)), (6, payload(6)), (3, payload(low="%c16", filled="%c2"))):
        counted = apply(LINE, text)
        assert ("mod " in counted, "arith.select" in counted) == (False, True)
        assert f"arith.constant {stages} : i32" in counted


SHOWN = [(LINE, payload())]
BECOMES = {"count_stages": SHOWN[0]}
UNCHANGED = [
    (LINE, payload(stages=4), "a mask already"),
    (LINE, payload(low="%any"), "a start of split K"),
    (LINE, payload(low="%c8"), "a start between two steps"),
    (LINE, payload(ahead="%any"), "any step ahead"),
    (LINE, payload(ahead="%c16"), "a step ahead that is another one"),
    (LINE, payload(filled="%any"), "any first stage"),
    (LINE, payload(filled="%c0"), "a first stage that the iteration before would not have filled"),
]
