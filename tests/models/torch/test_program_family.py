"""A module with a dynamic size is a family of programs that share weights, right for every size."""

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore"),  # of torch, about its own code
    pytest.mark.usefixtures("fresh_back_end"),
]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

import tuner.torch  # noqa: E402
from tuner.core.dynamic_sizes import size_ladder  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402
from tuner.models.torch.program_family import ProgramFamily, _causal_mask  # noqa: E402

WIDTH, HEADS = 64, 4


class Layer(nn.Module):  # type: ignore[misc,unused-ignore]
    """A layer of a language model for token numbers: causal attention, and the last row's scores."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, WIDTH)
        self.norm = nn.RMSNorm(WIDTH)
        self.projections = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.first = nn.Linear(WIDTH, 2 * WIDTH)
        self.second = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, tokens: Any) -> Any:
        x = self.table(tokens)
        normed = self.norm(x)
        q, k, v = (layer(normed).unflatten(1, (HEADS, -1)).transpose(0, 1) for layer in self.projections[:3])
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projections[3](mixed.transpose(0, 1).flatten(1))
        x = x + self.second(self.first(x).relu())
        return x, x.softmax(0).sum(0), x.mean(0), x[-1] @ self.table.weight.t()


class Reversed(nn.Module):  # type: ignore[misc,unused-ignore]
    """Two products, and between them an operator that padding would change."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x).relu().flip(0))


def seeded(made: Any) -> Any:
    torch.manual_seed(0)
    return made().eval()


def tokens_of(n: int) -> Any:
    return torch.randint(0, 50, (n,), generator=torch.Generator().manual_seed(n))


def rows_of(n: int) -> Any:
    return torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(n))


def dynamic(greatest: int) -> Any:
    return ({0: Dim("t", min=1, max=greatest)},)


def family_of(program: Any) -> ProgramFamily:
    (family,) = (part.call for part in program.function.parts if isinstance(part.call, ProgramFamily))
    return family


def require_all_sizes(greatest: int) -> tuple[Any, Any]:
    module = seeded(Layer)
    program = tuner.torch.compile(module, (tokens_of(greatest - 1),), dynamic_shapes=dynamic(greatest))
    family = family_of(program)
    with torch.no_grad():
        for n in range(1, greatest + 1):
            torch.testing.assert_close(program(tokens_of(n)), module(tokens_of(n)), rtol=1e-5, atol=1e-5)
    assert family.sizes == family.ladder
    functions: list[Any] = [made.function for made in family.programs]
    first = {id(array): array.nbytes for array in functions[0].weights}
    for function in functions[1:]:  # positions and the mask of a causal attention are those of a size
        shared = first.keys() & set(map(id, function.weights))
        assert sum(map(first.__getitem__, shared)) > 0.95 * functions[0].code.weights_bytes
    masks = {id(array) for function in functions for array in function.weights if array.nbytes == greatest**2}
    assert len(masks) == 1  # causal: those of all sizes are views of one
    return module, program


IN_A_PROCESS_WITHOUT_TORCH = """
import sys
for name in ("torch", "torch_mlir", "numba_cuda_mlir"):
    sys.modules[name] = None  # cannot be imported
import numpy as np
import tuner
program = tuner.load(sys.argv[1])
for n in (1, 2, 3):
    with np.load(f"{sys.argv[2]}/{n}.npz") as expected:
        for name, array in zip(expected.files[1:], program(expected["tokens"])):
            np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-5, err_msg=f"{n} {name}")
try:
    program(np.zeros(4, np.int64))
except tuner.UsageError as error:
    print(error)
"""


def require_exported(module: Any, program: Any, folder: Path) -> None:
    """Requires that a program for 1 to 3 tokens is right in a process that cannot import torch."""
    program.export(folder / "layer")
    for n in (1, 2, 3):
        with torch.no_grad():
            results = [result.numpy() for result in module(tokens_of(n))]
        np.savez(folder / f"{n}.npz", *results, tokens=tokens_of(n).numpy())
    command = [sys.executable, "-c", IN_A_PROCESS_WITHOUT_TORCH, str(folder / "layer"), str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ran.stdout, ran.stderr) == ("main: found n = 4, allowed 1..3\n", "")
    written = np.load(folder / "layer" / "weights.npy", mmap_mode="r").nbytes
    functions: list[Any] = [made.function for made in family_of(program).programs]
    held = {id(array): array.nbytes for function in functions for array in function.weights}
    assert written < sum(held.values()) + 64 * len(held) + 4096


def require_loaded(program: Any, folder: Path) -> None:
    """Requires that an exported program takes and returns tensors, and is exported again."""
    loaded = tuner.torch.load(folder / "layer")
    for n in (3, 2):
        for result, expected in zip(loaded(tokens_of(n)), program(tokens_of(n)), strict=True):
            assert torch.equal(result, expected)
    with pytest.raises(UsageError, match="argument 0: found size 4 of dimension 0, allowed 1 to 3"):
        loaded(tokens_of(4))
    loaded.export(folder / "again")
    for file in (folder / "layer").iterdir():
        assert (folder / "again" / file.name).read_bytes() == file.read_bytes()


@pytest.mark.slow
def test_each_size_of_a_range_is_right_shares_weights_and_is_exported(tmp_path: Path) -> None:
    module, program = require_all_sizes(3)
    require_exported(module, program, tmp_path)
    require_loaded(program, tmp_path)


def test_a_causal_mask_takes_at_most_a_quarter_of_the_weights_or_4_mib() -> None:
    def positions(weight_bytes: int, greatest: int) -> int:
        weight = torch.empty(weight_bytes, dtype=torch.int8, device="meta")
        mask = _causal_mask(size_ladder(1, greatest), [weight])
        assert mask.shape[0] == mask.shape[1]
        return int(mask.shape[0])

    assert positions(0, 3) == 3
    assert positions(0, 4096) == 2048
    assert positions(52 * 10**6, 4096) == 3584
    assert positions(10**9, 4096) == 4096
    assert _causal_mask((5,), []).tolist() == [[j <= i for j in range(5)] for i in range(5)]


@pytest.mark.slow
def test_all_residues_of_the_tiles_are_right() -> None:
    require_all_sizes(70)


def test_programs_are_compiled_when_a_call_needs_them_or_ahead() -> None:
    module = seeded(lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()))
    program = tuner.torch.compile(module, (rows_of(5),), dynamic_shapes=dynamic(64), sizes=[1, 60])
    family = family_of(program)
    assert family.sizes == (1, 8, 64)
    assert next(module[0].parameters()).data_ptr() in {weight.data_ptr() for weight in family._weights}  # noqa: SLF001
    with torch.no_grad():
        for n in (6, 8, 57):
            torch.testing.assert_close(program(rows_of(n)), module(rows_of(n)), rtol=1e-5, atol=1e-5)
        assert family.sizes == (1, 8, 64)
        module[0].weight.mul_(2)
        program(rows_of(7))
        with pytest.raises(UsageError, match="no program for size 16 yet, and weights have changed"):
            program(rows_of(15))
    with pytest.raises(UsageError, match="found size 65 of dimension 0, allowed 1 to 64"):
        program(rows_of(65))


def test_an_operator_of_two_results_without_a_rule_is_refused() -> None:
    class SortedRows(nn.Module):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            return self.first(torch.sort(self.first(x), 0)[0])

    with pytest.raises(UsageError, match=r"aten.sort at .*\(along a dimension of a dynamic size"):
        tuner.torch.compile(seeded(SortedRows), (rows_of(5),), dynamic_shapes=dynamic(8))


@pytest.mark.slow
def test_an_operator_without_a_rule_is_refused_or_runs_by_pytorch() -> None:
    module = seeded(Reversed)
    with pytest.raises(
        UsageError, match=r"aten.flip at .*test_program_family.py:\d+ \(its sizes are dynamic\)"
    ):
        tuner.torch.compile(module, (rows_of(5),), dynamic_shapes=dynamic(8))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        program = tuner.torch.compile(
            module, (rows_of(5),), dynamic_shapes=dynamic(8), fallback="eager", sizes=[2]
        )
    assert any("in PyTorch: aten.flip at " in str(note.message) for note in notes)
    with pytest.raises(UsageError, match=r"only a program of fusions is exported: .*in PyTorch: aten\.flip"):
        program.export("folder")
    function: Any = program.function
    assert [isinstance(part.call, ProgramFamily) for part in function.parts] == [True, False, True]
    with torch.no_grad():
        for n in (2, 5, 7):
            torch.testing.assert_close(program(rows_of(n)), module(rows_of(n)), rtol=1e-5, atol=1e-5)


def test_wrong_arguments_are_refused_in_one_line() -> None:
    module = nn.Linear(WIDTH, WIDTH).eval()
    with pytest.raises(UsageError, match="sizes: found without dynamic_shapes"):
        tuner.torch.compile(module, (rows_of(5),), sizes=[1])
    exported = torch.export.export(module, (rows_of(5),))
    with pytest.raises(UsageError, match="dynamic_shapes: found with an exported program"):
        tuner.torch.compile(exported, (rows_of(5),), dynamic_shapes=dynamic(8))
    with pytest.raises(UsageError, match="size 9 is out of the range, which ends at 8"):
        tuner.torch.compile(module, (rows_of(5),), dynamic_shapes=dynamic(8), sizes=[9])


@pytest.mark.slow
def test_the_back_end_compiles_prompts_of_any_length() -> None:
    module = seeded(Layer)
    compiled: Any = torch.compile(module, backend="tuner", dynamic=True)
    with torch.no_grad():
        for n in (5, 6, 2, 8):
            torch.testing.assert_close(compiled(tokens_of(n)), module(tokens_of(n)), rtol=1e-5, atol=1e-5)
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left, counts.in_torch) == (1, 0, ())


def test_the_back_end_runs_a_size_by_pytorch_that_cannot_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    from tuner.models.torch import bound_graph

    known = bound_graph._scheduled  # noqa: SLF001 - a program that cannot be compiled

    def scheduled(exported: Any, threads: int) -> Any:
        if "tensor<12x" in exported.text:
            raise UsageError("no program of 12 rows")
        return known(exported, threads)

    monkeypatch.setattr(bound_graph, "_scheduled", scheduled)
    module = seeded(lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()))
    compiled: Any = torch.compile(module, backend="tuner", dynamic=True)
    with torch.no_grad():
        for n in (7, 11, 12, 8):
            torch.testing.assert_close(compiled(rows_of(n)), module(rows_of(n)), rtol=1e-5, atol=1e-5)
    assert tuner.torch.graph_counts().left == 0


class Swapped(nn.Module):  # type: ignore[misc,unused-ignore]
    """Reads its second argument first; a result has a row more than the arguments."""

    def forward(self, x: Any, y: Any) -> Any:
        sums = torch.cat((x.new_zeros(1, WIDTH), y)) @ y.new_ones(WIDTH, WIDTH)
        return x.sum(0), sums, y * 2


@pytest.mark.slow
def test_arguments_and_results_of_an_export_are_in_the_order_of_the_module(tmp_path: Path) -> None:
    module = Swapped().eval()
    shapes = ({0: Dim("t", min=3, max=4)}, {0: Dim("t", min=3, max=4)})
    x, y = rows_of(3), rows_of(4)[1:]
    program = tuner.torch.compile(module, (x, y), dynamic_shapes=shapes)
    program.export(tmp_path)
    loaded: Any = tuner.load(tmp_path)
    for result, expected in zip(loaded(x.numpy(), y.numpy()), module(x, y), strict=True):
        np.testing.assert_allclose(result, expected.numpy(), rtol=1e-5, atol=1e-5)
