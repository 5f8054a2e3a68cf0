"""Parts of C that need the same steps share them: K in blocks, a last block of columns."""

import re

import pytest

from tests.support.sampled_candidates import SampledCandidate
from tuner.core.candidate import Candidate, Value
from tuner.core.matmul import Matmul
from tuner.space.scripts.strategy import strategy_folder

PACKED: dict[str, Value] = {"tile_m": 6, "tile_n": 32, "block_m": 48, "block_n": 0, "block_k": 128}
PACKED |= {"unroll_k": 4, "loop_order": "ji", "split": "none"}
PACKED |= {"pack_a": 0, "pack_order": "rows", "prefetch": 0, "prefetch_c": 0}
LONGEST = 130  # lines
STORES = 100  # 17 in loops; 272 where the copying of a panel is straight code


def sample(sizes: tuple[int, int, int], layout: str, **knobs: Value) -> SampledCandidate:
    problem = Matmul(*sizes, layout=layout, epilogue="bias_relu")
    return SampledCandidate(problem, Candidate.of("matmul_cpu_packed", PACKED | knobs), 1, "avx512")


DIVIDED = sample((192, 256, 256), "nn")
# K is 77 and 128: steps of K are 1 and 4, squares of 16 end at 64 and 128
RAGGED_K = sample((205, 256, 205), "nt")
WHOLE_PANELS = sample((192, 320, 256), "nn", block_n=128)  # the last block has 64 columns, two panels
PARTIAL_PANEL = sample((192, 300, 256), "nn", block_n=128)  # 44 columns, one panel and 12
NO_PANEL = sample((192, 276, 256), "nn", block_n=128)  # 20 columns, which nothing packs
# All at once: rests of rows, columns and K, B transposed, each block with its epilogue
ALL_RESTS = sample((205, 300, 205), "nt", block_n=128)


DIRECT: dict[str, Value] = {
    "tile_m": 13,
    "tile_n": 16,
    "block_m": 0,
    "block_n": 64,
    "block_k": 32,
    "unroll_k": 8,
}
DIRECT |= {"loop_order": "ji", "split": "none", "prefetch": 64, "lanes_along_k": 0}
# Fusing its epilogue leaves the matmul of all columns until a clean-up
ROUNDED = SampledCandidate(
    Matmul(70, 205, 235, "bf16", output="bf16"), Candidate.of("matmul_cpu_direct", DIRECT), 2, "avx512"
)


def sections(script: str) -> int:
    return len(re.findall(r"^    // Register tiles of ", script, re.MULTILINE))


@pytest.mark.parametrize(
    ("of", "expected"), [(DIVIDED, 1), (RAGGED_K, 1), (WHOLE_PANELS, 1), (PARTIAL_PANEL, 1), (NO_PANEL, 2)]
)
def test_parts_of_one_register_tile_have_one_section(of: SampledCandidate, expected: int) -> None:
    script = of.script(strategy_folder()).text
    assert sections(script) == script.count("\n    transform.foreach ") == expected
    assert script.count("structured.hoist_pad") == 1


@pytest.mark.parametrize("of", [PARTIAL_PANEL, ALL_RESTS])
def test_steps_of_the_last_block_alone_stand_once(of: SampledCandidate) -> None:
    script = of.script(strategy_folder()).text
    assert script.count("transform.foreach %last_jr ") == script.count("zeros fill up its last panel") == 1


@pytest.mark.parametrize("of", [DIVIDED, WHOLE_PANELS, PARTIAL_PANEL])
def test_a_script_with_blocks_of_k_and_of_columns_is_short(of: SampledCandidate) -> None:
    assert len(of.script(strategy_folder()).text.splitlines()) <= LONGEST


@pytest.mark.mlir
@pytest.mark.mlir
def test_a_matmul_that_fusing_leaves_is_no_part_of_c() -> None:
    assert "linalg." not in ROUNDED.code(ROUNDED.script(strategy_folder()))


@pytest.mark.mlir
def test_one_whole_panel_of_the_last_block_is_copied_by_a_loop() -> None:
    of = sample((192, 300, 256), "nn", block_n=128, block_k=0)
    assert of.code(of.script(strategy_folder())).count("llvm.store") < STORES


@pytest.mark.parametrize("of", [RAGGED_K, PARTIAL_PANEL, ALL_RESTS])
def test_what_differs_between_parts_is_told_to_the_steps(of: SampledCandidate) -> None:
    script = of.script(strategy_folder())
    assert ("%wholes" in script.text, "%unrolls" in script.text) == (of is not PARTIAL_PANEL,) * 2
    assert "linalg." not in of.code(script)
