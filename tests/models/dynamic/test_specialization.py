"""Programs of a dynamic size as static ones: right at each n below their size, and what is refused."""

from typing import Any

import numpy as np
import pytest

from tests.models.dynamic.programs import EXAMPLES, OF_TWO_SIZES, Example, poisoned
from tuner.core.dynamic_sizes import SizeRange, Sizes
from tuner.gpu.interpreter.host_functions import read_function
from tuner.models.dynamic.specialization import StaticProgram, program_of_sizes, specialized

SIZES = SizeRange(1, 70)


def static_program(text: str, size: Sizes, least: Sizes = 1) -> StaticProgram:
    static = specialized(text, None, size, least)
    assert isinstance(static, StaticProgram), static
    return static


def interpreted(static: StaticProgram) -> Any:
    """Returns a static program as a function that interprets its text: no compiler has a part in it."""
    function = read_function(static.text, static.signature.entry)

    def call(*arguments: Any) -> Any:
        results = function(arguments, lambda _text: None)
        return results[0] if len(results) == 1 else results

    return call


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
@pytest.mark.parametrize("size", [1, 4, 12, 70])
def test_a_static_program_is_right_at_each_size_that_it_serves(example: Example, size: int) -> None:
    sizes = SizeRange(1, size)
    function = program_of_sizes(sizes, lambda at: static_program(example.text, at), interpreted)
    function.ladder = (size,)  # one program serves all
    rng = np.random.default_rng(size)
    for n in {*range(1, min(size, 9) + 1), size // 2 + 1, size - 1, size} - {0}:
        arguments = example.draw(rng, n)
        results = function(*arguments)
        listed = results if isinstance(results, tuple) else (results,)
        for result, expected in zip(listed, example.results(*arguments), strict=True):
            assert result.shape == expected.shape
            np.testing.assert_allclose(result, expected, rtol=0, atol=2e-4)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_nan_in_all_padding_reaches_no_result_at_any_size(example: Example) -> None:
    with poisoned():
        function = program_of_sizes(SIZES, lambda at: static_program(example.text, at), interpreted)
        function.ladder = (SIZES.greatest,)
        rng = np.random.default_rng(0)
        for n in range(1, 71):
            arguments = example.draw(rng, n)
            results = function(*arguments)
            listed = results if isinstance(results, tuple) else (results,)
            for result, expected in zip(listed, example.results(*arguments), strict=True):
                np.testing.assert_allclose(result, expected, rtol=0, atol=2e-4)


@pytest.mark.parametrize("example", OF_TWO_SIZES, ids=lambda example: example.name)
def test_a_program_of_two_sizes_is_right_at_each_pair_whatever_is_in_the_padding(example: Example) -> None:
    sizes = SizeRange.parse("1..24,1..8")
    rng = np.random.default_rng(0)
    with poisoned():
        function = program_of_sizes(sizes, lambda at: static_program(example.text, at, (1, 1)), interpreted)
        function.ladder = (sizes.greatest,)
        for n in range(1, 25):
            for m in range(1, 9):
                arguments = example.draw(rng, (n, m))
                results = function(*arguments)
                listed = results if isinstance(results, tuple) else (results,)
                for result, expected in zip(listed, example.results(*arguments), strict=True):
                    np.testing.assert_allclose(result, expected, rtol=0, atol=2e-4)
