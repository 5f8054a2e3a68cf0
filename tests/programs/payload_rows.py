"""Payloads over op, dtype, memory placement and form: what they compute, or the line that refuses them."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def add(dtype: str) -> str:
    """Returns the body of ``c = a + b``."""
    kind, op = memref(dtype), "arith.addf" if dtype in FLOATS else "arith.addi"
    return f"""%x = memref.load %a[%g] : {kind}
        %y = memref.load %b[%g] : {kind}
        %z = {op} %x, %y : {dtype}
        memref.store %z, %c[%g] : {kind}"""


def _placements() -> Iterator[Row]:
    """Sums whose output is an argument, memory that is returned, or memory of the device by hand."""
    for dtype in DTYPES:
        kind = memref(dtype)
        a, b = numbers(dtype, 1), numbers(dtype, 2)
        total = (a + b).astype(a.dtype)
        three = f"%a : {kind}, %b : {kind}, %c : {kind}"
        kernels = kernel(add(dtype), f"%a: {kind}, %b: {kind}, %c: {kind}")
        two, out = f"(%a: {kind}, %b: {kind})", f"(%a: {kind}, %b: {kind}, %c: {kind})"
        yield Row(
            f"add-{dtype}-argument",
            program(kernels, out, f"{launch(three)}\nreturn"),
            (a, b, np.zeros_like(a)),
            (total,),
            orders=one_order(f"add-{dtype}-argument"),
        )
        for name, made in (
            ("alloc", f"%c = memref.alloc() : {kind}"),
            ("host_shared", f"%c = gpu.alloc host_shared () : {kind}"),
        ):
            title, body = f"add-{dtype}-{name}-returned", f"{made}\n{launch(three)}\nreturn %c : {kind}"
            text = program(kernels, f"{two} -> {kind}", body)
            yield Row(title, text, (a, b), (total,), orders=one_order(title))
        by_hand = f"""%da = gpu.alloc () : {kind}
          %db = gpu.alloc () : {kind}
          %dc = gpu.alloc () : {kind}
          gpu.memcpy %da, %a : {kind}, {kind}
          gpu.memcpy %db, %b : {kind}, {kind}
          {launch(f"%da : {kind}, %db : {kind}, %dc : {kind}")}
          %c = memref.alloc() : {kind}
          gpu.memcpy %c, %dc : {kind}, {kind}
          gpu.dealloc %da : {kind}
          gpu.dealloc %db : {kind}
          gpu.dealloc %dc : {kind}
          return %c : {kind}"""
        yield Row(f"add-{dtype}-by-hand", program(kernels, f"{two} -> {kind}", by_hand), (a, b), (total,))
        mixed = f"""%da = gpu.alloc () : {kind}
          gpu.memcpy %da, %a : {kind}, {kind}
          {launch(f"%da : {kind}, %b : {kind}, %c : {kind}")}
          gpu.dealloc %da : {kind}
          return"""
        yield Row(f"add-{dtype}-mixed", program(kernels, out, mixed), (a, b, np.zeros_like(a)), (total,))


def _forms() -> Iterator[Row]:
    """Two independent sums and their sum, in every form, and by tokens of the author."""
    kind, dtype = memref("f32"), "f32"
    a, b = numbers(dtype, 1), numbers(dtype, 2)
    kernels = kernel(add(dtype), f"%a: {kind}, %b: {kind}, %c: {kind}")
    signature = f"(%a: {kind}, %b: {kind}) -> {kind}"

    def step(arrays: str, tokens: str = "") -> str:
        one, two, three = arrays.split()
        called = launch(f"{one} : {kind}, {two} : {kind}, {three} : {kind}")
        return called.replace("gpu.launch_func", f"gpu.launch_func {tokens}") if tokens else called

    plain = f"""%x = memref.alloc() : {kind}
      %y = memref.alloc() : {kind}
      %c = memref.alloc() : {kind}
      {step("%a %b %x")}
      {step("%b %b %y")}
      {step("%x %y %c")}
      memref.dealloc %x : {kind}
      memref.dealloc %y : {kind}
      return %c : {kind}"""
    forms: tuple[Form, ...] = ("streams", "tokens", "sync")
    for form in forms:
        expected = (a + 3 * b,)
        yield Row(f"chains-{form}", program(kernels, signature, plain), (a, b), expected, form=form)
        loop = f"""%c = memref.alloc() : {kind}
          {step("%a %b %c")}
          scf.for %k = %c0 to %c4 step %c1 {{
            {step("%c %b %c")}
          }}
          return %c : {kind}"""
        yield Row(f"loop-{form}", program(kernels, signature, loop), (a, b), (a + 5 * b,), form=form)
    by_tokens = f"""%x = gpu.alloc host_shared () : {kind}
      %y = gpu.alloc host_shared () : {kind}
      %c = gpu.alloc host_shared () : {kind}
      %t0 = gpu.wait async
      %t1 = gpu.wait async
      %t2 = {step("%a %b %x", "async [%t0]")}
      %t3 = {step("%b %b %y", "async [%t1]")}
      %t4 = gpu.wait async [%t2, %t3]
      %t5 = {step("%x %y %c", "async [%t4]")}
      gpu.wait [%t5]
      return %c : {kind}"""
    yield Row("tokens-of-the-author", program(kernels, signature, by_tokens), (a, b), (a + 3 * b,))


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
        kind = memref(dtype)
        body = f"""%x = memref.load %a[%g] : {kind}
          %s = gpu.all_reduce minui %x uniform {{}} : ({dtype}) -> ({dtype})
          memref.store %s, %c[%g] : {kind}"""
        yield unary(f"all_reduce-minui-{dtype}", dtype, body, per_block(np.min))
    for dtype in ("f32", "i32"):
        kind, plus = memref(dtype), "arith.addf" if dtype == "f32" else "arith.addi"
        body = f"""%x = memref.load %a[%g] : {kind}
          %s = gpu.subgroup_reduce add %x uniform : ({dtype}) -> ({dtype})
          memref.store %s, %c[%g] : {kind}"""
        yield unary(f"subgroup_reduce-uniform-{dtype}", dtype, body, per_warp(total))
        body = f"""%x = memref.load %a[%g] : {kind}
          %s = scf.for %k = %c0 to %c2 step %c1 iter_args(%y = %x) -> ({dtype}) {{
            %r = gpu.all_reduce add %x uniform {{}} : ({dtype}) -> ({dtype})
            %z = {plus} %y, %r : {dtype}
            scf.yield %z : {dtype}
          }}
          memref.store %s, %c[%g] : {kind}"""
        yield unary(f"all_reduce-in-loop-{dtype}", dtype, body, _plus_twice_the_sum)
        body = f"""%x = memref.load %a[%g] : {kind}
          %is = arith.cmpi eq, %block, %c1 : index
          %s = scf.if %is -> ({dtype}) {{
            %r = gpu.all_reduce add %x uniform {{}} : ({dtype}) -> ({dtype})
            scf.yield %r : {dtype}
          }} else {{
            scf.yield %x : {dtype}
          }}
          memref.store %s, %c[%g] : {kind}"""
        yield unary(
            f"all_reduce-in-branch-{dtype}",
            dtype,
            body,
            _sum_in_the_second_block,
        )
        body = f"""%x = memref.load %a[%g] : {kind}
          %s = gpu.all_reduce %x uniform {{
          ^bb(%l: {dtype}, %r: {dtype}):
            %z = {plus} %l, %r : {dtype}
            gpu.yield %z : {dtype}
          }} : ({dtype}) -> ({dtype})
          memref.store %s, %c[%g] : {kind}"""
        yield unary(f"all_reduce-region-{dtype}", dtype, body, per_block(total))


def _shared() -> Iterator[Row]:
    """Blocks that reverse their elements through shared memory, wherever that memory is from."""
    for dtype in ("f16", "f32", "i8", "i64"):
        kind, count = memref(dtype), THREADS
        size_bytes = count * dtype_of(dtype).itemsize

        def reverse(space: str, made: str = "", kind: str = kind, dtype: str = dtype) -> str:
            tile = f"memref<{THREADS}x{dtype}, {space}>"
            return f"""{made}
              %x = memref.load %a[%g] : {kind}
              memref.store %x, %tile[%i] : {tile}
              gpu.barrier
              %j = arith.subi %c{THREADS - 1}, %i : index
              %y = memref.load %tile[%j] : {tile}
              memref.store %y, %c[%g] : {kind}"""

        def reversed_blocks(a: Array) -> Array:
            return a.reshape(BLOCKS, THREADS)[:, ::-1].reshape(-1).copy()

        whole = f"memref<?xi8, {WORKGROUP}>"
        view = f"""%all = gpu.dynamic_shared_memory : {whole}
          %tile = memref.view %all[%c0][] : {whole} to memref<{count}x{dtype}, {WORKGROUP}>"""
        shared = "dynamic_shared_memory_size %bytes"
        exact = f"%bytes = arith.constant {size_bytes} : i32"
        for space, spelled in ((WORKGROUP, "attribute"), ("3", "integer")):
            tile = f"memref<{count}x{dtype}, {space}>"
            attributions = f"workgroup(%tile: {tile})"
            made = f"%tile = memref.alloc() : {tile}"
            yield unary(
                f"shared-attribution-{spelled}-{dtype}",
                dtype,
                reverse(space),
                reversed_blocks,
                attributions=attributions,
            )
            yield unary(f"shared-alloc-{spelled}-{dtype}", dtype, reverse(space, made), reversed_blocks)
        yield unary(f"shared-view-no-size-{dtype}", dtype, reverse(WORKGROUP, view), reversed_blocks)
        yield unary(
            f"shared-view-{dtype}",
            dtype,
            reverse(WORKGROUP, view),
            reversed_blocks,
            shared=shared,
            before=exact,
        )
        small = f"%bytes = arith.constant {size_bytes - 1} : i32"
        yield unary(
            f"shared-view-too-small-{dtype}",
            dtype,
            reverse(WORKGROUP, view),
            reversed_blocks,
            shared=shared,
            before=small,
            refusal=rf"{size_bytes}",
        )


def _private() -> Iterator[Row]:
    """Threads with memory of their own, of each op and in each spelling of its space, all in one kernel."""
    memories = list(product(("alloca", "alloc"), ("", f", {PRIVATE}", ", 5")))
    for dtype in ("f16", "f32", "i8", "i64"):
        kind, plus = memref(dtype), "arith.addf" if dtype in FLOATS else "arith.addi"
        lines = [f"%x = memref.load %a[%g] : {kind}", f"%s0 = {plus} %x, %x : {dtype}"]
        for number, (op, space) in enumerate(memories):
            own = f"memref<4x{dtype}{space}>"
            lines.append(f"""%own{number} = memref.{op}() : {own}
                scf.for %k = %c0 to %c4 step %c1 {{
                  memref.store %s{number}, %own{number}[%k] : {own}
                }}
                %y{number} = memref.load %own{number}[%c1] : {own}
                %w{number} = memref.load %own{number}[%c2] : {own}
                %z{number} = {plus} %y{number}, %w{number} : {dtype}
                %s{number + 1} = {plus} %z{number}, %x : {dtype}""")
        body = "\n".join([*lines, f"memref.store %s{len(memories)}, %c[%g] : {kind}"])
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
        kind = memref(dtype)
        value = "3.0" if dtype in FLOATS else "3"
        body = f"""%v = arith.constant {value} : {dtype}
          %d = gpu.alloc () : {kind}
          gpu.memset %d, %v : {kind}, {dtype}
          %c = memref.alloc() : {kind}
          gpu.memcpy %c, %d : {kind}, {kind}
          gpu.dealloc %d : {kind}
          return %c : {kind}"""
        expected = np.full(SIZE, 3).astype(dtype_of(dtype))
        yield Row(f"memset-{dtype}", program("", f"() -> {kind}", body), (), (expected,))
    kind, part = memref("f32", "8x16"), "memref<8x4xf32, strided<[16, 1], offset: 4>>"
    a = numbers("f32").reshape(8, 16)
    body = f"""%d = gpu.alloc () : {kind}
      gpu.memcpy %d, %a : {kind}, {kind}
      %v = memref.subview %d[0, 4] [8, 4] [1, 1] : {kind} to {part}
      %c = memref.alloc() : memref<8x4xf32>
      gpu.memcpy %c, %v : memref<8x4xf32>, {part}
      gpu.dealloc %d : {kind}
      return %c : memref<8x4xf32>"""
    yield Row(
        "memcpy-strided", program("", f"(%a: {kind}) -> memref<8x4xf32>", body), (a,), (a[:, 4:8].copy(),)
    )
    rows_of = "memref<4x16xf32, strided<[16, 1], offset: 32>>"
    body = f"""%d = gpu.alloc () : {kind}
      gpu.memcpy %d, %a : {kind}, {kind}
      %v = memref.subview %d[2, 0] [4, 16] [1, 1] : {kind} to {rows_of}
      %c = memref.alloc() : memref<4x16xf32>
      gpu.memcpy %c, %v : memref<4x16xf32>, {rows_of}
      gpu.dealloc %d : {kind}
      return %c : memref<4x16xf32>"""
    yield Row("memcpy-rows", program("", f"(%a: {kind}) -> memref<4x16xf32>", body), (a,), (a[2:6].copy(),))


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
        kind, fragment = memref(dtype, "16x16"), f'!gpu.mma_matrix<16x16x{dtype}, "COp">'
        a, b = (numbers(dtype, seed, size=256).reshape(16, 16) + 1 for seed in (0, 1))
        for name, apply in kinds.items():
            inputs = "%x" if name == "negatef" else "%x, %y"
            types = ", ".join([fragment] * (inputs.count("%")))
            rows = "{leadDimension = 16 : index}"
            load = f"gpu.subgroup_mma_load_matrix {{}} {{{rows}}} : {{}} -> {{}}"
            store = f"gpu.subgroup_mma_store_matrix %z, %a[%c0, %c0] {rows} : {fragment}, {kind}"
            body = f"""gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {{
                %x = {load.format("%a[%c0, %c0]", kind, fragment)}
                %y = {load.format("%b[%c0, %c0]", kind, fragment)}
                %z = gpu.subgroup_mma_elementwise {name} {inputs} : ({types}) -> {fragment}
                {store}
                gpu.terminator
              }}
              return"""
            text = program("", f"(%a: {kind}, %b: {kind})", f"%c32 = arith.constant {WARP} : index\n{body}")
            expected = (apply(*(a, b)[: inputs.count("%")]),)
            title = f"fragment-{name}-{dtype}"
            yield Row(title, text, (a, b), expected, orders=one_order(title))


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
    yield unary(
        "unknown-device-op",
        "f32",
        body,
        lambda a: a,
        refusal="my",
    )
    text = program(kernel("", f"%a: {kind}"), f"(%a: {kind})", f"{launch(f'%a : {kind}')}\nreturn")
    yield Row("no-such-kernel", text.replace("@kernels::@kernel", "@kernels::@other"), refusal="other")
