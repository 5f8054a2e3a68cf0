"""A result that differs from eager's is found, and rounding is none."""

import re

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
comparison = pytest.importorskip("benchmarks.op_corpus.comparison")

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("found", "wanted", "line"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]), "result 0: found 2.0, eager gives 3.0 at 1"),
        (torch.tensor([NAN, 2.0]), torch.tensor([1.0, 2.0]), "found nan, eager gives 1.0"),
        (torch.tensor([1.0]), torch.tensor([NAN]), "found 1.0, eager gives nan"),
        (torch.tensor([INF]), torch.tensor([-INF]), "found inf, eager gives -inf"),
        (torch.zeros(1, dtype=torch.int8), torch.zeros(1, dtype=torch.uint8), "eager gives torch.uint8"),
        (torch.ones(2, 1), torch.ones(2), r"of shape \(2, 1\), eager gives torch.float32 of shape \(2,\)"),
        (torch.tensor([2**60]), torch.tensor([2**60 + 1]), "found 1152921504606846976"),
        ((torch.ones(1),), (torch.ones(1), torch.ones(1)), "found 1 results, eager gives 2"),
        ((torch.ones(1), None), (torch.ones(1), 3), "found None, eager gives 3"),
        (torch.tensor([True]), torch.tensor([False]), "found True, eager gives False"),
    ],
)
def test_what_differs_is_named(found: object, wanted: object, line: str) -> None:
    assert re.search(line, comparison.difference(found, wanted))


def test_rounding_equal_special_values_and_what_is_nearer_to_the_true_numbers_do_not_differ() -> None:
    """A sum of f16 that overflows in eager alone."""
    wanted = torch.tensor([NAN, INF, -INF, 1.0, 1e-45, 0.0])
    assert comparison.difference(wanted + torch.tensor([0, 0, 0, 1e-7, 0, 0]), wanted) == ""
    found, wanted = torch.tensor([6e4], dtype=torch.float16), torch.tensor([INF], dtype=torch.float16)
    assert comparison.difference(found, wanted, torch.tensor([6e4], dtype=torch.float64)) == ""
    assert comparison.difference(found, wanted) != ""
    assert comparison.difference(torch.tensor([1 + 2j]), torch.tensor([1 + 3j])) != ""
    assert comparison.difference(torch.tensor([1 + 2j]), torch.tensor([1 - 2j]).conj()) == ""
