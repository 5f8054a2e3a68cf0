import pytest

pytestmark = pytest.mark.mlir

validity = pytest.importorskip("tuner.programs.device_memory.buffers")

HOST, DEVICE = validity.Side.HOST, validity.Side.DEVICE
ON_HOST, ON_DEVICE = frozenset({(0, HOST)}), frozenset({(0, DEVICE)})
ON_BOTH = ON_HOST | ON_DEVICE


def test_a_write_leaves_one_side_valid() -> None:
    assert validity.written(ON_BOTH, 0, DEVICE) == ON_DEVICE
    assert validity.written(ON_HOST, 0, DEVICE) == ON_DEVICE
    assert validity.written(frozenset({(1, HOST)}), 0, HOST) == {(0, HOST), (1, HOST)}


@pytest.mark.parametrize(
    ("before", "paths", "after"),
    [
        (ON_BOTH, [ON_BOTH, ON_DEVICE], ON_DEVICE),
        (ON_HOST, [ON_DEVICE, ON_HOST], ON_HOST),
        (ON_DEVICE, [ON_DEVICE, ON_HOST], ON_DEVICE),
        (ON_BOTH, [ON_DEVICE, ON_HOST], ON_DEVICE),
    ],
)
def test_branches_meet_where_the_untouched_path_copies_nothing(
    before: frozenset[object], paths: list[frozenset[object]], after: frozenset[object]
) -> None:
    assert validity.after_branches(before, paths) == after


def test_what_only_one_path_knows_is_forgotten() -> None:
    assert validity.after_branches(ON_HOST, [ON_HOST | {(1, DEVICE)}, ON_HOST]) == ON_HOST


def test_a_loop_that_reads_on_the_device_is_given_a_copy_once() -> None:
    def reads(state: frozenset[object]) -> tuple[frozenset[object], frozenset[object]]:
        return state | ON_DEVICE, ON_DEVICE - state

    assert validity.at_loop(ON_HOST, reads) == ON_BOTH


def test_a_loop_that_writes_on_the_device_starts_there() -> None:
    def writes(state: frozenset[object]) -> tuple[frozenset[object], frozenset[object]]:
        return ON_DEVICE, ON_DEVICE - state

    assert validity.at_loop(ON_HOST, writes) == ON_DEVICE


def test_a_loop_whose_iterations_never_agree_still_ends() -> None:
    def alternates(state: frozenset[object]) -> tuple[frozenset[object], frozenset[object]]:
        return (ON_HOST if state == ON_DEVICE else ON_DEVICE), frozenset()

    assert validity.at_loop(ON_HOST, alternates) in (ON_HOST, ON_DEVICE)


def test_the_other_side_is_where_a_copy_comes_from() -> None:
    assert (HOST.other, DEVICE.other) == (DEVICE, HOST)
    assert validity.sides_of(ON_BOTH, 0) == {HOST, DEVICE}
