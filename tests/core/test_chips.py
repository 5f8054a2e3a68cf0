import pytest

from tuner.core.chips import CHIPS, chip_of
from tuner.core.errors import UsageError


def test_the_limits_of_a_block_are_the_published_ones() -> None:
    kib = {name: chip.max_shared_bytes / 1024 for name, chip in CHIPS.items()}
    assert kib == {
        "sm_80": 163,
        "sm_86": 99,
        "sm_89": 99,
        "sm_90": 227,
        "sm_90a": 227,
        "sm_100": 227,
        "sm_120": 99,
    }


def test_a_chip_is_found_by_its_name() -> None:
    chip = chip_of("sm_90a")
    assert (chip.capability, chip.is_specific, chip.max_warps) == (90, True, 64)
    assert (chip_of("sm_120").capability, chip_of("sm_120").is_specific) == (120, False)


@pytest.mark.parametrize("name", ["sm_75", "sm_91", "sm_100a", "90", ""])
def test_an_unknown_chip_is_refused_before_the_compiler_sees_it(name: str) -> None:
    with pytest.raises(UsageError, match=rf"^chip: found '{name}', allowed sm_80, sm_86, .*sm_120$"):
        chip_of(name)
