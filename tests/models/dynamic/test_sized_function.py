"""Programs of a dynamic size as functions: compiled at a few sizes, called at all; ranges, errors."""

from pathlib import Path

import numpy as np
import pytest

import tuner
from tests.models.dynamic.programs import EXAMPLES, OF_TWO_SIZES, Example
from tuner.core.dynamic_sizes import SizeRange
from tuner.core.errors import UsageError
from tuner.models.run.sized_function import SizedFunction

BY_NAME = {example.name: example for example in EXAMPLES}
COMPILED = [BY_NAME[name] for name in ("LINEAR", "MLP", "SOFTMAX", "ATTENTION", "MEAN")]


def compiled(example: Example, sizes: str) -> SizedFunction:
    function = tuner.compile_program(example.text, "cpu", sizes=sizes)
    assert isinstance(function, SizedFunction)
    return function


def require_right(function: SizedFunction, example: Example, n: int) -> None:
    arguments = example.draw(np.random.default_rng(n), n)
    results = function(*arguments)
    listed = results if isinstance(results, tuple) else (results,)
    for result, expected in zip(listed, example.results(*arguments), strict=True):
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=0, atol=2e-4)


def test_a_program_is_compiled_when_its_size_is_called_and_serves_all_smaller_ones() -> None:
    example = BY_NAME["MEAN"]
    function = compiled(example, "9..14")
    assert function.ladder == (9, 10, 12, 14)
    assert not function.compiled_sizes
    for n in (13, 14, 12, 11, 13):
        require_right(function, example, n)
    assert function.compiled_sizes == (12, 14)
    assert repr(function) == "SizedFunction(mean, n = 9..14; 2 of 4 programs compiled)"
    function.close()
    assert repr(function).endswith("0 of 4 programs compiled)")


@pytest.mark.slow
@pytest.mark.parametrize("example", COMPILED, ids=lambda example: example.name)
def test_a_compiled_program_is_right_at_each_size_of_its_range(example: Example) -> None:
    function = compiled(example, "1..70")
    for n in np.random.default_rng(0).permutation(np.arange(1, 71)):
        require_right(function, example, int(n))
    assert function.compiled_sizes == function.ladder


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_one_compiled_program_is_right_at_each_size_below_its_own(example: Example) -> None:
    function = compiled(example, "20..23")
    for n in (20, 21, 22, 23, 20):
        require_right(function, example, n)


def test_padding_that_a_call_leaves_behind_is_gone_in_the_next() -> None:
    example = BY_NAME["PRODUCT_OVER_N"]
    function = compiled(example, "8..24")
    function.ladder = (24,)
    for n in (24, 23, 9, 8, 20):
        require_right(function, example, n)


def test_arguments_that_do_not_fit_are_one_line() -> None:
    function = compiled(BY_NAME["ATTENTION"], "1..8")
    q, k = (np.zeros((2, n, 4), np.float32) for n in (3, 4))
    with pytest.raises(
        UsageError, match=r"^attention: found 2 x 4 x 4 for 2 x n x 4 of argument 1, with n = 3 of argument 0"
    ):
        function(q, k, q)
    with pytest.raises(UsageError, match=r"^attention: found 2 arguments, allowed 3"):
        function(q, q)
    long = np.zeros((2, 9, 4), np.float32)
    with pytest.raises(UsageError, match=r"^attention: found n = 9, allowed 1\.\.8"):
        function(long, long, long)
    with pytest.raises(UsageError, match=r"argument 1: .*float64"):
        function(q, q.astype(np.float64), q)


@pytest.mark.slow
def test_a_program_of_batch_and_length_runs_pairs_of_sizes_and_is_exported(tmp_path: Path) -> None:
    example = OF_TWO_SIZES[0]
    function = compiled(example, "3..8,1..2")
    assert function.ladder == ((3, 1), (3, 2), (4, 1), (4, 2), (8, 1), (8, 2))
    rng = np.random.default_rng(0)
    function.export(tmp_path)
    loaded = tuner.load(tmp_path)
    assert repr(loaded) == "SizedFunction(encoder, n = 3..8, m = 1..2; 0 of 6 programs compiled)"
    assert isinstance(loaded, SizedFunction)
    for sizes in ((3, 1), (8, 2), (5, 1), (7, 2)):
        arguments = example.draw(rng, sizes)
        for result, again, expected in zip(
            function(*arguments), loaded(*arguments), example.results(*arguments), strict=True
        ):
            np.testing.assert_allclose(result, expected, rtol=0, atol=2e-4)
            np.testing.assert_array_equal(again, result)
    assert loaded.compiled_sizes == ((3, 1), (8, 1), (8, 2))
    with pytest.raises(UsageError, match=r"^encoder: found n = 9, m = 2, allowed 3\.\.8,1\.\.2"):
        loaded(*example.draw(rng, (9, 2)))


def test_a_second_size_has_a_range_and_an_argument_that_says_it() -> None:
    text = OF_TWO_SIZES[0].text
    with pytest.raises(UsageError, match=r"tuner\.sizes: found a second size, m, without its range"):
        tuner.compile_program(text, "cpu", sizes="1..8")
    with pytest.raises(UsageError, match="mean: no dimension of an argument says m"):
        tuner.compile_program(BY_NAME["MEAN"].text, "cpu", sizes="1..8,1..8")


def test_a_program_of_a_dynamic_size_is_for_a_cpu(tmp_path: Path) -> None:
    text = BY_NAME["MEAN"].text
    with pytest.raises(UsageError, match=r"^sizes 1\.\.8 cannot be combined with target simulator"):
        tuner.compile_program(text, "simulator", sizes="1..8")
    with pytest.raises(UsageError, match="cannot be combined with scripts"):
        tuner.compile_program(text, "cpu", sizes="1..8", scripts={tuner.Matmul(8, 8, 8): ""})
    static = tmp_path / "f.mlir"
    static.write_text(text.replace("?", "4"))
    with pytest.raises(UsageError, match=r"f\.mlir:1:1: func\.func: no argument has a dynamic size"):
        tuner.compile_program(static, "cpu", sizes="1..8")


def test_ranges_are_read_and_wrong_ones_are_one_line() -> None:
    assert SizeRange.parse("1..4096") == SizeRange(1, 4096)
    assert SizeRange.parse("300") == SizeRange(300, 300)
    assert SizeRange.parse("1..512,1..8") == SizeRange((1, 1), (512, 8))
    for wrong in ("", "4..", "..4", "4..2", "0..8", "8..9999999", "1-8", "1..2,", "1,2,3", "1..2,0..2"):
        with pytest.raises(UsageError, match=r"^sizes: found"):
            SizeRange.parse(wrong)


def test_of_a_range_both_ends_and_some_between_are_tuned_and_checked() -> None:
    sizes = SizeRange(1, 4096)
    assert sizes.tuned_sizes[0] == 4096
    assert sizes.tuned_sizes[-1] == 1
    assert len(sizes.tuned_sizes) == 4
    assert set(sizes.tuned_sizes) <= set(sizes.ladder)
    assert {1, 4096} <= set(sizes.checked_sizes)
    assert set(sizes.checked_sizes) - set(sizes.ladder)
    assert SizeRange(5, 5).tuned_sizes == SizeRange(5, 5).checked_sizes == (5,)
