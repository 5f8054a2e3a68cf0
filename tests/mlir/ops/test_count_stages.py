"""``tuner.count_stages``: which stages are counted, and which stay remainders."""

from tests.mlir.ops.one_op import apply
from tests.texts import filled

LINE = '"tuner.count_stages"(%func) : (!transform.any_op) -> ()'


def payload(stages: int = 3, low: str = "%c0", ahead: str = "%c32", first: str = "%c1") -> str:
    """Returns a loop that yields the stage two steps ahead; before its first iteration that was stage 1."""
    return filled(__file__, "PAYLOAD", stages=stages, low=low, ahead=ahead, first=first)


def test_any_number_of_stages_is_counted_that_is_no_power_of_two_from_any_iteration() -> None:
    for stages, text in ((5, payload(5)), (6, payload(6)), (3, payload(low="%c16", first="%c2"))):
        counted = apply(LINE, text)
        assert ("mod " in counted, "arith.select" in counted) == (False, True)
        assert f"arith.constant {stages} : i32" in counted


BECOMES = {"count_stages": (LINE, payload())}
UNCHANGED = [
    (LINE, payload(stages=4), "a mask already"),
    (LINE, payload(low="%any"), "a start of split K"),
    (LINE, payload(low="%c8"), "a start between two steps"),
    (LINE, payload(ahead="%any"), "any step ahead"),
    (LINE, payload(ahead="%c16"), "a step ahead that is another one"),
    (LINE, payload(first="%any"), "any first stage"),
    (LINE, payload(first="%c0"), "a first stage that the iteration before would not have filled"),
]
