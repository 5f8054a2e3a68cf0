"""The page that explains exported scripts shows the scripts that their strategies write today."""

import re

from benchmarks.golden_hashes.machines import AVX512
from benchmarks.gpu_check.gpu_point import GpuPoint
from tests.docs.guide import blocks_of
from tests.source_files import ROOT
from tuner.cli.options import parse_candidate
from tuner.core.machine import variables_of
from tuner.core.problem import Matmul
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import with_knob_options
from tuner.space.scripts.strategy import Binder, load_strategy

PAGE = (ROOT / "docs" / "guides" / "reading-a-script.md").read_text()
PROBLEM = Matmul(512, 512, 512)
ON_CPU = (
    "block_k=0, block_m=96, block_n=128, loop_order=ij, pack_a=0, pack_order=panels, prefetch=0, "
    "prefetch_c=0, split=none, tile_m=4, tile_n=64, unroll_k=4"
)
ON_GPU = (
    "block_k=64, block_m=64, block_n=64, depth=3, exchange=0, group=1, pack=0, prefetch=1, shared=swizzle, "
    "split_by=none, splits=1, warps_m=2, warps_n=2"
)


def shown(text: str) -> str:
    """Returns the blocks of MLIR one after another, a blank line between them."""
    return "\n".join(re.findall(r"^```mlir\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def test_the_page_has_every_line_of_a_script_for_cpus() -> None:
    candidate, variables = parse_candidate(f"matmul_cpu_packed({ON_CPU})"), variables_of(PROBLEM, AVX512, 1)
    file = load_space_file(default_space_file())
    (space,) = spaces_for(file, PROBLEM, AVX512.isa, variables, (candidate.strategy,))
    binder = Binder((load_strategy(candidate.strategy),), PROBLEM, variables, 1)
    script = with_knob_options(binder.bind(candidate).text, candidate, binder, space)
    assert shown(PAGE.partition("## A script for a GPU")[0]) == script


def test_the_lines_in_the_readme_are_those_of_the_example_and_of_the_page() -> None:
    readme = blocks_of((ROOT / "README.md").read_text())
    given, exported = (block.text.splitlines() for block in readme if block.language == "mlir")
    assert set(given) <= set((ROOT / "examples" / "matmul_knobs.mlir").read_text().splitlines())
    assert len(exported) > 5
    assert set(exported) <= set(shown(PAGE).splitlines())


def test_the_page_has_every_line_of_a_script_for_gpus() -> None:
    point = GpuPoint(Matmul(256, 256, 256, "f16"), parse_candidate(f"matmul_gpu_mma_sync({ON_GPU})"))
    assert shown(PAGE.partition("## A script for a GPU")[2]) == point.script()
