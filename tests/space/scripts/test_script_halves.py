"""A bound script in two halves, and put together again."""

from typing import Any

import pytest

from tests.library.values import script_of
from tuner.core.problem import Matmul
from tuner.space.scripts.matchers import ScriptHalves, halves_of

PROBLEM = Matmul(24, 64, 32)


@pytest.mark.parametrize("knobs", [{}, {"pack_a": 0, "block_k": 16}, {"block_n": 64, "tile_n": 16}])
def test_the_halves_of_a_script_are_the_whole(knobs: dict[str, Any]) -> None:
    script = script_of(PROBLEM, **knobs)
    halves = halves_of(script)
    assert isinstance(halves, ScriptHalves)
    assert halves.script == script
    assert "one_shot_bufferize" not in halves.tensors + halves.buffers
    assert "vectorize" in halves.tensors


def test_a_script_of_partitions_has_no_halves() -> None:
    script = script_of(Matmul(24, 72, 32), threads=2, split="n", tile_n=16)
    assert halves_of(script) == "it is for 2 partitions of C, one for each thread"


def test_a_script_of_another_form_has_no_halves() -> None:
    script = script_of(PROBLEM)
    reason = "its steps are not those of a shipped strategy: one function, one bufferization"
    assert halves_of("module {\n}\n") == reason
    assert halves_of(script.replace('sym_name = "matmul"', 'other = "matmul"')) == reason
    line = next(line for line in script.splitlines(keepends=True) if "eliminate_empty_tensors" in line)
    assert halves_of(script.replace(line, "")) == "its steps are not in the order of a shipped strategy"
