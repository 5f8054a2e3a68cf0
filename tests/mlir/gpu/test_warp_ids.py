from collections.abc import Callable

import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

warp_ids = pytest.importorskip("tuner.mlir.gpu.warp_ids")

TEXT = """func.func @k() -> (index, index) {
  %id = gpu.subgroup_id : index
  %count = gpu.num_subgroups : index
  return %id, %count : index, index
}
"""


def test_warps_are_numbered_in_the_order_of_threads(golden: Callable[[str, str], None]) -> None:
    with parsed(TEXT) as module:
        assert warp_ids.expand_warp_ids(module) == 2
        assert module.operation.verify()
        golden("warp_ids.mlir", str(module))
