"""ldmatrix, stmatrix and mma.sync, element by element after the tables of the PTX ISA."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.gpu.ptxsim.ptx.snippets import Array, fault, run
from tests.texts import text_beside
from tuner.gpu.ptxsim.ptx.defects import Defect, SimulationError, UnsupportedInstruction

Place = Callable[[int, int], tuple[int, int]]  # lane, element of the fragment -> row, column
DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8}
DTYPES |= {"u8": np.uint8, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


# Where the elements of fragments are. C and D of every shape are as A of .m16n8k8, with f16.
PLACES: dict[str, Place] = {
    "a 16x16": lambda lane, i: (lane // 4 + 8 * (i in (2, 3, 6, 7)), lane % 4 * 2 + i % 2 + 8 * (i >= 4)),
    "a 16x8": lambda lane, i: (lane // 4 + 8 * (i >= 2), lane % 4 * 2 + i % 2),
    "b": lambda lane, i: (lane % 4 * 2 + i % 2 + 8 * (i >= 2), lane // 4),
    "a tf32": lambda lane, i: (lane // 4 + 8 * (i in (1, 3)), lane % 4 + 4 * (i in (2, 3))),
    "b tf32": lambda lane, i: (lane % 4 + 4 * i, lane // 4),
    "a of bytes": lambda lane, i: (lane // 4 + 8 * (i // 4 in (1, 3)), lane % 4 * 4 + i % 4 + 16 * (i >= 8)),
    "b of bytes": lambda lane, i: (lane % 4 * 4 + i % 4 + 16 * (i >= 4), lane // 4),
}
OF_C = PLACES["a 16x8"]
SHAPES = [*((shape, kind) for shape in ("m16n8k16", "m16n8k8") for kind in ("f16", "bf16"))]
SHAPES += [("m16n8k8", "tf32"), ("m16n8k4", "tf32")]
OF_8_BITS = [
    *(("m16n8k32", left, right, "s32") for left, right in (("s8", "s8"), ("u8", "s8"), ("u8", "u8"))),
    *(("m16n8k16", "s8", right, "s32") for right in ("s8", "u8")),
    *(("m16n8k32", *pair, "f32") for pair in (("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"))),
]
TILE = ".shared .align 16 .b8 tile[1024];\n"
LOAD = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1},"
FILL = text_beside(__file__, "FILL")  # of the tile, 32 bytes per lane


def fragments(matrix: Array, place: Place, count: int) -> Array:
    values = np.array([[matrix[place(lane, i)] for i in range(count)] for lane in range(32)])
    return np.ascontiguousarray(values).view(np.uint32)


def matrix_of(registers: Array, dtype: Any) -> Array:
    values = np.ascontiguousarray(registers).view(dtype)
    found = np.zeros((16, 8))
    for lane in range(32):
        for i in range(4):
            found[OF_C(lane, i)] = values[lane, i]
    return found


def multiply(opcode: str, *operands: Array, before: str = "") -> Array:
    """Runs one mma of a warp on the registers [lane, register] of A, B and C; returns those of D."""
    names, loads = [], ""
    for number, registers in enumerate(operands):
        count = registers.shape[1]
        names.append([f"%f{number}_{i}" for i in range(count)])
        loads += f"mul.wide.u32 %rd1, %t, {4 * count}; add.s64 %rd1, %rd1, %p{number};"
        loads += "".join(f"ld.global.b32 {name}, [%rd1+{4 * i}]; " for i, name in enumerate(names[-1]))
    declare = f".reg .b32 {', '.join(name for some in names for name in some)};"
    out = np.zeros_like(operands[2])
    results = ", ".join(names[2])
    listed = ", ".join(f"{{{', '.join(some)}}}" for some in names)
    stores = f"mul.wide.u32 %rd1, %t, {4 * out.shape[1]}; add.s64 %rd1, %rd1, %p3;"
    stores += "".join(f"st.global.b32 [%rd1+{4 * i}], {name}; " for i, name in enumerate(names[2]))
    run(f"{declare} {loads} {before} {opcode} {{{results}}}, {listed}; {stores}", *operands, out)
    return out


def product(shape: str, types: str, a: Array, b: Array, c: Array, word: str = "") -> Array:
    """Returns D = A B + C by one mma of a shape; ``types``: those of D, A, B and C."""
    kind, depth = types.split(".")[1], a.shape[1]
    names = {"f16": (f"a 16x{depth}", "b"), "bf16": (f"a 16x{depth}", "b"), "tf32": ("a tf32", "b tf32")}
    name_a, name_b = names.get(kind, ("a of bytes", "b of bytes"))
    found = multiply(
        f"mma.sync.aligned.{shape}.row.col{word}.{types}",
        fragments(a, PLACES[name_a], depth // 2),
        fragments(b, PLACES[name_b], depth // 4),
        fragments(c, OF_C, 4),
    )
    return matrix_of(found, c.dtype)


@pytest.mark.parametrize(("shape", "kind"), SHAPES)
def test_a_product_into_f32(shape: str, kind: str) -> None:
    rng, depth = np.random.default_rng(0), int(shape.removeprefix("m16n8k"))
    a, b = (rng.integers(-8, 9, size).astype(DTYPES[kind]) for size in ((16, depth), (depth, 8)))
    c = rng.integers(-8, 9, (16, 8)).astype(np.float32)
    found = product(shape, f"f32.{kind}.{kind}.f32", a, b, c)
    np.testing.assert_array_equal(found, a.astype(float) @ b.astype(float) + c)


def of_all_bits(rng: np.random.Generator, size: tuple[int, int], kind: str) -> Array:
    """Returns numbers of 8 bits, each pattern as likely as any other; NaN and infinities become 1."""
    numbers: Array = rng.integers(0, 256, size, np.uint8).view(DTYPES[kind])
    numbers[~np.isfinite(numbers.astype(float))] = 1
    return numbers


@pytest.mark.parametrize(("shape", "left", "right", "result"), OF_8_BITS)
def test_a_product_of_8_bits(shape: str, left: str, right: str, result: str) -> None:
    rng, depth = np.random.default_rng(2), int(shape.removeprefix("m16n8k"))
    a, b = of_all_bits(rng, (16, depth), left), of_all_bits(rng, (depth, 8), right)
    c = rng.integers(-(2**20), 2**20, (16, 8)).astype(np.int32 if result == "s32" else np.float32)
    found = product(shape, f"{result}.{left}.{right}.{result}", a, b, c)
    np.testing.assert_array_equal(found, (a.astype(float) @ b.astype(float) + c).astype(c.dtype))


@pytest.mark.parametrize(("word", "largest"), [("", -(2**31)), (".satfinite", 2**31 - 1)])
def test_integer_sums_wrap_around_or_saturate(word: str, largest: int) -> None:
    a, b = np.full((16, 32), -128, np.int8), np.full((32, 8), -128, np.int8)
    c = np.full((16, 8), 2**31 - 2**19, np.int32)
    assert set(product("m16n8k32", "s32.s8.s8.s32", a, b, c, word).ravel().tolist()) == {largest}


@pytest.mark.parametrize("depth", [16, 8])
def test_a_product_into_f16_is_rounded_to_it(depth: int) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal(size).astype(np.float16) for size in ((16, depth), (depth, 8), (16, 8)))
    found = product(f"m16n8k{depth}", "f16.f16.f16.f16", a, b, c)
    np.testing.assert_array_equal(found, (a.astype(float) @ b.astype(float) + c).astype(np.float16))


def test_tf32_ignores_the_low_bits_of_its_operands() -> None:
    a, b = np.full((16, 8), 1 + 2.0**-12, np.float32), np.full((8, 8), 3 + 2.0**-11, np.float32)
    found = product("m16n8k8", "f32.tf32.tf32.f32", a, b, np.zeros((16, 8), np.float32))
    assert set(found.ravel().tolist()) == {24.0}


def test_a_warp_that_is_not_whole_cannot_multiply() -> None:
    zeros, leave = [np.zeros((32, n), np.uint32) for n in (4, 2, 4)], "setp.ge.u32 %q1, %t, 30; @%q1 ret;"
    with fault(Defect.DIVERGENCE, match="has 30 of 32 threads here, allowed all"):
        multiply("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", *zeros, before=leave)


@pytest.mark.parametrize(
    ("opcode", "counts"),
    [
        ("m16n8k16.row.col.f32.e4m3.e4m3.f32", (4, 2, 4)),
        ("m16n8k16.row.col.satfinite.f32.f16.f16.f32", (4, 2, 4)),
        ("m16n8k32.row.col.f32.s8.s8.f32", (4, 2, 4)),
        ("m16n8k32.row.col.s32.s8.e4m3.s32", (4, 2, 4)),
        ("m16n8k32.row.col.f32.f16.f16.f32", (4, 2, 4)),
        ("m16n8k16.row.col.f16.bf16.bf16.f16", (4, 2, 2)),
        ("m16n8k16.row.col.f32.f16.f16.f32", (2, 2, 4)),
        ("m8n8k4.row.col.f64.f64.f64.f64", (1, 1, 2)),
    ],
)
def test_what_is_not_known_is_refused(opcode: str, counts: tuple[int, ...]) -> None:
    with pytest.raises(UnsupportedInstruction, match="does not know"):
        multiply(f"mma.sync.aligned.{opcode}", *(np.zeros((32, count), np.uint32) for count in counts))


def stored(address: str, count: int) -> str:
    stores = "".join(f"st.global.b32 [%rd6+{4 * i}], %r{i + 1}; " for i in range(count))
    return f"mul.wide.u32 %rd6, %t, {4 * count}; add.s64 %rd6, %rd6, {address}; {stores}"


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("is_generic", [False, True])
def test_ldmatrix_gives_each_lane_two_elements_of_a_row(count: int, trans: str, is_generic: bool) -> None:
    """Lanes 8 i to 8 i + 7 name the rows of matrix i; row r of it is row 3 r + i of the tile."""
    a = np.arange(512, dtype=np.uint16)
    out = np.zeros((32, count, 2), np.uint16)
    names = ", ".join(f"%r{i + 1}" for i in range(count))
    space, convert = (".shared", "") if not is_generic else ("", "cvta.shared.u64 %rd7, %rd7;")
    code = f"""{FILL} and.b32 %r5, %t, 7; shr.u32 %r6, %t, 3; mad.lo.u32 %r5, %r5, 3, %r6;
      shl.b32 %r5, %r5, 5; add.u32 %r5, %r5, %r8; cvt.u64.u32 %rd7, %r5; {convert}
      ldmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 {{{names}}}, [%rd7];
      {stored("%p1", count)}"""
    found = run(code, a, out, variables=TILE)
    rows = a.reshape(32, 16)
    for lane in range(32):
        for i in range(count):
            matrix = rows[[3 * r + i for r in range(8)], :8]
            matrix = matrix.T if trans else matrix
            assert out[lane, i].tolist() == matrix[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2].tolist()
    assert found.races == ()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix_is_the_inverse_of_ldmatrix(count: int, trans: str) -> None:
    out = np.zeros((32, count), np.uint32)
    names = ", ".join(f"%r{i + 1}" for i in range(count))
    code = f"""{"".join(f"mad.lo.u32 %r{i + 1}, %t, 100, {i}; " for i in range(count))}
      mov.u32 %r8, tile; shl.b32 %r9, %t, 5; add.u32 %r8, %r8, %r9;
      stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r8], {{{names}}}; bar.sync 0;
      {"".join(f"mov.b32 %r{i + 1}, 0; " for i in range(count))}
      ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{names}}}, [%r8];
      {stored("%p0", count)}"""
    found = run(code, out, variables=TILE)
    np.testing.assert_array_equal(out, np.arange(32)[:, None] * 100 + np.arange(count))
    assert found.races == ()


def test_rows_that_no_lane_names_are_not_looked_at() -> None:
    """x1 reads the addresses of lanes 0 to 7 alone; those of the others may be anything."""
    elsewhere = "setp.ge.u32 %q1, %t, 8; selp.b32 %r8, -1, %r8, %q1;"
    assert run(f"{FILL} {elsewhere} {LOAD} [%r8];", np.zeros(512, np.uint16), variables=TILE).races == ()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (f"{LOAD} [%r8+8];", "allowed multiples of 16 bytes"),
        (f"{LOAD} [%r8+1024];", "allowed up to 1024"),
        (f"cvta.global.u64 %rd1, %p0; {LOAD.replace('.shared', '')} [%rd1];", "allowed shared memory"),
        (f"setp.lt.u32 %q1, %t, 9; @%q1 {LOAD} [%r8];", "has 9 of 32 threads"),
    ],
)
def test_a_wrong_ldmatrix_is_a_fault(code: str, reason: str) -> None:
    with pytest.raises(SimulationError, match=reason):
        run(f"{FILL} {code}", np.zeros(512, np.uint16), variables=TILE)
