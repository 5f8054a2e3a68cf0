"""Steps of scripts: found, left out, and each of them there for a reason."""

import pytest

from benchmarks.script_steps.__main__ import NOTHING, compared, effects_of
from benchmarks.script_steps.steps import steps_of
from tests.support.sampled_candidates import SampledCandidate, sampled
from tuner.core.candidate import Candidate, Value
from tuner.core.matmul import Matmul
from tuner.space.scripts.strategy import strategy_folder

SCRIPT = """module {
  transform.named_sequence @__transform_main(%root: !op) {
    // Vectors of 16.
    transform.apply_patterns to %f {
      transform.apply_patterns.canonicalization
      transform.apply_patterns.linalg.decompose_pad
    } {apply_cse} : !op
    transform.include @simplify failures(propagate) (%f) : (!op) -> ()

    // Buffers, then the rest.
    %b = transform.bufferization.one_shot_bufferize %f {memcpy_op = "linalg.copy"} : (!op) -> !op
    "tuner.prefetch_reads"(%b) {rows = 4 : i64} : (!op) -> ()  // of B
    transform.yield
  }
  transform.named_sequence @simplify(%f: !op) {
    transform.apply_cse to %f : !op
    transform.yield
  }
}
"""


def test_steps_are_named_after_their_section_and_left_out_one_at_a_time() -> None:
    steps = {step.name: step for step in steps_of(SCRIPT)}
    assert [*steps] == [
        "Vectors: [canonicalization linalg.decompose_pad]",
        "Vectors: canonicalization",
        "Vectors: linalg.decompose_pad",
        "Vectors: apply_cse",
        "Vectors: @simplify",
        "Buffers: memcpy_op",
        "Buffers: tuner.prefetch_reads",
    ]
    without = steps["Buffers: memcpy_op"].left_out(SCRIPT)
    assert "one_shot_bufferize %f : (!op) -> !op" in without
    without = steps["Vectors: linalg.decompose_pad"].left_out(SCRIPT)
    assert SCRIPT.replace("      transform.apply_patterns.linalg.decompose_pad\n", "") == without


def candidate(sizes: tuple[int, int, int], layout: str, strategy: str, **knobs: Value) -> SampledCandidate:
    values: dict[str, Value] = dict.fromkeys(("block_m", "block_n", "block_k", "prefetch"), 0)
    values |= {"tile_m": 8, "tile_n": 32, "unroll_k": 1, "loop_order": "ji", "split": "none"}
    if "packed" in strategy:
        values |= {"pack_a": 0, "pack_order": "rows", "prefetch_c": 0}
    else:
        values |= {"lanes_along_k": 0}
    return SampledCandidate(
        Matmul(*sizes, layout=layout), Candidate.of(strategy, values | knobs), threads=1, machine="avx512"
    )


WRONGLY_SAID = (  # to do nothing, in the issue that this answers
    *("transfer_permutation_patterns", "pad_vectorization", "decompose_pad", "lower_transpose"),
    *("buffer_loop_hoisting", "apply_licm", "memcpy_op"),
)
# What is left of those steps: of a plain product none, of others those that change the code
KEPT = (
    (candidate((64, 64, 64), "nn", "matmul_cpu_direct"), ()),
    (candidate((64, 64, 64), "tn", "matmul_cpu_direct"), ()),
    (candidate((64, 64, 64), "nn", "matmul_cpu_packed"), ("decompose_pad", "apply_licm", "memcpy_op")),
    (candidate((64, 50, 64), "nn", "matmul_cpu_direct"), ("pad_vectorization", "apply_licm")),
    (
        candidate((64, 60, 64), "nn", "matmul_cpu_direct", tile_n=48),
        ("pad_vectorization", "apply_licm", "memcpy_op", "buffer_loop_hoisting"),
    ),
    (
        candidate((64, 64, 64), "nt", "matmul_cpu_packed"),
        ("transfer_permutation_patterns", "decompose_pad", "lower_transpose", "apply_licm"),
    ),
)


@pytest.mark.parametrize(("sample", "kept"), KEPT, ids=lambda value: getattr(value, "text", ""))
def test_a_script_has_the_steps_that_concern_it(sample: SampledCandidate, kept: tuple[str, ...]) -> None:
    script = sample.script(strategy_folder()).text
    assert {step for step in WRONGLY_SAID if step in script} == set(kept)


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize("sample", [sample for sample, _ in KEPT[2:5]], ids=lambda sample: sample.text)
def test_steps_that_concern_a_script_change_its_code(sample: SampledCandidate) -> None:
    script = sample.script(strategy_folder()).text
    effects = effects_of(sample, script, "|".join(f"{step}$" for step in WRONGLY_SAID))
    assert effects
    assert NOTHING not in effects.values(), effects


@pytest.mark.slow
@pytest.mark.mlir
def test_equal_templates_give_equal_code_and_a_step_less_shows() -> None:
    (sample,) = sampled(1, 0, "matmul_cpu_dot")
    assert compared(sample, strategy_folder()) == "equal script"
    direct, _ = KEPT[3]
    script = direct.script(strategy_folder()).text
    (effect,) = effects_of(direct, script, "pad_vectorization$").values()
    assert effect != NOTHING
