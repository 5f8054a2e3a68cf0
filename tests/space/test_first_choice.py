"""What a matmul begins with on described processors, without a trial."""

import pytest

from tuner.core.instruction_sets import ISAS
from tuner.core.matmul import Matmul
from tuner.core.processors import processor_of
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import first_configuration

pytestmark = pytest.mark.mlir

MANY_ROWS = ((64, 64, 64), (512, 512, 512), (333, 1777, 901), (4096, 64, 4096), (96, 8192, 256))


@pytest.mark.parametrize("isa", ISAS)
def test_each_initial_configuration_of_an_instruction_set_comes_once(isa: str) -> None:
    for entry in load_space_file(default_space_file()).strategies:
        listed = entry.first_on(isa)
        assert len(set(listed)) == len(listed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["znver3", "alderlake", "znver5", "sapphirerapids", "neoverse-v2"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "i8"])
def test_many_rows_never_begin_with_a_tile_of_one_row(name: str, dtype: str) -> None:
    machine = processor_of(name).machine
    for layout in ("nn", "nt", "tn"):
        for m, n, k in MANY_ROWS:
            found = first_configuration(Matmul(m, n, k, dtype, layout), machine)
            assert found is not None
            knobs = dict(found[0].choices)
            assert knobs.get("tile_m", 2) != 1, (layout, m, n, k, found[0])
