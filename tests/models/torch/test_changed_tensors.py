"""Modules that change buffers and inputs: the program changes the same tensors as eager mode."""

import copy
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402
from tests.cli.real import brief_remeasurement  # noqa: E402
from tests.models.exports.export import Function  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402
from tuner.models.run.fused_program import FusedFunction  # noqa: E402
from tuner.models.torch import bound_graph, dynamo_backend  # noqa: E402
from tuner.models.torch.parted_function import PartedFunction  # noqa: E402

HEADS, LONGEST, WIDTH = 2, 16, 8


class Cached(nn.Module):  # type: ignore[misc,unused-ignore]
    """A product whose results are written into a cache, and what reads all of the cache."""

    keys: Any

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("keys", torch.zeros(1, HEADS, LONGEST, WIDTH))

    def forward(self, x: Any, at: Any) -> Any:
        self.write(self.linear(x), at)
        return self.keys.sum(-2)

    def write(self, new: Any, at: Any) -> None:
        raise NotImplementedError


class Copied(Cached):
    def write(self, new: Any, at: Any) -> None:
        self.keys.index_copy_(2, at, new)


class Put(Cached):
    def write(self, new: Any, at: Any) -> None:
        self.keys[:, :, at] = new


class Scattered(Cached):
    def write(self, new: Any, at: Any) -> None:
        self.keys.scatter_(2, at.view(1, 1, -1, 1).expand_as(new), new)


class Added(Cached):
    def write(self, new: Any, at: Any) -> None:
        self.keys.index_add_(2, at, new)


class AddedToMany(Cached):
    """Sums at many positions, which no program has."""

    def write(self, new: Any, at: Any) -> None:
        self.keys.index_add_(2, at.repeat(9), new.repeat(1, 1, 9, 1))


class Sliced(Cached):
    def write(self, new: Any, at: Any) -> None:
        self.keys[:, :, 3:5] = new


class TwoWrites(Cached):
    def write(self, new: Any, at: Any) -> None:
        self.keys.index_copy_(2, at, new)
        self.keys.index_fill_(2, at[:1], 0.5)


class Shifted(Cached):
    """A window that moves: all of the buffer is new."""

    def write(self, new: Any, at: Any) -> None:
        self.keys.copy_(torch.cat([self.keys[:, :, new.shape[2] :], new], 2))


class ReadBefore(Cached):
    """The old numbers are read after the write, so that it cannot be in place."""

    def forward(self, x: Any, at: Any) -> Any:
        before = self.keys * 1
        self.keys.index_copy_(2, at, self.linear(x))
        return self.keys - before


class Nested(Cached):
    def write(self, new: Any, at: Any) -> None:
        self.keys[:, :, 3:5] = new
        self.keys[0, 1, 2] = 7.0


class Returned(Cached):
    def forward(self, x: Any, at: Any) -> Any:
        self.keys.index_copy_(2, at, self.linear(x))
        return self.keys, self.keys[:, :, :4] + 1


class Counting(Cached):
    """A number that each call increases, and a buffer that is assigned."""

    calls: Any
    last: Any

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64), persistent=False)
        self.register_buffer("last", torch.zeros(1, HEADS, 2, WIDTH))

    def forward(self, x: Any, at: Any) -> Any:
        new = self.linear(x)
        self.calls.add_(1)
        old = self.last
        self.last = new
        return old + new * self.calls


class CountedAndReturned(Counting):
    """Returns new values that are copied into buffers, and a view of one."""

    def forward(self, x: Any, at: Any) -> Any:
        result = super().forward(x, at)
        return result, self.calls, self.last, self.last[:, 0] * 1


class Swapped(Cached):
    """Two buffers whose new values are each other's old ones."""

    other: Any

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("other", torch.ones(1, HEADS, LONGEST, WIDTH))

    def forward(self, x: Any, at: Any) -> Any:
        before = self.keys.clone()
        self.keys.copy_(self.other)
        self.other.copy_(before)
        return self.linear(x)


ROW_WRITES = (Copied, Put, Scattered, TwoWrites, Returned)
IN_PLACE = (*ROW_WRITES, Sliced)
WHOLE_COPIES = (Added, Nested, Shifted, ReadBefore)
COPIES = (*WHOLE_COPIES, Counting, CountedAndReturned)  # of smaller buffers
IN_PARTS = (Swapped, AddedToMany)


def made(class_: type[Cached]) -> Cached:
    torch.manual_seed(0)
    module = class_()
    module.eval()
    return module


def call(number: int) -> tuple[Any, Any]:
    x = torch.linspace(-1, 1, HEADS * 2 * WIDTH).reshape(1, HEADS, 2, WIDTH) * (number + 1)
    return x, torch.tensor([2 * number, 2 * number + 1])


def require_same(found: Any, expected: Any) -> None:
    leaves = torch.utils._pytree.tree_leaves  # noqa: SLF001 - torch's only API
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def require_way(function: Any, class_: type[Cached], cache_bytes: int) -> None:
    """Requires that a program writes rows, and copies all of a cache, where it should."""
    if class_ in IN_PARTS:
        assert isinstance(function, PartedFunction)
        return
    assert isinstance(function, FusedFunction)
    by_ops = [(fusion.ops, fusion.moved_bytes) for fusion in function.code.fusions]
    assert ((("linalg.copy",), 2 * cache_bytes) in by_ops) == (class_ in WHOLE_COPIES)
    assert (("tensor.scatter",) in dict(by_ops)) == (class_ in (*ROW_WRITES, ReadBefore))


@pytest.mark.parametrize("class_", [*IN_PLACE, *COPIES, *IN_PARTS])
def test_buffers_change_as_in_eager_mode(class_: type[Cached]) -> None:
    module = made(class_)
    eager = copy.deepcopy(module)
    program = tuner.torch.compile(module, call(0))
    require_same(dict(module.named_buffers()), dict(eager.named_buffers()))  # compiling changes nothing
    require_way(program.function, class_, module.keys.nbytes)
    for number in range(3):
        with torch.no_grad():
            expected = eager(*call(number))
        require_same(program(*call(number)), expected)
        require_same(dict(module.named_buffers()), dict(eager.named_buffers()))
    assert program.stale() == ()
    with torch.no_grad():
        module.linear.bias.add_(1)
    assert program.stale() == ("linear.bias",)
    if class_ in IN_PARTS:
        with pytest.raises(UsageError, match="only a program of fusions is exported: it changes buffer "):
            program.export("nowhere")


def test_an_exported_program_takes_buffers_that_it_changes_as_its_last_arguments(tmp_path: Path) -> None:
    module = made(Returned)
    tuner.torch.compile(module, call(0)).export(tmp_path / "cached")
    loaded = tuner.torch.load(tmp_path / "cached")
    arrays = tuner.load(tmp_path / "cached")
    keys = torch.full_like(module.keys, 3)
    own = keys.numpy().copy()
    module.keys.fill_(3)
    for number in range(3):
        _, expected = module(*call(number))
        require_same(loaded(*call(number), keys), expected.detach())
        result: Any = arrays(*[tensor.numpy() for tensor in call(number)], own)
        require_same(torch.from_numpy(result), expected.detach())
    require_same(keys, module.keys)
    require_same(torch.from_numpy(own), module.keys)


def test_a_buffer_that_is_returned_is_the_buffer() -> None:
    module = made(Returned)
    program = tuner.torch.compile(module, call(0))
    keys, _ = program(*call(1))
    assert keys.data_ptr() == module.keys.data_ptr()


class Layered:
    """A cache that is not a module, as those of transformers."""

    def __init__(self) -> None:
        self.keys = torch.zeros(1, HEADS, LONGEST, WIDTH)
        self.count = torch.tensor(0)


class OfAnotherObject(nn.Module):  # type: ignore[misc,unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.cache = Layered()
        self.register_buffer("keys", self.cache.keys)
        self.register_buffer("count", self.cache.count)

    def forward(self, x: Any) -> Any:
        self.cache.keys.index_copy_(2, self.cache.count + torch.arange(2), self.linear(x))
        self.cache.count.add_(2)
        return self.cache.keys.sum(-2)


def test_buffers_that_a_module_reaches_by_another_object_are_changed() -> None:
    torch.manual_seed(0)
    module = OfAnotherObject().eval()
    program = tuner.torch.compile(module, call(0)[:1])
    assert int(module.count) == 0  # compiling changes nothing
    results = [program(call(number)[0]) for number in range(3)]
    changed = {name: buffer.clone() for name, buffer in module.named_buffers()}
    for buffer in module.buffers():
        buffer.zero_()
    with torch.no_grad():
        require_same(results, [module(call(number)[0]) for number in range(3)])
    require_same(changed, dict(module.named_buffers()))


def test_a_batch_norm_in_training_mode_counts_its_calls() -> None:
    module = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16)).train()
    eager = copy.deepcopy(module)
    x = torch.linspace(-2, 3, 32 * 16).reshape(32, 16).sin()
    program = tuner.torch.compile(module, (x,))
    for factor in (1, 2):
        with torch.no_grad():
            require_same(program(x * factor), eager(x * factor))
    require_same(dict(module.named_buffers()), dict(eager.named_buffers()))
    assert int(module[1].num_batches_tracked) == 2


class OfInputs(nn.Module):  # type: ignore[misc,unused-ignore]
    """Writes its second input in place, adds to its third, and leaves the others as they are."""

    def forward(self, x: Any, cache: Any, count: Any, at: Any) -> Any:
        cache.index_copy_(0, at, x @ x.t())
        count.add_(1)
        return cache * 2 + count


def inputs() -> tuple[Any, Any, Any, Any]:
    return torch.linspace(-1, 1, 32).reshape(4, 8), torch.zeros(6, 4), torch.ones(()), torch.arange(1, 5)


def test_inputs_change_as_in_eager_mode() -> None:
    program = tuner.torch.compile(OfInputs(), inputs())
    found, expected = inputs(), inputs()
    for _ in range(2):
        require_same(program(*found), OfInputs()(*expected))
        require_same(found, expected)


def test_inputs_with_other_strides_change_too() -> None:
    program = tuner.torch.compile(OfInputs(), inputs())
    x, cache, count, at = inputs()
    across = torch.zeros(4, 6).t()
    require_same(program(x, across, count, at), OfInputs()(x, cache, torch.ones(()), at))
    require_same(across, cache)


RESHAPES: dict[str, Any] = {
    "unsqueeze_": lambda x: x.zero_().unsqueeze_(0),
    "t_": lambda x: x.add_(1).t_() * 2,
    "transpose_": lambda x: x.transpose_(0, 1).add_(1) * 2,
    "swapaxes_": lambda x: x.swapaxes_(0, 1) * 2,
    "resize_": lambda x: x.resize_(2, 3) * 2,
    "as_strided_": lambda x: x.as_strided_((2, 2), (1, 2)) * 2,
}


@pytest.mark.parametrize("name", RESHAPES)
def test_an_input_whose_shape_changes_in_place_is_refused_and_left_to_eager_mode(name: str) -> None:
    function = RESHAPES[name]
    x = torch.arange(12.0).reshape(3, 4)
    for fallback in ("none", "eager"):
        with pytest.raises(UsageError, match=r"changes the shape of argument 0 in place: only its elements"):
            tuner.torch.compile(Function(function), (x,), fallback=fallback)
    torch._dynamo.reset()  # noqa: SLF001
    tuner.torch.graph_counts(reset=True)
    expected = x.clone()
    result = torch.compile(Function(function), backend="tuner")(x)
    assert torch.equal(result, function(expected))
    assert x.shape == expected.shape
    assert torch.equal(x, expected)
    assert all("changes the shape of argument 0" in reason for reason in tuner.torch.graph_counts().reasons)


def test_a_copy_whose_shape_changes_in_place_is_no_input() -> None:
    x = torch.arange(12.0).reshape(1, 3, 4)
    function: Any = lambda x: (x.clone().squeeze_(0).t_() * 2, x[0].t_() * 3, x.squeeze_(1) + 1)  # noqa: E731
    for found, wanted in zip(tuner.torch.compile(Function(function), (x,))(x), function(x), strict=True):
        assert torch.equal(found, wanted)


class Counted(nn.Module):  # type: ignore[misc,unused-ignore]
    """Positions after a count, which is increased and returned: the tensor itself, as a cache's length is."""

    def forward(self, x: Any, count: Any) -> Any:
        own = count.to("cpu")
        positions = torch.arange(4) + own
        own.add_(4)
        return own, x * positions


class CountedAndViewed(Counted):
    def forward(self, x: Any, count: Any) -> Any:
        own, y = super().forward(x, count)
        return own, y, own.view(1)


@pytest.mark.usefixtures("fresh_back_end")
@pytest.mark.parametrize(("class_", "is_whole"), [(Counted, True), (CountedAndViewed, False)])
def test_a_changed_input_that_is_returned_is_that_tensor_and_the_graph_is_one_program(
    class_: type[nn.Module], is_whole: bool
) -> None:
    x, count = torch.ones(4), torch.tensor(3)
    graph = torch.fx.symbolic_trace(class_())
    expected = graph(x, count.clone())
    compiled = dynamo_backend.backend(graph, (x, count))
    is_program = isinstance(compiled, bound_graph.BoundGraph) and not compiled.is_in_parts
    assert is_program == is_whole
    found = compiled(x, count)
    assert found[0] is count
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_an_input_that_shares_memory_with_one_that_is_changed_is_refused() -> None:
    program = tuner.torch.compile(OfInputs(), inputs())
    memory = torch.zeros(56)
    _, _, count, at = inputs()
    assert program(memory[:32].view(4, 8), memory[32:].view(6, 4), count, at).shape == (6, 4)
    with pytest.raises(UsageError, match="argument 1: is written to, but shares memory with argument 0"):
        program(memory[:32].view(4, 8), memory[31:55].view(6, 4), count, at)


class Decayed(nn.Module):  # type: ignore[misc,unused-ignore]
    """A sum that is assigned, and a second buffer that takes its old numbers."""

    sums: Any
    last: Any

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.register_buffer("sums", torch.zeros(shape))
        self.register_buffer("last", torch.ones(4, 3))

    def forward(self, x: Any) -> Any:
        before = self.sums
        self.sums = self.last * 0.5 + x
        self.last = before + 0
        return self.sums * 2


def test_buffers_that_submodules_assign_are_changed() -> None:
    x = torch.arange(12.0).reshape(4, 3)
    module = nn.Sequential(nn.Sequential(Decayed(4, 3)), Decayed(4, 3))
    eager = copy.deepcopy(module)
    program = tuner.torch.compile(module, (x,))
    for _ in range(3):
        require_same(program(x), eager(x))
        require_same(dict(module.named_buffers()), dict(eager.named_buffers()))
    with pytest.raises(UsageError, match=r"the module assigns its buffer 0\.sums a tensor of another shape"):
        tuner.torch.compile(nn.Sequential(Decayed(1)), (x,))


class Filled(Copied):
    """Counts its calls, and writes at the number of the call: no more calls than the cache is long."""

    calls: Any

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Any, at: Any) -> Any:
        result = super().forward(x + at, self.calls + 0)
        self.calls.add_(1)
        return result


@pytest.mark.slow
@pytest.mark.parametrize(("class_", "fails"), [(Copied, False), (OfInputs, False), (Filled, True)])
def test_tuning_leaves_all_tensors_as_they_were(class_: type[Any], fails: bool, tmp_path: Path) -> None:
    arguments = inputs() if class_ is OfInputs else (torch.randn(1, HEADS, 1, WIDTH), torch.tensor([3]))
    module = class_().eval() if class_ is OfInputs else made(class_)
    before = copy.deepcopy((module.state_dict(), arguments))
    with brief_remeasurement():
        program = tuner.torch.tune(
            module, arguments, trials=1, workers=1, baseline="eager", db=tmp_path / "results.db"
        )
    require_same((module.state_dict(), arguments), before)
    eager = copy.deepcopy(module)
    theirs = copy.deepcopy(arguments)
    with torch.no_grad():
        require_same(program(*arguments), eager(*theirs))
    require_same((module.state_dict(), arguments), (eager.state_dict(), theirs))
    tuned: Any = program.tuned
    (found,) = tuned.baselines
    assert ("calls one after the other: " in found.reason) == fails
    assert (found.call_s is None) == fails


@pytest.mark.slow
def test_operators_that_are_not_supported_are_named_where_buffers_change() -> None:
    class Sorting(Copied):
        def forward(self, x: Any, at: Any) -> Any:
            return torch.sort(super().forward(x, at))[0]

    with pytest.raises(UsageError, match=r"^operators that are not supported: aten\.sort"):
        tuner.torch.compile(made(Sorting), call(0))
    module = made(Sorting)
    eager = copy.deepcopy(module)
    program = tuner.torch.compile(module, call(0), fallback="eager")
    with torch.no_grad():
        require_same(program(*call(1)), eager(*call(1)))
    require_same(module.keys, eager.keys)


def test_a_changed_parameter_is_refused() -> None:
    class Learning(nn.Linear):  # type: ignore[misc,unused-ignore]
        def forward(self, x: Any) -> Any:
            self.weight.mul_(2)
            return super().forward(x)

    with pytest.raises(UsageError, match="the module changes its parameter weight: only buffers"):
        tuner.torch.compile(Learning(8, 8), (torch.ones(4, 8),))


@pytest.mark.drawn(1)
@pytest.mark.usefixtures("fresh_back_end")
@pytest.mark.parametrize(("class_", "compiled_calls"), [(Copied, 1), (Shifted, 1), (Counting, 3)])
def test_the_back_end_changes_buffers_and_soon_compiles_no_more(
    class_: type[Cached], compiled_calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound_graph, "loops_note", lambda _fusions: "")  # it is small
    module = made(class_)
    eager = copy.deepcopy(module)
    compiled: Any = torch.compile(module, backend="tuner")
    with torch.no_grad():
        for number in range(6):
            require_same(compiled(*call(number)), eager(*call(number)))
            require_same(dict(module.named_buffers()), dict(eager.named_buffers()))
            if number + 1 == compiled_calls:
                monkeypatch.setattr(bound_graph, "export_module", None)
    counts = tuner.torch.graph_counts()
    assert (counts.taken, counts.left, counts.in_torch) == (1, 0, ())


def write_between_gaps(x: Any) -> Any:
    x.unfold(0, 2, 5).add_(100)
    return x * 1


def write_overlapping_windows_of_a_result(x: Any) -> Any:
    y = x * 2
    y.unfold(0, 4, 2).add_(1)
    return y


def write_a_column_of_windows(x: Any) -> Any:
    x.unfold(0, 2, 5)[1:, 0].sub_(3)
    return x * 1


def clear_an_expanded_input(x: Any) -> Any:
    x[:1].expand(24).zero_()
    return x * 1


def fill_a_row_of_expanded_rows(x: Any) -> Any:
    y = (x * 2).expand(4, 24)
    y[1, 3:5].fill_(7)
    return y


def fill_where_expanded_is_large(x: Any) -> Any:
    y = (x[:1] * 1).expand(24)
    y.masked_fill_(x > 3, -1)
    return y + x


WINDOW_WRITES = {
    clear_an_expanded_input: "it writes into an expanded tensor",
    fill_a_row_of_expanded_rows: "it writes into an expanded tensor",
    fill_where_expanded_is_large: "it writes into an expanded tensor",
    write_between_gaps: "it writes into windows of a tensor",
    write_overlapping_windows_of_a_result: "a tensor being mutated that has internal overlap",
    write_a_column_of_windows: "it writes into windows of a tensor",
}


@pytest.mark.drawn(2)
@pytest.mark.usefixtures("fresh_back_end")
@pytest.mark.parametrize(("function", "message"), WINDOW_WRITES.items())
def test_writes_into_windows_and_expanded_tensors_are_refused_and_left_to_eager_mode(
    function: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamo_backend, "FALLBACK", "inductor")  # which functionalizes, too
    x = torch.arange(24.0)
    for fallback in ("none", "eager"):
        with pytest.raises(UsageError, match=message):
            tuner.torch.compile(Function(function), (x,), fallback=fallback)
    compiled: Any = torch.compile(function, backend="tuner")
    eager = x.clone()
    with torch.no_grad():
        require_same(compiled(x), function(eager))
    require_same(x, eager)


def test_a_write_that_no_program_has_is_named_where_nothing_else_is_computed() -> None:
    def written(x: Any) -> Any:
        x.diagonal().add_(100)
        return x

    with pytest.raises(UsageError, match=r"operators that are not supported: aten\.diagonal_scatter"):
        tuner.torch.compile(Function(written), (torch.ones(4, 4),), fallback="eager")
