"""Parts of C that need the same steps share them: K in blocks, a last block of columns."""

import re

import pytest

from benchmarks.script_steps.sample import SampledCandidate
from tuner.core.candidate import Candidate, Value
from tuner.core.problem import Matmul
from tuner.space.scripts.strategy import strategy_folder

PACKED: dict[str, Value] = {"tile_m": 6, "tile_n": 32, "block_m": 48, "block_n": 0, "block_k": 128}
PACKED |= {"unroll_k": 4, "loop_order": "ji", "split": "none"}
PACKED |= {"pack_a": 0, "pack_order": "rows", "prefetch": 0, "prefetch_c": 0}
LONGEST = 130  # lines


def sample(sizes: tuple[int, int, int], layout: str, **knobs: Value) -> SampledCandidate:
    problem = Matmul(*sizes, layout=layout, epilogue="bias_relu")
    return SampledCandidate(problem, Candidate.of("matmul_cpu_packed", PACKED | knobs), 1, "avx512")


DIVIDED = sample((192, 256, 256), "nn")
# K is 77 and 128: steps of K are 1 and 4, squares of 16 end at 64 and 128
RAGGED_K = sample((205, 256, 205), "nt")
WHOLE_PANELS = sample((192, 320, 256), "nn", block_n=128)  # the last block has 64 columns, two panels
PARTIAL_PANEL = sample((192, 300, 256), "nn", block_n=128)  # 44 columns, one panel and 12


def sections(script: str) -> int:
    return len(re.findall(r"^    // Register tiles of ", script, re.MULTILINE))


@pytest.mark.parametrize(
    ("of", "expected"), [(DIVIDED, 1), (RAGGED_K, 1), (WHOLE_PANELS, 1), (PARTIAL_PANEL, 2)]
)
def test_parts_that_need_the_same_steps_have_one_section(of: SampledCandidate, expected: int) -> None:
    script = of.script(strategy_folder()).text
    assert sections(script) == script.count("transform.foreach ") == expected
    assert script.count("structured.hoist_pad") == expected


@pytest.mark.parametrize("of", [DIVIDED, WHOLE_PANELS])
def test_a_script_of_blocks_that_tiles_divide_is_short(of: SampledCandidate) -> None:
    assert len(of.script(strategy_folder()).text.splitlines()) <= LONGEST


@pytest.mark.mlir
@pytest.mark.parametrize("of", [RAGGED_K, PARTIAL_PANEL])
def test_what_differs_between_parts_is_told_to_the_steps(of: SampledCandidate) -> None:
    script = of.script(strategy_folder())
    assert ("%wholes" in script.text, "%unrolls" in script.text) == (of is RAGGED_K,) * 2
    assert "linalg." not in of.code(script)
