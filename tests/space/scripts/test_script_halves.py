"""A bound script in two halves, and put together again."""

from typing import Any

import pytest

from tests.models.library.values import script_of
from tuner.core.errors import Refusal
from tuner.core.matmul import Matmul
from tuner.space.scripts.script_halves import ScriptHalves, halves_of

PROBLEM = Matmul(24, 64, 32)


def code(script: str) -> list[str]:
    return [line for line in script.splitlines() if line.strip() and not line.strip().startswith("//")]


@pytest.mark.parametrize("knobs", [{}, {"pack_a": 0, "block_k": 16}, {"block_n": 64, "tile_n": 16}])
def test_the_halves_of_a_script_are_the_whole(knobs: dict[str, Any]) -> None:
    script = script_of(PROBLEM, **knobs)
    halves = halves_of(script, PROBLEM)
    assert isinstance(halves, ScriptHalves)
    assert code(halves.script(PROBLEM)) == code(script)
    assert "one_shot_bufferize" not in halves.tensors + halves.buffers
    assert "vectorize" in halves.tensors


def test_a_script_of_partitions_has_no_halves() -> None:
    problem = Matmul(24, 72, 32)
    script = script_of(problem, threads=2, split="n", tile_n=16)
    assert halves_of(script, problem) == Refusal("it is for several partitions of C, one for each thread")


@pytest.mark.parametrize(
    "left_out", ["@the_matmul failures", "get_parent_op %matmul", "one_shot_bufferize", "@simplify("]
)
def test_a_script_of_another_form_has_no_halves(left_out: str) -> None:
    script = script_of(PROBLEM)
    assert left_out in script
    lines = [line for line in script.splitlines(keepends=True) if left_out not in line]
    reason = "its steps are not those of a shipped strategy: one matmul, one bufferization"
    assert halves_of("".join(lines), PROBLEM) == Refusal(reason)
