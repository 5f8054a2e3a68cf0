import pytest

from tuner.core.element_types import FLOAT8S
from tuner.core.errors import UsageError
from tuner.core.problem import INPUT_DTYPES, Matmul
from tuner.core.target_name import TargetName
from tuner.tuning.parts import cuda, simulator
from tuner.tuning.target_kind import TargetKind


@pytest.mark.parametrize("kind", [cuda.KIND, simulator.KIND], ids=lambda kind: str(kind.name))
@pytest.mark.parametrize("dtype", INPUT_DTYPES)
def test_chips_before_sm_89_take_all_but_8_bit_floats(kind: TargetKind, dtype: str) -> None:
    problem = Matmul(8, 8, 8, dtype)
    for chip in ("sm_89", "sm_90", "sm_90a", "sm_120"):
        kind.require_types(problem, TargetName(kind.name, chip))
    for chip in ("sm_80", "sm_86"):
        target = TargetName(kind.name, chip)
        if dtype not in FLOAT8S:
            kind.require_types(problem, target)
            continue
        message = f"^dtype: found '{dtype}', allowed f32, f64, .*, i8 on {chip}; sm_89 and later take it$"
        with pytest.raises(UsageError, match=message):
            kind.require_types(problem, target)
