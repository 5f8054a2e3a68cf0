import importlib.metadata

import pytest

from benchmarks.code_order.blocked_kernel import KNOBS, SOURCE, definitions, distinct
from benchmarks.code_order.compiled_point import predict
from benchmarks.code_order.nvrtc import Nvrtc
from tuner.core.gpu import chip_of
from tuner.gpu.target.compiler import locate

POINT = dict(zip(KNOBS, (64, 64, 32, 16, 8, 16, 8, 2, 4, 2, 1, 1), strict=True))


def test_the_source_names_every_knob_and_narrow_accesses_are_predicted_to_cost_more() -> None:
    assert [name for name in KNOBS if name not in SOURCE] == []
    assert definitions(POINT)[:2] == ("-DMWG=64", "-DNWG=64")
    assert distinct(POINT) == tuple(POINT.values())
    direct = distinct(POINT | {"SA": 0})
    assert direct == distinct(POINT | {"SA": 0, "MDIMA": 32})
    assert direct != distinct(POINT | {"SA": 0, "NDIMB": 16})
    tool = locate("nvdisasm")
    try:
        nvrtc = Nvrtc()
    except importlib.metadata.PackageNotFoundError:
        tool = None
    if tool is None:
        pytest.skip("needs nvdisasm and NVRTC (pip install -e '.[bench]')")
    chip = chip_of("sm_86")
    wide, narrow = (predict(POINT | {"VWM": width, "VWN": width}, chip, 82, nvrtc, tool) for width in (4, 1))
    assert 1.5 * wide < narrow
