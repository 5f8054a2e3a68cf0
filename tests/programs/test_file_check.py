"""CHECK lines, which must not let a wrong output pass."""

import pytest

from tests.programs.file_check import require

OUTPUT = "a  = 1, 2\nb = 0x7f end\n c\n"


@pytest.mark.parametrize(
    "source",
    [
        "// CHECK: a = 1,\n// CHECK-SAME: 2\n// CHECK-NEXT: b = {{0x[0-9a-f]+}} end",
        "// CHECK: a = 1\n// CHECK: c",
        "// CHECK: b = {{.*}}\n// CHECK-NEXT: c",
    ],
)
def test_what_is_there_in_order_is_met(source: str) -> None:
    require(source, OUTPUT)


@pytest.mark.parametrize(
    "source",
    [
        "// CHECK: dd",
        "// CHECK: c\n// CHECK: a",
        "// CHECK: a\n// CHECK-NEXT: c",
        "// CHECK: 1\n// CHECK-SAME: a",
        "// CHECK: b = {{[0-9]+}} end",
        "// CHECK: a = 1, 2\n// CHECK: a = 1, 2",
        "",
    ],
)
def test_what_is_missing_or_in_another_order_is_not(source: str) -> None:
    with pytest.raises(AssertionError):
        require(source, OUTPUT)
