"""``tuner.order_products``: rows back and forth, reads one step ahead, sums stored from other registers."""

import re

from tests.mlir.ops.one_op import apply
from tests.texts import filled

LINE = '"tuner.order_products"(%func) : (!transform.any_op) -> ()'


def tile_type(kind: str) -> str:
    return f"memref<4x64x{kind}, #gpu.address_space<workgroup>>"


def step(number: int, sums: str, kind: str) -> str:
    """Returns the products of 2 rows and 2 columns in one step of K, and what they read."""
    vector, place = f"vector<2x{kind}>", f"[%c{number}, %i]"
    read = f"vector.load %{{0}}{place} : {tile_type(kind)}, {vector}"
    lines = [f"%a{number} = {read.format('a')}", f"%row{number} = {read.format('b')}"]
    for row in range(2):
        lines.append(f"%a{number}{row} = vector.extract %a{number}[{row}] : {kind} from {vector}")
        lines.append(f"%left{number}{row} = vector.broadcast %a{number}{row} : {kind} to {vector}")
        lines.append(
            f"%next{number}{row} = vector.fma %left{number}{row}, %row{number}, {sums}{row} : {vector}"
        )
    return "".join(f"\n      {line}" for line in lines)


def payload(steps: int = 1, kind: str = "f32") -> str:
    products = step(0, "%sum", kind)
    if steps == 2:
        products += step(1, "%next0", kind)
    return filled(
        __file__,
        "LOOP",
        of_a=tile_type(kind),
        of_b=tile_type(kind),
        kind=kind,
        products=products,
        last=f"%next{steps - 1}",
    )


def names_in(text: str, pattern: str) -> list[str]:
    return re.findall(pattern, text)


def test_a_step_reads_before_the_products_of_the_step_before() -> None:
    text = apply(LINE, payload(steps=2))
    before, _, after = text.partition("math.fma")
    assert before.count("vector.load") == 4
    assert "vector.load" not in after
    assert text.count("math.fma") == 2 * 2 * 2


def test_what_may_not_move_keeps_its_place() -> None:
    with_barrier = payload(steps=2).replace("      %a1 =", "      gpu.barrier\n      %a1 =")
    before, _, after = apply(LINE, with_barrier).partition("gpu.barrier")
    for half in (before, after):
        assert (half.count("vector.load"), half.count("math.fma")) == (2, 4)


def test_sums_of_64_bits_are_stored_as_they_are() -> None:
    text = apply(LINE, payload(kind="f64"))
    assert "math.fma" in text
    assert "lanemask" not in text


BECOMES = {"order_products": (LINE, payload())}
UNCHANGED = [
    (
        LINE,
        re.sub(r"vector.fma (\S+), (\S+), \S+", r"arith.addf \1, \2", payload()),
        "no products in the loop",
    ),
]
