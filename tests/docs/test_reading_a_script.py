"""The page that explains an exported script shows the script that its strategy writes today."""

import re
from pathlib import Path

from benchmarks.golden_hashes.machines import AVX512
from tests.source_files import ROOT
from tuner.core.candidate import Candidate
from tuner.core.machine import variables_of
from tuner.core.problem import Matmul
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import with_knob_options
from tuner.space.scripts.strategy import Binder, load_strategy

PAGE = ROOT / "docs" / "guides" / "reading-a-script.md"
PROBLEM = Matmul(512, 512, 512)
CANDIDATE = Candidate.of(
    "matmul_cpu_packed",
    {
        "block_k": 0,
        "block_m": 96,
        "block_n": 128,
        "loop_order": "ij",
        "pack_a": 0,
        "split": "none",
        "pack_order": "panels",
        "prefetch": 0,
        "prefetch_c": 0,
        "tile_m": 4,
        "tile_n": 64,
        "unroll_k": 4,
    },
)


def test_the_page_has_every_line_of_the_script() -> None:
    variables = variables_of(PROBLEM, AVX512, 1)
    file = load_space_file(Path(default_space_file()))
    (space,) = spaces_for(file, PROBLEM, AVX512.isa, variables, (CANDIDATE.strategy,))
    binder = Binder((load_strategy(CANDIDATE.strategy),), PROBLEM, variables, 1)
    script = with_knob_options(binder.bind(CANDIDATE).text, CANDIDATE, binder, space)
    shown = re.findall(r"^```mlir\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert "\n".join(shown) == script
