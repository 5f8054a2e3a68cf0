"""A part of a module with a dynamic size as a family of programs, each of static sizes.

A call of size n uses the program of the next greater size S of a ladder, which is compiled when a call first
needs it. Arguments are padded to S, and results cut back to n. Programs share their packed weights.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import torch
from torch.fx import GraphModule, Node

from tuner.core.dynamic_sizes import ladder_size, size_ladder
from tuner.core.errors import CandidateError, UsageError
from tuner.models.torch.dynamic_sizes import DynamicSize, is_other_number
from tuner.models.torch.graph_outputs import is_overload
from tuner.models.torch.padded_graph import CAUSAL_MASK, PaddedGraph
from tuner.models.torch.padding_rules import OperatorCall, is_symbol, padded_dims
from tuner.models.torch.program import TensorProgram
from tuner.models.torch.symbol_sizes import Size, SymbolSize, size_at, size_of, sizes_of_tensor
from tuner.models.torch.weights import WeightContents
from tuner.runtime.process_state import thread_lock

MASK_BYTES = 1 << 22  # of a causal mask, a byte for each pair of positions: 2048 of them
Tensors = Sequence[torch.Tensor]
Compiled = Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], TensorProgram]
Values = Sequence[torch.Tensor | int | float]
NUMBER_TYPES = {torch.SymInt: torch.int64, torch.SymFloat: torch.float64, torch.SymBool: torch.bool}


@dataclass(frozen=True, eq=False)
class SizedProgram:
    """The program for one size of the ladder; ``takes_size``: its last argument is the size n of the call."""

    program: TensorProgram
    takes_size: bool


class ProgramFamily:
    """A graph with one dynamic size, called with tensors of any size of a range."""

    def __init__(self, module: GraphModule, size: DynamicSize, compiled: Compiled, falls_back: bool) -> None:
        """Takes a graph whose operators have rules for padding (``masks_before``).

        Args:
            module: the graph; its weights may be those of the user's module.
            size: its dynamic size, with the range.
            compiled: compiles a module of static sizes for example tensors.
            falls_back: whether calls run by PyTorch where the program of their size cannot be compiled.
        """
        self._module = module
        self._symbol = size.symbol
        self.ladder = size_ladder(max(size.least, 1), size.greatest)
        self._compile = compiled
        self._falls_back = falls_back
        self._programs: dict[int, SizedProgram | None] = {}  # None: by PyTorch
        self._lock = thread_lock()
        placeholders = module.graph.find_nodes(op="placeholder")
        self.examples = tuple(node.meta["val"] for node in placeholders)
        self.is_number = tuple(map(is_symbol, placeholders))  # of each argument: whether it is a number
        self.arguments = tuple(map(_sizes, placeholders))
        self.results = tuple(map(_sizes, module.graph.output_node().args[0]))
        self._weights = tuple(module.buffers())
        if any(map(_is_causal, module.graph.nodes)):
            module.register_buffer(CAUSAL_MASK, _causal_mask(self.ladder, self._weights))
        self._contents = WeightContents()
        self._state = self._contents.of(self._weights)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Returns the sizes of the ladder that were tried, ascending; also those that PyTorch runs."""
        return tuple(sorted(self._programs))

    @property
    def programs(self) -> tuple[TensorProgram, ...]:
        """Returns the programs, by ascending size; without the sizes that run by PyTorch."""
        made = map(self._programs.__getitem__, self.sizes)
        return tuple(sized.program for sized in made if sized is not None)

    @property
    def programs_by_size(self) -> dict[int, TensorProgram]:
        """Returns the programs by their sizes, in the order in which they were compiled."""
        return {size: made.program for size, made in self._programs.items() if made is not None}

    def compile_for(self, values: Values, sizes: Iterable[int]) -> None:
        """Compiles the programs that calls of these sizes use, those that are not compiled yet.

        ``values``: arguments of an example call. Raises UsageError for a size out of range, and if weights
        have changed; UsageError or CandidateError if a program (the first, if calls may fall back) fails.
        """
        for size in sizes:
            self._program(ladder_size(self.ladder, size), values)

    def compile_all(self) -> None:
        """Compiles the programs of all sizes of the ladder; raises the errors of ``compile_for``."""
        n = self.ladder[0]
        values: list[torch.Tensor | int] = []
        for example, sizes, is_number in zip(self.examples, self.arguments, self.is_number, strict=True):
            shape = [size_at(size, n) for size in sizes]
            if is_number:
                values.append(shape[0])
            else:
                values.append(torch.zeros(shape, dtype=example.dtype))
        self.compile_for(values, self.ladder)

    def program_at(self, size: int) -> SizedProgram | None:
        """Returns the program compiled for a size of the ladder; None where PyTorch runs calls of this size.

        Raises KeyError for a size without a program (see ``sizes``).
        """
        return self._programs[size]

    def size_of(self, values: Values) -> int:
        """Returns the dynamic size of a call's arguments."""
        for value, sizes in zip(values, self.arguments, strict=True):
            for dim, size in enumerate(sizes):
                if isinstance(size, SymbolSize):
                    return size.symbol_of(value.shape[dim] if isinstance(value, torch.Tensor) else int(value))
        raise AssertionError("a graph with a dynamic size reads something that has it")

    def __call__(self, values: Values) -> Tensors:
        """Returns the results of a call; ``values``: tensors, and numbers that are sizes, as of the graph.

        PyTorch computes a size below the ladder, 0, or without a program. Raises CandidateError where a
        program fails, and the errors of ``compile_for`` where a program has to be compiled.
        """
        n = self.size_of(values)
        if n < self.ladder[0]:  # 0 rows
            return tuple(self._module(*values))
        size = ladder_size(self.ladder, n)
        program = self._program(size, values)
        if program is None:
            return tuple(self._module(*values))
        tensors = self._resized(values, size)
        if program.takes_size:
            tensors = (*tensors, torch.tensor(n))
        results = program.program.run(tensors)
        if n == size:
            return results
        return [_cut(result, sizes, n) for result, sizes in zip(results, self.results, strict=True)]

    def _program(self, size: int, values: Values) -> SizedProgram | None:
        if size not in self._programs:
            with self._lock:
                if size not in self._programs:
                    self._programs[size] = self._made(size, values)
        return self._programs[size]

    def _resized(self, values: Values, size: int) -> tuple[torch.Tensor, ...]:
        tensors = []
        numbers = []
        for value, sizes, example in zip(values, self.arguments, self.examples, strict=True):
            if isinstance(value, torch.Tensor):
                tensors.append(_resized(value, sizes, size))
            elif is_other_number(example):
                numbers.append(_tensor_of(value, NUMBER_TYPES[type(example)]))
        return (*tensors, *numbers)

    def _made(self, size: int, values: Values) -> SizedProgram | None:
        if self._contents.of(self._weights) != self._state:
            raise UsageError(
                f"no program for size {size} yet, and weights have changed since the first was compiled",
                "compile the module again",
            )
        padded = PaddedGraph(self._module, self._symbol, size)
        tensors = self._resized(values, size)
        if padded.takes_size:
            tensors = (*tensors, torch.tensor(size))
        try:
            with torch.inference_mode(False), torch.no_grad():
                program = self._compile(padded.module, tensors)
        except (UsageError, CandidateError):
            if not (self._falls_back and self._programs):
                raise
            return None
        return SizedProgram(program, padded.takes_size)


def _tensor_of(number: int | float, dtype: torch.dtype) -> torch.Tensor:
    try:
        return torch.tensor(number, dtype=dtype)
    except ValueError as error:
        raise UsageError(
            f"a number that depends on a size is out of the range of 64 bits: {number}"
        ) from error


def _is_causal(node: Node) -> bool:
    return is_overload(node) and bool(OperatorCall(node).arguments.get("is_causal"))


def _causal_mask(ladder: Sequence[int], weights: Iterable[torch.Tensor]) -> torch.Tensor:
    """Returns a square causal mask, of which the masks of the programs are views.

    It is as long as the largest size of the ladder for which it takes at most MASK_BYTES, or a quarter of the
    weights' bytes if that is more; longer masks are computed at each call.
    """
    weight_bytes = sum(map(attrgetter("nbytes"), weights))
    most_positions = math.isqrt(max(MASK_BYTES, weight_bytes // 4))
    positions = max(filter(most_positions.__ge__, ladder), default=0)
    return torch.ones(positions, positions, dtype=torch.bool).tril()


def _sizes(node: Node) -> tuple[Size, ...]:
    value = node.meta["val"]
    if isinstance(value, torch.Tensor):
        return sizes_of_tensor(value)
    if is_other_number(value):
        return ()
    return (size_of(value),)


def _resized(tensor: torch.Tensor, sizes: tuple[Size, ...], size: int) -> torch.Tensor:
    """Returns a tensor of the sizes for n = ``size``: with zeros at the end, or cut.

    The tensor itself if it fits.
    """
    shape = [size_at(known, size) for known in sizes]
    if list(tensor.shape) == shape:
        return tensor
    padded = tensor.new_zeros(shape)
    inside = padded
    for dim in padded_dims(sizes):
        length = min(tensor.shape[dim], shape[dim])
        inside = inside.narrow(dim, 0, length)
        tensor = tensor.narrow(dim, 0, length)
    inside.copy_(tensor)
    return padded


def _cut(result: torch.Tensor, sizes: tuple[Size, ...], n: int) -> torch.Tensor:
    for dim in padded_dims(sizes):
        size = sizes[dim]
        assert isinstance(size, SymbolSize)
        result = result.narrow(dim, 0, size.at(n))
    return result.contiguous()
