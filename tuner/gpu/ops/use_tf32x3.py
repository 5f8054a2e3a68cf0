"""The transform op ``tuner.use_tf32x3``."""

from dataclasses import dataclass
from itertools import groupby

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import recreated, value, zero
from tuner.mlir.ir.reading import types_of, users_of, walk
from tuner.mlir.math.expressions import Term

# of an f32's bits: half of the last bit of a tf32; the bits of a tf32
HALF = 0x1000
HIGH = -0x2000


class UseTf32x3Op(InPlaceOp, name="use_tf32x3"):
    """``tuner.use_tf32x3``: f32 by three products of tf32 on tensor cores, with totals outside of them.

    Each fragment is split in registers: high bits, rounded to nearest, and low bits, the rest, of which a
    tensor core cuts off what is beyond tf32. High bits that were cut would leave low bits of one sign, and so
    would their product, which is left out. A product becomes low x high + high x low + high x high, in this
    order. Tensor cores cut their sums off, an error that grows with K: so sums start anew every ``promote``
    of K, and are added to totals in f32, rounded to nearest. The three products of all sums of a step of K
    come one after the other, so that none waits for the product before it.

        %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 8]} : (vector<4x1xf32>, ...
      becomes
        %bits = arith.bitcast %a : vector<4x1xf32> to vector<4x1xi32>
        %raised = arith.addi %bits, %half : vector<4x1xi32>
        %kept = arith.andi %raised, %mask : vector<4x1xi32>
        %high = arith.bitcast %kept : vector<4x1xi32> to vector<4x1xf32>
        %low = arith.subf %a, %high : vector<4x1xf32>
        %first = nvgpu.mma.sync(%low, %high_b, %zeros) {mmaShape = [16, 8, 8], tf32Enabled} : ...
        %second = nvgpu.mma.sync(%high, %low_b, %first) {mmaShape = [16, 8, 8], tf32Enabled} : ...
        %sums = nvgpu.mma.sync(%high, %high_b, %second) {mmaShape = [16, 8, 8], tf32Enabled} : ...
        %d = arith.addf %c, %sums : vector<2x2xf32>

    Attribute ``promote`` (i64, required): steps of K after which sums are added to totals; also those of the
    last part of a loop's body are. The handle (a func.func) stays valid. Silenceable failure, with nothing
    changed: no ``nvgpu.mma.sync`` of f32 operands, a ``promote`` that is not a multiple of their K, or sums
    that the next product and another op use.
    """

    def change(self, function: Op) -> Refusal | None:
        products = [op for op in walk(function, "nvgpu.mma.sync") if _is_of_f32(op)]
        if not products:
            return Refusal("found no nvgpu.mma.sync of f32 operands")
        promote = attribute(self, "promote", 0)
        k = _steps_of_k(products[0])
        if promote <= 0 or promote % k:
            return Refusal(f"promote: found {promote}, allowed multiples of {k}")
        bodies = [
            _Body(tuple(inside), promote // k)
            for _, inside in groupby(products, lambda product: product.parent)
        ]
        if any(body.has_other_users for body in bodies):
            return Refusal(
                "found sums with a user besides the next product, allowed those of the last product"
            )
        for body in bodies:
            body.change()
        return None


@dataclass(frozen=True)
class _Split:
    """A fragment of f32 as the sum of two: its high bits, rounded to tf32, and the rest."""

    high: Value
    low: Value


@dataclass(frozen=True)
class _Sum:
    """The sums of one fragment of C after a product."""

    total: Value  # in f32
    part: Value | None = None  # of the tensor cores, not yet in the total; None: they start anew


class _Body:
    """The products of one block, each of which becomes three."""

    def __init__(self, products: tuple[Op, ...], period: int) -> None:
        """``period``: old products of a chain between two additions to its total."""
        self._products = products
        self._period = period
        self._continued = {product.operands[2] for product in products}  # sums that a product adds to
        self._splits: dict[Value, _Split] = {}  # fragment -> its parts
        self._sums: dict[Value, _Sum] = {}  # result of an old product -> the new sums

    @property
    def has_other_users(self) -> bool:
        """Returns whether another op uses sums to which a product adds: these may not be in a total yet."""
        products = set(self._products)
        return any(
            user not in products
            for product in self._products
            if product.results[0] in self._continued
            for user in users_of(product.results[0])
        )

    def change(self) -> None:
        number: dict[Value, int] = {}
        for product in self._products:
            # a product's position in its chain: one after the product that made its sums
            number[product.results[0]] = number.get(product.operands[2], -1) + 1
        for position, step in groupby(self._products, lambda product: number[product.results[0]]):
            self._multiply(tuple(step), (position + 1) % self._period == 0)
        for product in self._products:
            if product.results[0] not in self._continued:
                product.results[0].replace_all_uses_with(self._sums[product.results[0]].total)
        for product in reversed(self._products):
            product.erase()

    def _multiply(self, step: tuple[Op, ...], is_promoted: bool) -> None:
        """Creates the products of one step of K where the last of the old ones is."""
        with step[-1].location, ir.InsertionPoint(step[-1]):
            parts = list(map(self._start, step))
            factors = list(map(self._factors, step))
            for number in range(3):
                parts = [
                    _product(product, pairs[number], part)
                    for product, pairs, part in zip(step, factors, parts, strict=True)
                ]
            for product, part in zip(step, parts, strict=True):
                total = self._before(product).total
                if is_promoted or product.results[0] not in self._continued:
                    result = _Sum(value("arith.addf", total.type, total, part))
                else:
                    result = _Sum(total, part)
                self._sums[product.results[0]] = result

    def _before(self, product: Op) -> _Sum:
        sums = product.operands[2]
        return self._sums.get(sums, _Sum(sums))

    def _start(self, product: Op) -> Value:
        before = self._before(product)
        if before.part is not None:
            return before.part
        return zero(before.total.type)

    def _factors(self, product: Op) -> tuple[tuple[Value, Value], ...]:
        """Returns the operands of the three products, the smallest first."""
        a = self._split(product.operands[0])
        b = self._split(product.operands[1])
        return (a.low, b.high), (a.high, b.low), (a.high, b.high)

    def _split(self, fragment: Value) -> _Split:
        if fragment not in self._splits:
            self._splits[fragment] = _split(fragment)
        return self._splits[fragment]


def _is_of_f32(product: Op) -> bool:
    return isinstance(ir.VectorType(product.operands[0].type).element_type, ir.F32Type)


def _steps_of_k(product: Op) -> int:
    shape = ir.ArrayAttr(product.attributes["mmaShape"])
    return int(ir.IntegerAttr(shape[2]).value)


def _product(old: Op, factors: tuple[Value, Value], sums: Value) -> Value:
    new = recreated(old, types_of(old.results), [*factors, sums], tf32Enabled=ir.UnitAttr.get())
    return new.results[0]


def _split(fragment: Value) -> _Split:
    """Creates the high bits of a vector of f32, rounded to nearest, and the rest."""
    number = Term(fragment)
    high = ((number.bits() + HALF) & HIGH).converted("bitcast", number.element)
    return _Split(high.value, (number - high).value)
