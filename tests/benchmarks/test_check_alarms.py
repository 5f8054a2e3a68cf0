from collections import Counter

import pytest

from benchmarks.check_alarms import has_passed


@pytest.mark.parametrize(
    ("unchanged", "slower", "busy", "passes"),
    [
        ({"not slower": 50}, {"slower": 50}, {"cannot tell": 10}, True),
        ({"not slower": 48, "cannot tell": 2}, {"slower": 45, "not slower": 5}, {"cannot tell": 10}, True),
        ({"not slower": 49, "slower": 1}, {"slower": 50}, {"cannot tell": 10}, False),
        ({"not slower": 50}, {"slower": 44, "cannot tell": 6}, {"cannot tell": 10}, False),
        ({"not slower": 50}, {"slower": 50}, {"cannot tell": 9, "slower": 1}, False),
        ({"not slower": 50}, {"slower": 50}, {"cannot tell": 9, "failed": 1}, False),
        ({"not slower": 49, "failed": 1}, {"slower": 50}, {"cannot tell": 10}, False),
    ],
)
def test_false_alarms_missed_slowdowns_and_answers_on_a_busy_machine_fail(
    unchanged: dict[str, int], slower: dict[str, int], busy: dict[str, int], passes: bool
) -> None:
    counts = {"unchanged": Counter(unchanged), "slower": Counter(slower), "busy": Counter(busy)}
    assert has_passed(counts) is passes
