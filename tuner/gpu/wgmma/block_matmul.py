"""The matmul of a block as read from a launch: its matrices in memory, and the plan of its pipeline."""

from dataclasses import dataclass, replace

from tuner.core.errors import Refusal
from tuner.gpu.ir.scalar_epilogues import find_epilogue, output_type
from tuner.gpu.ir.scaled_sums import Scales, find_scales
from tuner.gpu.wgmma.plan import ELEMENTS, LANE_BYTES, MMA_ROWS, PLANES, OperandTile, PipelinePlan
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.memrefs import BUFFER, element_bytes, named_arguments, retype_argument, sync_function_type
from tuner.mlir.ir.reading import source_of, walk

PLANE_ELEMENT = "bf16"
TRANSPOSED = ("transposed_a", "transposed_b")  # names of copies of A, of B, with k innermost
# elements of C that are stored through shared memory
STAGED_RESULTS = ("f16", "bf16")
STAGED_BYTES = 2
ROW_BYTES = 16  # a matrix row must be a multiple of this; cuTensorMapEncodeTiled, globalStrides


@dataclass(frozen=True)
class Knobs:
    """The values of the attributes of a ``tuner.wgmma_pipeline`` op, such as tile size along k and stages."""

    block_k: int
    stages: int
    consumers: int
    cluster: tuple[int, int]  # blocks along m and n
    tiles: int  # tiles of C that a block computes, one after another
    stores: str  # "direct" or "tma"
    splits: int  # slices of k, each summed by other blocks
    products: int  # for one of f32: 3 of tf32, 6 of bf16


@dataclass(frozen=True)
class TiledMatrix:
    """A matrix in memory whose tiles the TMA copies: an operand, or one of the matrices whose sum it is."""

    memory: Value
    is_rounded: bool = False  # whether copies round f32 to tf32


@dataclass(frozen=True)
class BlockMatmul:
    """The matmul of each thread block of a launch: the tile of C at ``origin``, summed over ``k``."""

    function: Op
    launch: Op
    fill: Op
    product: Op
    matrices: tuple[Value, Value, Value]  # A, B, C: arguments of the function
    origin: tuple[Value | int, Value | int]  # row and column in C
    tile: tuple[int, int]  # rows and columns of C
    k: int
    k_is_last: tuple[bool, bool]  # whether k is the innermost dimension of A, of B

    def plan(self, knobs: Knobs) -> PipelinePlan | Refusal:
        """Returns the sizes of the pipeline for ``knobs``; a Refusal if it cannot be built."""
        element, result = (ir.MemRefType(self.matrices[number].type).element_type for number in (0, 2))
        inputs = self.inputs(knobs.products)
        if isinstance(inputs, Refusal):
            return inputs
        if knobs.products == 6:
            element = ir.MemRefType(inputs[0][0].type).element_type
        if str(element) not in ELEMENTS or str(result) != ("i32" if str(element) == "i8" else "f32"):
            allowed = f"{', '.join(ELEMENTS)} summed in f32, i8 in i32"
            return Refusal(f"matmul: found elements {element} summed in {result}, allowed {allowed}")
        item_bytes = element_bytes(element)
        for name, matrices in zip("AB", inputs, strict=True):
            pitch = ir.MemRefType(matrices[0].type).get_strides_and_offset()[0][0] * item_bytes
            if pitch % ROW_BYTES:
                return Refusal(f"{name}: found rows of {pitch} bytes, allowed multiples of {ROW_BYTES}")
        tiles = [
            OperandTile(rows, knobs.block_k, item_bytes, is_last, blocks)
            for rows, is_last, blocks in zip(self.tile, self.k_is_last, knobs.cluster[::-1], strict=True)
        ]
        is_swapped = self._is_swapped(item_bytes)
        left, right = tiles[::-1] if is_swapped else tiles
        if knobs.consumers < 1 or left.rows % knobs.consumers:
            lines = "columns" if is_swapped else "rows"
            return Refusal(
                f"consumers: found {knobs.consumers}, allowed some that divide {left.rows} {lines}"
            )
        if item_bytes == LANE_BYTES and (knobs.products == 3 or not left.is_k_major):
            left = replace(left, is_read_by_lanes=True)
        plan = PipelinePlan(
            left,
            right,
            self.k,
            knobs.stages,
            knobs.consumers,
            ELEMENTS[str(element)],
            knobs.cluster,
            knobs.tiles,
            knobs.stores,
            knobs.splits,
            is_swapped,
            knobs.products,
            self.scales is not None,
        )
        low = self.low_bits(plan)
        if isinstance(low, Refusal):
            return low
        return plan.why_not() or (self._why_not_staged() if plan.stores == "tma" else None) or plan

    def _is_swapped(self, item_bytes: int) -> bool:
        """Returns whether operands change places: B goes through registers, or A has too few rows."""
        if item_bytes == LANE_BYTES and self.k_is_last == (True, False):
            return True
        return self.tile[0] < MMA_ROWS and self.k_is_last[0]

    def _why_not_staged(self) -> Refusal | None:
        result = "sums" if self.epilogue is None else output_type(self.epilogue)
        if str(result) not in STAGED_RESULTS:
            return Refusal(
                f"stores: found tma for {result}, allowed an epilogue to {' or '.join(STAGED_RESULTS)}"
            )
        pitch = ir.MemRefType(self.matrices[2].type).get_strides_and_offset()[0][0] * STAGED_BYTES
        if pitch % ROW_BYTES:
            return Refusal(f"stores: found tma for rows of {pitch} bytes, allowed multiples of {ROW_BYTES}")
        return None

    def inputs(self, products: int) -> tuple[tuple[Value, ...], tuple[Value, ...]] | Refusal:
        """Returns the matrices whose sum is A, and those whose sum is B: one each, or three planes of bf16.

        They are planes if ``products`` is 6. A Refusal if an argument that holds a plane is missing or not of
        bf16.
        """
        a, b, _ = self.matrices
        if products != 6:
            return (a,), (b,)
        of_a = self._planes("a")
        of_b = self._planes("b")
        if isinstance(of_a, Refusal):
            return of_a
        if isinstance(of_b, Refusal):
            return of_b
        return of_a, of_b

    def _planes(self, operand: str) -> tuple[Value, ...] | Refusal:
        buffers = named_arguments(self.function, BUFFER)
        planes = []
        for plane in PLANES:
            name = f"{plane}_{operand}"
            if name not in buffers:
                return Refusal(f"products: found no argument with {BUFFER} = {name!r}")
            element = _element_of(buffers[name])
            if element != PLANE_ELEMENT:
                return Refusal(f"products: found {name} of {element}, allowed {PLANE_ELEMENT}")
            planes.append(buffers[name])
        return tuple(planes)

    def low_bits(self, plan: PipelinePlan) -> Value | Refusal | None:
        """Returns the argument with the low bits, beyond tf32, of the right operand's numbers.

        None if ``plan`` has no three products; a Refusal if there is no such argument.
        """
        if plan.products != 3:
            return None
        name = "low_a" if plan.is_swapped else "low_b"
        low = named_arguments(self.function, BUFFER).get(name)
        if low is None:
            return Refusal(f"products: found no argument with {BUFFER} = {name!r}")
        return low

    def operands(self, plan: PipelinePlan) -> tuple[tuple[TiledMatrix, ...], tuple[TiledMatrix, ...]]:
        """Returns the matrices of the left and of the right operand of ``plan``, in their order in a stage.

        A stage is the tiles in shared memory that are multiplied at one step of k.
        """
        inputs = self.inputs(plan.products)
        low = self.low_bits(plan)
        assert not isinstance(inputs, Refusal)  # as there is a plan
        assert not isinstance(low, Refusal)
        is_rounded = plan.element == "tf32" and plan.products == 1  # of three products, low bits are in use
        left, right = (tuple(TiledMatrix(matrix, is_rounded) for matrix in matrices) for matrices in inputs)
        if plan.is_swapped:
            left, right = right, left
        if low is not None:
            right = (*right, TiledMatrix(low, is_rounded=True))
        return left, right

    @property
    def epilogue(self) -> Op | None:
        return find_epilogue(self.function)

    @property
    def scales(self) -> Scales | None:
        return find_scales(self.function)

    def retype_output(self, epilogue: Op) -> None:
        """Changes the element type of argument C to the result type of ``epilogue``, in place."""
        retype_argument(self.matrices[2], output_type(epilogue))
        sync_function_type(self.function)


def read_matmul(function: Op, launch: Op) -> BlockMatmul | Refusal:
    """Returns a launch's only matmul, of subviews of arguments, and its only fill; else a Refusal."""
    fills = walk(launch, "linalg.fill")
    products = walk(launch, "linalg.matmul")
    if len(fills) != 1 or len(products) != 1:
        return Refusal(
            f"launch: found {len(products)} linalg.matmul and {len(fills)} linalg.fill, allowed one of each"
        )
    views = list(products[0].operands)
    bases = [source_of(view, ("memref.subview", "memref.cast")) for view in views]
    if any(not isinstance(base.owner, ir.Block) for base in bases):
        return Refusal("matmul: found operands computed before, allowed subviews of arguments")
    rows, columns = ir.MemRefType(views[2].type).shape
    maps = list(map(str, ir.ArrayAttr(products[0].attributes["indexing_maps"])))
    k_is_last = ["d2)>" in text.replace(" ", "") for text in maps[:2]]
    sizes = ir.MemRefType(views[0].type).shape
    k = sizes[1 if k_is_last[0] else 0]
    buffers = named_arguments(function, BUFFER)
    for index, name in enumerate(TRANSPOSED):
        if name in buffers:
            bases[index] = buffers[name]
            k_is_last[index] = True
    return BlockMatmul(
        function,
        launch,
        fills[0],
        products[0],
        (bases[0], bases[1], bases[2]),
        _origin(views[2]),
        (rows, columns),
        k,
        (k_is_last[0], k_is_last[1]),
    )


def _element_of(matrix: Value) -> str:
    return str(ir.MemRefType(matrix.type).element_type)


def _origin(view: Value) -> tuple[Value | int, Value | int]:
    if isinstance(view.owner, ir.Block):
        return 0, 0
    dynamic = iter(list(view.owner.operands)[1:])
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    static = list(ir.DenseI64ArrayAttr(view.owner.attributes["static_offsets"]))
    row, column = (next(dynamic) if offset == marker else offset for offset in static)
    return row, column
