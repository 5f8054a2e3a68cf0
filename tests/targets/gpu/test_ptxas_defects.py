import pytest

from tuner.core.chips import chip_of
from tuner.targets.gpu.ptxas_defects import DEFECTS, defect_line, defects_of


@pytest.mark.parametrize(
    ("version", "chip", "count"),
    [
        ("9.2.148", "sm_80", 1),
        ("11.0.221", "sm_80", 1),
        ("11.1", "sm_80", 0),
        ("11.1.74", "sm_80", 0),
        ("11.3.58", "sm_80", 1),
        ("11.6.124", "sm_80", 1),
        ("11.8.89", "sm_80", 0),
        ("12.3.103", "sm_80", 1),
        ("12.3.103", "sm_90", 2),
        ("12.3.107", "sm_80", 0),
        ("12.6.77", "sm_90a", 1),
        ("12.6.77", "sm_89", 0),
        ("12.6.85", "sm_90", 0),
        ("12.8.93", "sm_90", 0),
        ("13.1.80", "sm_90", 0),
    ],
)
def test_a_version_is_known_to_miscompile_for_the_chips_that_it_concerns(
    version: str, chip: str, count: int
) -> None:
    assert len(defects_of(version, chip_of(chip))) == count


def test_without_a_chip_all_that_is_known_is_told() -> None:
    assert len(defects_of("12.8.93")) == 1
    assert len(defects_of("12.3.103")) == 2


def test_every_entry_has_a_source_and_a_range() -> None:
    for defect in DEFECTS:
        assert defect.since < defect.before
        assert defect.capabilities[0] <= defect.capabilities[1]
        assert defect.source.startswith("https://")


def test_a_line_names_what_and_where_it_is_told() -> None:
    (defect,) = defects_of("12.6.77", chip_of("sm_90"))
    assert defect_line(defect) == (
        "this version is known to miscompile: NVIDIA's bug 4826023, of Hopper and later "
        "(https://github.com/openxla/xla/pull/19927)"
    )
