"""Products of groups of rows whose sizes are known at the call alone."""

from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402
from tuner.models.torch.grouped_products import ROWS, GroupedProduct, _pieces, _sizes  # noqa: E402

GROUPS, K, N = 3, 20, 37
OPERATOR = "transformers::grouped_mm_fallback"  # of a package that is not installed here


def expected_product(rows: Any, matrices: Any, ends: Any) -> Any:
    result = rows.new_zeros((rows.shape[0], matrices.shape[2]))
    for group, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        result[start:end] = rows[start:end] @ matrices[group]
    return result


@pytest.fixture(scope="module")
def operator() -> Any:
    """The operator of transformers, or one of its name that the test defines."""
    package, name = OPERATOR.split("::")
    if not hasattr(getattr(torch.ops, package), name):
        definition = torch.library.custom_op(
            OPERATOR,
            expected_product,
            mutates_args=(),
            schema="(Tensor input, Tensor weight, Tensor offs) -> Tensor",
        )
        definition.register_fake(lambda rows, matrices, _: rows.new_empty((rows.shape[0], matrices.shape[2])))
    return getattr(torch.ops.transformers, name).default


def matrices_of(seed: int, dtype: Any = None) -> Any:
    return torch.randn(GROUPS, K, N, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def require_right(product: GroupedProduct, matrices: Any, counts: list[int], more: int) -> None:
    ends = torch.tensor([*accumulate(counts)], dtype=torch.int32)
    rows = torch.randn(
        sum(counts) + more, K, generator=torch.Generator().manual_seed(1), dtype=matrices.dtype
    )
    rows[::5, 3] = float("nan")  # which must reach its own row alone
    found = product(rows, ends)
    expected = expected_product(rows, matrices, ends)
    tolerance = max(1e-5, 2 * torch.finfo(matrices.dtype).eps)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_groups_of_a_few_rows(dtype: str) -> None:
    matrices = matrices_of(0, getattr(torch, dtype))
    product = GroupedProduct(expected_product, matrices, 5)
    for counts in ([2, 2, 1], [0, 5, 0], [5, 0, 0], [0, 0, 0], [1, 0, 3], [0, 1, 4]):
        require_right(product, matrices, counts, 5 - sum(counts))


@pytest.mark.slow
def test_drawn_groups() -> None:
    matrices = matrices_of(2)
    product = GroupedProduct(expected_product, matrices, 1000)

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.integers(0, 200), min_size=GROUPS, max_size=GROUPS), st.integers(0, 3))
    def require(counts: list[int], more: int) -> None:
        require_right(product, matrices, counts, more)

    require()


def test_code_of_all_numbers_of_rows_shares_packed_matrices() -> None:
    product = GroupedProduct(expected_product, torch.randn(GROUPS, 64, 128), 8)
    addresses = {tuple(map(tuple, code.addresses)) for code in product.codes}
    assert len(addresses) == 1


def test_ends_that_are_out_of_order_are_left_to_pytorch() -> None:
    called = []

    def operator(*operands: Any) -> Any:
        called.append(operands[2].tolist())
        return torch.zeros(4, N)

    product = GroupedProduct(operator, matrices_of(0), 4)
    for ends in ([2, 1, 4], [1, 2, 5], [-1, 2, 4]):
        assert not product(torch.ones(4, K), torch.tensor(ends)).any()
    assert called == [[2, 1, 4], [1, 2, 5], [-1, 2, 4]]


@given(st.lists(st.integers(0, 300), min_size=1, max_size=5), st.integers(1, 400))
def test_pieces_cover_each_group_in_order(counts: list[int], rows: int) -> None:
    sizes = _sizes(rows)
    assert sizes[-1] >= min(rows, ROWS[-1])
    bounds = [0, *accumulate(counts)]
    pieces = list(_pieces(bounds, sizes))
    for group, (start, end) in enumerate(pairwise(bounds)):
        of_group = [piece for piece in pieces if piece.group == group]
        following = [piece.start for piece in of_group[1:]]
        assert [piece.start + piece.rows for piece in of_group[:-1]] == following
        assert bool(of_group) == (start < end)
        if of_group:
            assert of_group[0].start == start
            assert of_group[-1].start < end <= of_group[-1].start + of_group[-1].rows
    assert pieces == sorted(pieces, key=lambda piece: piece.start)


class Experts(nn.Module):  # type: ignore[misc,unused-ignore]
    """A mixture whose rows are sorted by their experts, as in transformers."""

    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.gate = nn.Linear(K, GROUPS)
        self.matrices = nn.Parameter(torch.randn(GROUPS, N, K))
        self.operator = operator

    def forward(self, x: Any) -> Any:
        chosen, order = torch.sort(self.gate(x).argmax(-1))
        ends = torch.searchsorted(chosen, torch.arange(GROUPS), right=True).to(torch.int32)
        return self.operator(x[order].relu(), self.matrices.transpose(-2, -1), ends).tanh()


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_back_end")
def test_the_back_end_computes_groups_and_follows_changed_matrices(operator: Any) -> None:
    torch.manual_seed(0)
    module = Experts(operator).eval()
    compiled: Any = torch.compile(module, backend="tuner", dynamic=False)
    with torch.no_grad():
        for x in (torch.randn(16, K), torch.ones(16, K)):
            torch.testing.assert_close(compiled(x), module(x), rtol=1e-5, atol=1e-5)
        module.matrices.mul_(2)
        torch.testing.assert_close(compiled(x), module(x), rtol=1e-5, atol=1e-5)
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left) == (1, 0)
    assert "aten.sort" in counts.in_torch[0]
    assert "grouped_mm" not in counts.in_torch[0]


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_back_end")
def test_groups_of_any_number_of_rows(operator: Any) -> None:
    torch.manual_seed(0)
    module = Experts(operator).eval()
    compiled: Any = torch.compile(module, backend="tuner", dynamic=True)
    with torch.no_grad():
        for rows in (16, 7, 333):
            x = torch.randn(rows, K)
            torch.testing.assert_close(compiled(x), module(x), rtol=1e-5, atol=1e-5)
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left) == (1, 0)
    assert "grouped_mm" not in counts.in_torch[0]


class Grouped(nn.Module):  # type: ignore[misc,unused-ignore]
    """A product of groups alone: nothing else is refused, and no other part is worth a program."""

    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.randn(GROUPS, K, N))
        self.operator = operator

    def forward(self, x: Any, ends: Any) -> Any:
        return self.operator(x, self.matrices, ends).relu()


def test_a_product_of_groups_alone_is_compiled(operator: Any) -> None:
    module = Grouped(operator).eval()
    operands = torch.randn(8, K), torch.tensor([3, 3, 8])
    with pytest.raises(UsageError, match="grouped_mm_fallback"):
        tuner.torch.compile(module, operands)
    program = tuner.torch.compile(module, operands, fallback="eager")
    with torch.no_grad():
        for ends in ([3, 3, 8], [0, 8, 8], [1, 2, 4]):
            given_ends = torch.tensor(ends)
            found = program(operands[0], given_ends)
            torch.testing.assert_close(found, module(operands[0], given_ends), rtol=1e-5, atol=1e-5)
