"""A tuned CPU kernel whose weights are packed once, as Python callables on numpy arrays.

>>> kernel = tuner.load_best(tuner.Matmul(1, 4096, 4096, weights="i4", group_size=128))
>>> layer = kernel.pack(integers, scales)        # once
>>> c = layer(a)                                 # at each call
"""

from dataclasses import replace
from typing import final

from tuner.core.errors import UsageError
from tuner.core.numpy_types import DTYPES
from tuner.core.problem_classes import PackedProblem
from tuner.mlir.fusions.function import fusion_arguments
from tuner.payload.packed_weights import packed
from tuner.payload.reference import Array
from tuner.runtime.arrays import ExpectedArray
from tuner.runtime.cpu.memory import address_of, placed_copy, placed_empty
from tuner.runtime.process_state import LoadedCode
from tuner.targets.cpu.loaded_kernel import AddressCall, LoadedKernel
from tuner.targets.signature import LOAD_AGAIN, KernelSignature, kernel_text, require_count

QUANTIZED_NAMES = ("b", "scales", "zero_points")  # of the weights of a quantized matmul
NIBBLE_RANGE = (-8, 7)


@final
class PackingKernel(LoadedCode):
    """A compiled kernel of a problem with constant weights; ``pack`` returns the function to call."""

    load_again = LOAD_AGAIN

    def __init__(self, problem: PackedProblem, kernel: LoadedKernel, origin: str = "") -> None:
        """Takes a loaded kernel. ``origin``: text for ``repr`` on where the kernel comes from."""
        self.problem = problem
        self.origin = origin
        self._kernel = kernel
        *self._inputs, _ = fusion_arguments(problem.text)
        names = _input_names(problem, len(self._inputs))
        pairs = zip(names, self._inputs, strict=True)
        # the kernel's input arrays, packed ones included
        self.inputs = tuple(ExpectedArray(name, x.shape, DTYPES[x.element]) for name, x in pairs)
        self.call = AddressCall(kernel)  # on the inputs, then C

    def __repr__(self) -> str:
        return kernel_text(self, len(self._kernel.parts))

    def pack(self, *weights: Array) -> "PackedMatmul":
        """Packs weights as the kernel reads them.

        Args:
            weights: C-contiguous numpy arrays: of quantized weights the integers (n, k), i8, from -8 to 7 for
                4 bits, the scales (n, k / group size), and the zero points, i8, of that shape, if the problem
                has these; of constant weights B, of the problem's ``b_shape``, and the bias if it has one.
                The arrays are copied.

        Returns:
            The function ``layer(a, out=None)``, which returns C; ``layer(a, addend, out=None)`` where the
            epilogue has an argument that is not a row.

        Raises:
            UsageError: a wrong number, shape, dtype or memory order, or integers that 4 bits do not hold.
        """
        positions = [position for position, argument in enumerate(self._inputs) if argument.is_weight]
        require_count("pack", tuple(self.inputs[position] for position in positions), len(weights))
        packed: dict[int, Array] = {}
        for position, weight in zip(positions, weights, strict=True):
            packed[position] = self._packed(position, weight)
        return PackedMatmul(self, packed)

    def _packed(self, position: int, array: Array) -> Array:
        expected = self.inputs[position]
        packing = self._kernel.packings[position]
        is_transposed = expected.name == "b" and self.problem.format is None and self.problem.layout == "nt"
        if is_transposed:
            expected = replace(expected, shape=expected.shape[::-1])
        expected.checked(array)
        if self._inputs[position].bits < 8 and not _fits_nibbles(array):
            low, high = NIBBLE_RANGE
            raise UsageError(
                f"{expected.name}: found integers that 4 bits do not hold, allowed {low} to {high}"
            )
        weight = array.T if is_transposed else array
        return placed_copy(weight) if packing is None else packed(weight, packing, placed_empty)

    def __call__(self, *inputs: Array, out: Array | None = None) -> Array:
        """Packs the weights and multiplies once, which takes long; use ``pack`` for several products.

        ``inputs``: A, weights and arguments of the epilogue, in the kernel's order.
        """
        require_count(self.problem.key, self.inputs, len(inputs))
        weights: list[Array] = []
        others: list[Array] = []
        for array, argument in zip(inputs, self._inputs, strict=True):
            if argument.is_weight:
                weights.append(array)
            else:
                others.append(array)
        return self.pack(*weights)(*others, out=out)


@final
class PackedMatmul:
    """A kernel with its packed weights: ``layer(a, out=None)`` returns C. Several threads may call it."""

    def __init__(self, kernel: PackingKernel, weights: dict[int, Array]) -> None:
        """``weights``: packed arrays by their position among the kernel's inputs."""
        self.problem = kernel.problem
        self._kernel = kernel
        self._weights = weights
        self._others = []  # positions of the inputs that come at each call
        others = []
        for position, expected in enumerate(kernel.inputs):
            if position not in weights:
                self._others.append(position)
                others.append(expected)
        self._signature = KernelSignature(kernel.problem, tuple(others), "layer(a, out=c)")
        self._addresses = [0] * (len(kernel.inputs) + 1)  # of the kernel's inputs, then C: 0 if not packed
        for position, weight in weights.items():
            self._addresses[position] = address_of(weight)

    def __repr__(self) -> str:
        return f"PackedMatmul({self._kernel!r}; {self.nbytes} bytes of weights)"

    @property
    def nbytes(self) -> int:
        """Returns the size of the packed weights in bytes."""
        return sum(weight.nbytes for weight in self._weights.values())

    def __call__(self, *inputs: Array, out: Array | None = None) -> Array:
        """Multiplies: returns C of the problem.

        Args:
            inputs: C-contiguous numpy arrays: A of (m, k), of the problem's dtype, and the arguments of the
                epilogue that are not rows, of C's type: an addend of (m, n), a factor of shape ().
            out: array for the result, which shares no memory with an input; None: a new array. With the
                epilogue "accumulate" it is needed: the product is added to it.

        Returns:
            ``out``, or a new array.

        Raises:
            UsageError: a wrong number, shape, dtype or memory order, an ``out`` that cannot be written or
                shares memory with an input, or a missing one that is added to.
        """
        result = self._signature.result(inputs, out)
        addresses = self._addresses.copy()
        for position, array in zip(self._others, inputs, strict=True):
            addresses[position] = address_of(array)
        addresses[-1] = address_of(result)
        self._kernel.call(*addresses)
        return result


def _input_names(problem: PackedProblem, count: int) -> tuple[str, ...]:
    """Returns ``count`` names for messages: of A, and of the inputs after it."""
    if problem.format is not None:
        return ("a", *QUANTIZED_NAMES)[:count]
    return ("a", "b", *(argument.name for argument in problem.extra_arguments))


def _fits_nibbles(array: Array) -> bool:
    low, high = NIBBLE_RANGE
    return bool(array.min() >= low and array.max() <= high)
