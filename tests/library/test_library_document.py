"""The header of a library, written and read."""

from dataclasses import replace

import pytest

from tests.library.values import entry
from tuner.analysis.slowdown import PairedSlowdown
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.library.library import MARK, is_library, library_text, read_document, read_entries
from tuner.library.script_comparison import OutliningCost

ENTRIES = (entry(Matmul(24, 64, 32), trial=4, pack_a=0), entry(Matmul(24, 64, 32, layout="nt"), trial=5))
COSTS = (
    OutliningCost(PairedSlowdown(0.01, (-0.01, 0.03), 0.008), PairedSlowdown(0.02, (0.015, 0.04), 0.01)),
    OutliningCost(PairedSlowdown(0.0, (-0.01, 0.01), 0.0), None),
)
TEXT = library_text(ENTRIES, COSTS)


def test_entries_are_read_with_their_scripts() -> None:
    assert is_library(TEXT)
    assert read_entries(TEXT, "library.mlir") == ENTRIES
    assert tuple(each.cost for each in read_document(TEXT, "library.mlir").entries) == COSTS


def test_the_header_says_what_each_entry_costs() -> None:
    lines = TEXT.splitlines()
    time = "trial 4, 10 us (unknown: it was not recorded)"
    at = lines.index(f"// entry     matmul 24x64x32 f32 nn none: {time}; OpenBLAS: 20 us")
    assert lines[at + 1] == (
        "//           in the library, against its script alone: "
        "tensors not distinguishable, the 99 % interval of the ratio of times is 0.990 .. 1.030, "
        "batch +2.0% time (99 % interval +1.5% .. +4.0%)"
    )
    without = library_text((replace(ENTRIES[0], baseline_s=None),))
    assert f"// entry     matmul 24x64x32 f32 nn none: {time}\n" in without


def test_a_script_is_no_library() -> None:
    assert not is_library(ENTRIES[0].script)
    with pytest.raises(
        UsageError, match=r"best.mlir: is not a library that 'tuner export --format library' wro"
    ):
        read_document(ENTRIES[0].script, "best.mlir")


def test_a_damaged_library_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"a.mlir: its line '// tuner library:' is damaged: "):
        read_document(f"{MARK}{{\n", "a.mlir")
    with pytest.raises(UsageError, match=r"a.mlir: the schedule of matmul_24x64x32_f32_nn is missing"):
        read_entries(TEXT.replace("@buffers_matmul_24x64x32_f32_nn(", "@gone("), "a.mlir")
