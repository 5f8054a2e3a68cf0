"""Payloads over op, dtype, memory placement and form: what they compute, or the line that refuses them."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.texts import text_beside
from tuner.programs.request import Form
from tuner.programs.run.marshalling import dtype_of
from tuner.simulator.device.streams import ORDERS

Array = NDArray[Any]
BLOCKS, THREADS = 2, 64
SIZE = BLOCKS * THREADS
WARP = 32
FLOATS, INTEGERS = ("f16", "bf16", "f32", "f64"), ("i8", "i16", "i32", "i64")
DTYPES = (*FLOATS, *INTEGERS)
WORKGROUP, PRIVATE = "#gpu.address_space<workgroup>", "#gpu.address_space<private>"
CONSTANTS = "\n".join(
    f"%c{number} = arith.constant {number} : index" for number in (0, 1, 2, 4, 31, 63, 64, 128)
)


@dataclass(frozen=True)
class Row:
    """One payload: what it is called with, and what has to come of it."""

    name: str
    text: str
    arguments: tuple[Array, ...] = ()
    expected: tuple[Array, ...] = ()  # results, then arguments that are written
    refusal: str = ""  # regular expression of the line; "": it runs
    form: Form = "streams"
    orders: tuple[str, ...] = ORDERS  # of the simulator's streams
    options: dict[str, Any] = field(default_factory=dict)


def rows() -> tuple[Row, ...]:
    """Returns the whole table."""
    return (
        *_placements(),
        *_forms(),
        *_reductions(),
        *_shared(),
        *_private(),
        *_copies(),
        *_fragments(),
        *_refused(),
    )


def memref(dtype: str, shape: str = str(SIZE)) -> str:
    """Returns a type of memref."""
    return f"memref<{shape}x{dtype}>"


def numbers(dtype: str, seed: int = 0, high: int = 4, size: int = SIZE) -> Array:
    """Returns small whole numbers, whose sums are exact in every type."""
    return np.random.default_rng(seed).integers(0, high, size).astype(dtype_of(dtype))


def kernel(body: str, parameters: str, attributions: str = "") -> str:
    """Returns an outlined kernel of one-dimensional blocks: %i is the thread, %g its number in the grid."""
    return f"""gpu.module @kernels {{
      gpu.func @kernel({parameters}) {attributions} kernel {{
        {CONSTANTS}
        %i = gpu.thread_id x
        %block = gpu.block_id x
        %n = gpu.block_dim x
        %first = arith.muli %block, %n : index
        %g = arith.addi %first, %i : index
        {body}
        gpu.return
      }}
    }}"""


def program(kernels: str, signature: str, body: str) -> str:
    """Returns a module with a function ``main``."""
    return f"""module attributes {{gpu.container_module}} {{
    {kernels}
    func.func @main{signature} {{
      {CONSTANTS}
      {body}
    }}
    }}"""


def launch(arguments: str, shared: str = "") -> str:
    """Returns a launch of the kernel with all its threads."""
    grid = f"blocks in (%c{BLOCKS}, %c1, %c1) threads in (%c{THREADS}, %c1, %c1)"
    return f"gpu.launch_func @kernels::@kernel {grid} {shared} args({arguments})"


def one_order(name: str) -> tuple[str, ...]:
    """Returns the order for a lone kernel, which changes places with nothing: each order gets some."""
    return (ORDERS[zlib.crc32(name.encode()) % len(ORDERS)],)


def unary(name: str, dtype: str, body: str, compute: Callable[[Array], Array], **texts: Any) -> Row:
    """Returns a row of ``c = compute(a)`` on arguments; the body reads %a and writes %c."""
    kind = memref(dtype)
    attributions = texts.pop("attributions", "")
    shared = texts.pop("shared", "")
    before = texts.pop("before", "")
    text = program(
        kernel(body, f"%a: {kind}, %c: {kind}", attributions),
        f"(%a: {kind}, %c: {kind})",
        f"{before}\n{launch(f'%a : {kind}, %c : {kind}', shared)}\nreturn",
    )
    a = numbers(dtype)
    return Row(name, text, (a, np.zeros_like(a)), (compute(a),), orders=one_order(name), **texts)


def typed(name: str, dtype: str, /, **parts: str) -> str:
    """Returns a text for elements of a type; its parts stand there in capitals."""
    text = text_beside(__file__, name)
    plus = "arith.addf" if dtype in FLOATS else "arith.addi"
    for part, value in (parts | {"plus": plus, "kind": memref(dtype), "type": dtype}).items():
        text = text.replace(part.upper(), value)
    return text


def add(dtype: str) -> str:
    """Returns a kernel that computes c = a + b."""
    kind = memref(dtype)
    return kernel(typed("ADD", dtype), f"%a: {kind}, %b: {kind}, %c: {kind}")


def _placements() -> Iterator[Row]:
    """Sums whose output is an argument, memory that is returned, or memory of the device by hand."""
    for dtype in DTYPES:
        kind = memref(dtype)
        a, b = numbers(dtype, 1), numbers(dtype, 2)
        total = (a + b).astype(a.dtype)
        called = launch(f"%a : {kind}, %b : {kind}, %c : {kind}")
        returned, out = f"(%a: {kind}, %b: {kind}) -> {kind}", f"(%a: {kind}, %b: {kind}, %c: {kind})"
        for name, signature, body in (
            ("argument", out, f"{called}\nreturn"),
            ("mixed", out, typed("MIXED", dtype)),
            ("by-hand", returned, typed("BY_HAND", dtype)),
            ("alloc-returned", returned, f"%c = memref.alloc() : {kind}\n{called}\nreturn %c : {kind}"),
            (
                "host_shared-returned",
                returned,
                f"%c = gpu.alloc host_shared () : {kind}\n{called}\nreturn %c : {kind}",
            ),
        ):
            title = f"add-{dtype}-{name}"
            orders = ORDERS if name in ("mixed", "by-hand") else one_order(title)
            arguments = (a, b, np.zeros_like(a)) if signature == out else (a, b)
            yield Row(title, program(add(dtype), signature, body), arguments, (total,), orders=orders)


def _forms() -> Iterator[Row]:
    """Two independent sums and their sum, in every form, and by tokens of the author."""
    kind, a, b = memref("f32"), numbers("f32", 1), numbers("f32", 2)
    texts = {
        name: program(add("f32"), f"(%a: {kind}, %b: {kind}) -> {kind}", typed(name, "f32"))
        for name in ("CHAINS", "LOOP", "TOKENS")
    }
    forms: tuple[Form, ...] = ("streams", "tokens", "sync")
    for form in forms:
        yield Row(f"chains-{form}", texts["CHAINS"], (a, b), (a + 3 * b,), form=form)
        yield Row(f"loop-{form}", texts["LOOP"], (a, b), (a + 5 * b,), form=form)
    yield Row("tokens-of-the-author", texts["TOKENS"], (a, b), (a + 3 * b,))


def per_block(compute: Callable[[Array], Any]) -> Callable[[Array], Array]:
    """Returns what every thread of a block gets of a reduction."""
    return lambda a: np.repeat([compute(part) for part in a.reshape(BLOCKS, THREADS)], THREADS).astype(
        a.dtype
    )


def per_warp(compute: Callable[[Array], Any]) -> Callable[[Array], Array]:
    """The same for the threads of a warp."""
    return lambda a: np.repeat([compute(part) for part in a.reshape(-1, WARP)], WARP).astype(a.dtype)


def total(part: Array) -> Any:
    """Returns a sum in the type of its terms: integers wrap."""
    return part.astype(np.float64 if part.dtype.kind not in "i" else np.int64).sum().astype(part.dtype)


def _plus_twice_the_sum(a: Array) -> Array:
    return a + 2 * per_block(total)(a)  # type: ignore[no-any-return] # numpy's


def _sum_in_the_second_block(a: Array) -> Array:
    return np.where(np.arange(SIZE) < THREADS, a, per_block(total)(a))


def _reductions() -> Iterator[Row]:
    """Reductions in loops and branches, and those that test_gpu_dialect has not."""
    for dtype in INTEGERS:
        yield unary(f"all_reduce-minui-{dtype}", dtype, typed("MINUI", dtype), per_block(np.min))
    for dtype in ("f32", "i32"):
        for name, text, compute in (
            ("subgroup_reduce-uniform", "SUBGROUP", per_warp(total)),
            ("all_reduce-in-loop", "IN_LOOP", _plus_twice_the_sum),
            ("all_reduce-in-branch", "IN_BRANCH", _sum_in_the_second_block),
            ("all_reduce-region", "REGION", per_block(total)),
        ):
            yield unary(f"{name}-{dtype}", dtype, typed(text, dtype), compute)


def reversed_blocks(a: Array) -> Array:
    return a.reshape(BLOCKS, THREADS)[:, ::-1].reshape(-1).copy()


def _shared() -> Iterator[Row]:
    """Blocks that reverse their elements through shared memory, wherever that memory is from."""
    for dtype in ("f16", "f32", "i8", "i64"):
        size_bytes = THREADS * dtype_of(dtype).itemsize
        for space, spelled in ((WORKGROUP, "attribute"), ("3", "integer")):
            tile = f"memref<{THREADS}x{dtype}, {space}>"
            body = typed("REVERSE", dtype, made="", tile=tile)
            name = f"shared-attribution-{spelled}-{dtype}"
            yield unary(name, dtype, body, reversed_blocks, attributions=f"workgroup(%tile: {tile})")
            body = typed("REVERSE", dtype, made=f"%tile = memref.alloc() : {tile}", tile=tile)
            yield unary(f"shared-alloc-{spelled}-{dtype}", dtype, body, reversed_blocks)
        tile, whole = f"memref<{THREADS}x{dtype}, {WORKGROUP}>", f"memref<?xi8, {WORKGROUP}>"
        made = f"""%all = gpu.dynamic_shared_memory : {whole}
          %tile = memref.view %all[%c0][] : {whole} to {tile}"""
        view = typed("REVERSE", dtype, made=made, tile=tile)
        yield unary(f"shared-view-no-size-{dtype}", dtype, view, reversed_blocks)
        for name, given, refusal in (
            ("shared-view", size_bytes, ""),
            ("shared-view-too-small", size_bytes - 1, str(size_bytes)),
        ):
            yield unary(
                f"{name}-{dtype}",
                dtype,
                view,
                reversed_blocks,
                shared="dynamic_shared_memory_size %bytes",
                before=f"%bytes = arith.constant {given} : i32",
                refusal=refusal,
            )


def _private() -> Iterator[Row]:
    """Threads with memory of their own, of each op and in each spelling of its space, all in one kernel."""
    memories = list(product(("alloca", "alloc"), ("", f", {PRIVATE}", ", 5")))
    for dtype in ("f16", "f32", "i8", "i64"):
        lines = [typed("BEGIN", dtype)]
        for number, (op, space) in enumerate(memories):
            own = f"memref<4x{dtype}{space}>"
            names = {"number": str(number), "next": str(number + 1)}
            lines.append(typed("PRIVATE", dtype, **names, op=op, own=own))
        body = "\n".join([*lines, f"memref.store %s{len(memories)}, %c[%g] : {memref(dtype)}"])
        yield unary(f"private-{dtype}", dtype, body, _through_six_memories)


def _through_six_memories(a: Array) -> Array:
    """Returns 2a, which each memory doubles and each sum makes larger by a: integers wrap."""
    whole = a.astype(np.int64)
    left = 2 * whole
    for _ in range(6):
        left = 2 * left + whole
    return left.astype(a.dtype)


def _copies() -> Iterator[Row]:
    """Fills and copies of device memory, whole and in part."""
    for dtype in DTYPES:
        body = typed("MEMSET", dtype, value="3.0" if dtype in FLOATS else "3")
        expected = np.full(SIZE, 3).astype(dtype_of(dtype))
        yield Row(f"memset-{dtype}", program("", f"() -> {memref(dtype)}", body), (), (expected,))
    a = numbers("f32").reshape(8, 16)
    for name, shape, expected in (("strided", "8x4", a[:, 4:8].copy()), ("rows", "4x16", a[2:6].copy())):
        signature = f"(%a: memref<8x16xf32>) -> memref<{shape}xf32>"
        text = program("", signature, text_beside(__file__, name.upper()))
        yield Row(f"memcpy-{name}", text, (a,), (expected,))


def _fragments() -> Iterator[Row]:
    """Element-wise operations of tensor core fragments, those that upstream does not know among them."""
    kinds: dict[str, Callable[..., Array]] = {
        "addf": np.add,
        "subf": np.subtract,
        "mulf": np.multiply,
        "divf": np.divide,
        "maxf": np.maximum,
        "minf": np.minimum,
        "negatef": np.negative,
    }
    for dtype in ("f16", "f32"):
        kind, matrix = memref(dtype, "16x16"), f'!gpu.mma_matrix<16x16x{dtype}, "COp">'
        a, b = (numbers(dtype, seed, size=256).reshape(16, 16) + 1 for seed in (0, 1))
        for name, apply in kinds.items():
            count = 1 if name == "negatef" else 2
            inputs = f"{', '.join(('%x', '%y')[:count])} : ({', '.join([matrix] * count)})"
            body = typed("FRAGMENT", dtype, name=name, inputs=inputs)
            text = program("", f"(%a: {kind}, %b: {kind})", body)
            title = f"fragment-{name}-{dtype}"
            yield Row(title, text, (a, b), (apply(*(a, b)[:count]),), orders=one_order(title))


def _refused() -> Iterator[Row]:
    """What no GPU can do, or what says nothing that could be run."""
    kind = memref("f32")
    yield Row(
        "calls-nothing",
        "func.func private @g()\nfunc.func @main() { call @g() : () -> () return }",
        refusal="@g",
    )
    yield Row("recursive", "func.func @main() { call @main() : () -> () return }", refusal="calls itself")
    yield Row("no-function", "module {}", refusal="allowed none")
    yield Row("no-mlir", "main(): return 1", refusal="payload")
    yield Row("unknown-op", 'func.func @main() { "my.op"() : () -> () return }', refusal="my")
    body = f"""%x = memref.load %a[%g] : {kind}
      %y = "my.op"(%x) : (f32) -> f32
      memref.store %y, %c[%g] : {kind}"""
    yield unary("unknown-device-op", "f32", body, lambda a: a, refusal="my")
    text = program(kernel("", f"%a: {kind}"), f"(%a: {kind})", f"{launch(f'%a : {kind}')}\nreturn")
    yield Row("no-such-kernel", text.replace("@kernels::@kernel", "@kernels::@other"), refusal="other")
