"""Short passes over kernels, for what upstream's lowering to NVVM rejects or does worse."""

import re

from tuner.core.gpu import WARP_THREADS
from tuner.mlir.bindings import Attribute, Op, Value, interpreter, ir
from tuner.mlir.gpu.shared_memory import DYNAMIC
from tuner.mlir.ir.building import create, index, value
from tuner.mlir.ir.reading import (
    ARGUMENTS,
    CLUSTER_SIZE,
    TILE_GRID,
    index_along,
    kernel_of,
    launches_of,
    module_of,
    name_of,
    op_of,
    operands,
    unsupported,
    walk,
)
from tuner.mlir.passes import run_passes

COMPOSED = ("gpu.global_id", "gpu.shuffle")
EXPAND = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @expand(%root: !transform.any_op) {
    %holders = transform.structured.match ops{["gpu.module"]} in %root
      : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %holders {
      transform.apply_patterns.gpu.gpu_rewrite_patterns
    } : !transform.any_op
    transform.yield
  }
}
"""
# LLVM's AtomicOrdering; the first is "relaxed" in PTX
MONOTONIC = 2
ACQ_REL = 6
PREFIX = "llvm.intr."
# Intrinsics that convert-gpu-to-nvvm rejects.
REJECTED = ("ceil", "copysign", "exp2", "fabs", "floor", "round", "roundeven", "sqrt")
# Ops of arith for which convert-gpu-to-nvvm calls libdevice.
OF_ARITH = {"arith.maxnumf": "maxnum", "arith.minnumf": "minnum"}
FAST_MATH = "fastmathFlags"
SEGMENTS = "operandSegmentSizes"
BOUNDS = ("nvvm.minctasm", CLUSTER_SIZE, TILE_GRID)
LAUNCHES = ("gpu.launch", "gpu.launch_func")
SHUFFLE_BITS = 32  # of shfl.sync: PTX ISA
INT_BITS = 32
UNDEFINED = "llvm.mlir.undef"
ELEMENTWISE = "gpu.subgroup_mma_elementwise"
CAST = "builtin.unrealized_conversion_cast"
FLOATS = {
    "addf": "llvm.fadd",
    "subf": "llvm.fsub",
    "mulf": "llvm.fmul",
    "divf": "llvm.fdiv",
    "negatef": "llvm.fneg",
    "maxf": "llvm.intr.maximum",
    "minf": "llvm.intr.minimum",
}
INTEGERS = {
    "addi": "llvm.add",
    "subi": "llvm.sub",
    "muli": "llvm.mul",
    "negates": "llvm.sub",
    "divs": "llvm.sdiv",
    "divu": "llvm.udiv",
}
ALLOWED = f"{', '.join(FLOATS)} of f16 and of f32 sums, {', '.join(INTEGERS)} of i32 sums"
# (element, operand) -> (registers per thread, their type): PTX ISA, matrix fragments of wmma.
REGISTERS = {
    ("f16", "AOp"): (8, "vector<2xf16>"),
    ("f16", "BOp"): (8, "vector<2xf16>"),
    ("f16", "COp"): (4, "vector<2xf16>"),
    ("f32", "COp"): (8, "f32"),
    ("i32", "COp"): (8, "i32"),
}
FRAGMENT = re.compile(r'!gpu\.mma_matrix<\d+x\d+x(\w+), "(\w+)">')


def expand_composed_ops(module: ir.Module) -> None:
    """Replaces ``gpu.global_id`` and 64-bit ``gpu.shuffle`` by simpler ops (upstream's patterns), in place.

    Takes outlined kernels after ``expand_reductions``: the same upstream set has patterns of reductions.

        %i = gpu.global_id x
      becomes, from block and thread ids and block sizes
        %first = arith.muli %block, %size : index
        %i = arith.addi %thread, %first : index
    """
    if not walk(module, *COMPOSED):
        return
    script = ir.Module.parse(EXPAND)
    interpreter.apply_named_sequence(module, script.body.operations[0], script)


def propagate_constant_arguments(module: ir.Module) -> int:
    """Replaces kernel arguments that are the same constant in all launches, in place; returns how many.

    Changes only kernels that use ``gpu.dynamic_shared_memory``, whose views need constants.

        gpu.launch_func @m::@k blocks in (...) threads in (...) args(%c1024 : index)
        gpu.func @k(%shift: index) kernel {
          %tile = memref.view %block[%shift][] : ... to memref<256xf32, #gpu.address_space<workgroup>>
      becomes
        gpu.func @k(%shift: index) kernel {
          %c1024 = arith.constant 1024 : index
          %tile = memref.view %block[%c1024][] : ... to memref<256xf32, #gpu.address_space<workgroup>>
    """
    found = 0
    for function in walk(module, "gpu.func"):
        if walk(function, DYNAMIC):
            constants = _constants(module, function)
            found += len(constants)
            for argument, number in constants:
                with function.location, ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
                    argument.replace_all_uses_with(value("arith.constant", argument.type, value=number))
    return found


def _constants(module: ir.Module, function: Op) -> list[tuple[Value, Attribute]]:
    launches = launches_of(module, name_of(function))
    passed = zip(*(map(_constant, operands(launch, ARGUMENTS)) for launch in launches), strict=True)
    arguments = function.regions[0].blocks[0].arguments
    return [
        (argument, numbers[0])
        for argument, numbers in zip(arguments, passed, strict=False)  # attributions follow the arguments
        if numbers[0] is not None and len(set(numbers)) == 1
    ]


def _constant(passed: Value) -> Attribute | None:
    constant = op_of(passed, "arith.constant")
    if constant is None:
        return None
    return constant.attributes["value"]


def relax_unused_atomics(module: ir.Module) -> int:
    """Relaxes unused ``llvm.atomicrmw`` of acq_rel order without a syncscope; returns how many.

    They become monotonic at device scope; any other order or scope is kept. Upstream lowers
    ``memref.atomic_rmw`` to acquire-release order among all devices and the host, which costs fences. Sums
    are read by a later kernel only; ptxas then emits ``RED``.

        %old = llvm.atomicrmw fadd %p, %x acq_rel : !llvm.ptr<1>, f32
      becomes
        %old = llvm.atomicrmw fadd %p, %x syncscope("device") monotonic : !llvm.ptr<1>, f32
    """
    unread = [
        op
        for op in walk(module, "llvm.atomicrmw")
        # as upstream lowers memref.atomic_rmw: any other order or scope is the author's
        if not list(op.results[0].uses)
        and ir.IntegerAttr(op.attributes["ordering"]).value == ACQ_REL
        and "syncscope" not in op.attributes
    ]
    for op in unread:
        op.attributes["ordering"] = ir.Attribute.parse(f"{MONOTONIC} : i64")
        op.attributes["syncscope"] = ir.StringAttr.get("device")
    return len(unread)


def call_intrinsics_directly(module: ir.Module) -> int:
    """Replaces math intrinsics that ``convert-gpu-to-nvvm`` rejects by ``llvm.call_intrinsic``, in place.

    Returns how many. For each, LLVM selects instructions, where ``convert-gpu-to-nvvm`` calls libdevice or
    fails. ``arith.maxnumf`` and ``arith.minnumf`` are replaced too.

        %y = llvm.intr.sqrt(%x) : (f32) -> f32
      becomes
        %y = llvm.call_intrinsic "llvm.sqrt"(%x) : (f32) -> f32
    """
    kept = {**{PREFIX + name: name for name in REJECTED}, **OF_ARITH}
    ops = [op for holder in walk(module, "gpu.module") for op in walk(holder, *kept)]
    for op in ops:
        numbers = list(op.operands)
        attributes = {
            "intrin": ir.StringAttr.get(f"llvm.{kept[op.name]}"),
            SEGMENTS: ir.DenseI32ArrayAttr.get([len(numbers), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        if FAST_MATH in op.attributes:
            attributes[FAST_MATH] = op.attributes[FAST_MATH]
        with op.location, ir.InsertionPoint(op):
            result = value("llvm.call_intrinsic", op.results[0].type, *numbers, **attributes)
        op.results[0].replace_all_uses_with(result)
        op.erase()
    return len(ops)


def outline_with_bounds(module: ir.Module, pipeline: str) -> None:
    """Outlines kernels by running ``pipeline``, and copies the launch bounds of each launch to its kernel.

    ``pipeline`` must keep the order of launches; outlining drops their attributes: the minimum number of
    blocks per multiprocessor (PTX: ``.minnctapersm``; ``-maxrregcount`` has no effect on kernels that declare
    their block size), the cluster size (``.reqnctapercluster``), the grid of tiles. Not handled: launches in
    ``gpu.module`` ops. Raises CandidateError(COMPILE) where a pass fails.

        gpu.launch blocks(...) in (...) threads(...) in (...) {
        } {nvvm.cluster_dim = array<i32: 1, 2, 1>, nvvm.minctasm = 2 : i32, ...}
      becomes
        gpu.func @f_kernel() kernel attributes {..., nvvm.cluster_dim = ..., nvvm.minctasm = 2 : i32, ...} {
    """
    launches = walk(module, *LAUNCHES)
    bounds = [
        {name: op.attributes[name] for name in BOUNDS if op.attributes.get(name) is not None}
        for op in launches
    ]
    run_passes(module, pipeline)
    if not any(bounds):
        return
    kernels = {(name_of(kernel.parent), name_of(kernel)): kernel for kernel in walk(module, "gpu.func")}
    for launch, of_launch in zip(walk(module, *LAUNCHES), bounds, strict=True):
        kernel = kernels.get((module_of(launch), kernel_of(launch)))
        if kernel is not None:
            for name, bound in of_launch.items():
                kernel.attributes[name] = bound


def widen_narrow_shuffles(module: ir.Module) -> int:
    """Replaces each ``gpu.shuffle`` of less than 32 bits by one of 32 bits, in place; returns how many.

    shfl.sync has no other size; upstream's pattern only splits shuffles of 64 bits into two.

        %y, %valid = gpu.shuffle xor %x, %offset, %width : f16
      becomes
        %bits = arith.bitcast %x : f16 to i16
        %wide = arith.extui %bits : i16 to i32
        %moved, %valid = gpu.shuffle xor %wide, %offset, %width : i32
        %low = arith.trunci %moved : i32 to i16
        %y = arith.bitcast %low : i16 to f16
    """
    narrow = [op for op in walk(module, "gpu.shuffle") if _bits(op) < SHUFFLE_BITS]
    for op in narrow:
        kind = op.results[0].type
        bits = ir.IntegerType.get_signless(_bits(op))
        wide = ir.IntegerType.get_signless(SHUFFLE_BITS)
        with op.location, ir.InsertionPoint(op):
            own = op.operands[0] if kind == bits else value("arith.bitcast", bits, op.operands[0])
            moved = create(
                "gpu.shuffle",
                [wide, op.results[1].type],
                [value("arith.extui", wide, own), *list(op.operands)[1:]],
                mode=op.attributes["mode"],
            )
            low = value("arith.trunci", bits, moved.results[0])
            result = low if kind == bits else value("arith.bitcast", kind, low)
        op.results[0].replace_all_uses_with(result)
        op.results[1].replace_all_uses_with(moved.results[1])
        op.erase()
    return len(narrow)


def _bits(op: Op) -> int:
    kind = op.results[0].type
    if isinstance(kind, ir.IntegerType | ir.FloatType):
        return int(kind.width)
    return SHUFFLE_BITS


def widen_printed_integers(module: ir.Module) -> None:
    """Extends the integers below 32 bits that ``gpu.printf`` prints to 32 bits, in place.

    ``vprintf`` reads at least an int per argument; upstream leaves the upper bytes of an i8 undefined.

        gpu.printf "%d", %x : i8
      becomes
        %0 = arith.extsi %x : i8 to i32
        gpu.printf "%d", %0 : i32
    """
    for op in walk(module, "gpu.printf"):
        for number, operand in enumerate(list(op.operands)):
            if isinstance(operand.type, ir.IntegerType) and operand.type.width < INT_BITS:
                extend = "arith.extui" if operand.type.width == 1 else "arith.extsi"
                with op.location, ir.InsertionPoint(op):
                    op.operands[number] = value(extend, ir.IntegerType.get_signless(INT_BITS), operand)


def sink_undefined_values(module: ir.Module) -> None:
    """Moves each ``llvm.mlir.undef`` outside of ``gpu.launch`` ops to its uses, one op per use, in place.

    Otherwise outlining makes the value a parameter; upstream's sink pass moves constants only.

        %sums = llvm.mlir.undef : !llvm.struct<(f32, f32)>
        gpu.launch ... { "nvvm.wgmma.mma_async"(%sums, ...) }
      becomes
        gpu.launch ... { %sums = llvm.mlir.undef : !llvm.struct<...>  "nvvm.wgmma.mma_async"(%sums, ...) }
    """
    launches = walk(module, "gpu.launch")
    inside = {op for launch in launches for op in walk(launch, UNDEFINED)} if launches else set()
    for op in walk(module, UNDEFINED):
        if op in inside:
            continue
        for use in list(op.results[0].uses):
            user = use.owner.operation
            with user.location, ir.InsertionPoint(user):
                user.operands[use.operand_number] = value(UNDEFINED, op.results[0].type)
        op.erase()


def expand_warp_ids(module: ir.Module) -> int:
    """Replaces ``gpu.subgroup_id``, ``num_subgroups`` and ``subgroup_size`` by arithmetic, in place.

    Returns how many ops; upstream does not lower them. The hardware's register %warpid may change while a
    block runs (PTX ISA), so it is not used.

        %id = gpu.subgroup_id : index
      becomes
        %row = arith.muli %row_of_thread, %block_dim_x : index
        %thread = arith.addi %thread_id_x, %row : index
        %id = arith.divui %thread, %c32 : index
    """
    ids = walk(module, "gpu.subgroup_id")
    counts = walk(module, "gpu.num_subgroups")
    for op in ids:
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(_arith("divui", linear_thread(), index(WARP_THREADS)))
        op.erase()
    for op in counts:
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(_arith("ceildivui", threads_of_block(), index(WARP_THREADS)))
        op.erase()
    sizes = walk(module, "gpu.subgroup_size")
    for op in sizes:
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(index(WARP_THREADS))
        op.erase()
    return len(ids) + len(counts) + len(sizes)


def linear_thread() -> Value:
    """Creates the ops for the linear index of a thread in its block, x fastest; returns the index value."""
    plane = _arith("addi", _thread("y"), _arith("muli", _thread("z"), _threads("y")))
    return _arith("addi", _thread("x"), _arith("muli", plane, _threads("x")))


def threads_of_block() -> Value:
    """Creates the ops for the number of threads per block; returns its index value."""
    plane = _arith("muli", _threads("x"), _threads("y"))
    return _arith("muli", plane, _threads("z"))


def _thread(axis: str) -> Value:
    return index_along("gpu.thread_id", axis)


def _threads(axis: str) -> Value:
    return index_along("gpu.block_dim", axis)


def _arith(name: str, left: Value, right: Value) -> Value:
    return value(f"arith.{name}", ir.IndexType.get(), left, right)


# Lowers elementwise operations on tensor core fragments.
#
# Takes kernels before ``convert-gpu-to-nvvm``, which crashes at some kinds of
# ``gpu.subgroup_mma_elementwise``, or gives wrong code. A fragment becomes a struct of registers. Rejected:
# ``extf``, whose operand and result distribute elements over threads differently; types other than f16 and,
# as sums ("COp"), f32 and i32.
#
#     %z = gpu.subgroup_mma_elementwise subf %x, %y : ... -> !gpu.mma_matrix<16x16xf32, "COp">
#   becomes, for each of the 8 registers
#     %s = builtin.unrealized_conversion_cast %x : !gpu.mma_matrix<...> to !llvm.struct<(f32, ...)>
#     %a = llvm.extractvalue %s[0] : !llvm.struct<(f32, ...)>
#     %c = llvm.fsub %a, %b : f32
#     %u = llvm.insertvalue %c, %t[0] : !llvm.struct<(f32, ...)>


def lower_fragment_elementwise(module: ir.Module) -> None:
    """Replaces each ``gpu.subgroup_mma_elementwise`` by one op per register of its fragments, in place.

    Raises CandidateError(COMPILE) for an operation or fragment type that is not supported.
    """
    for op in walk(module, ELEMENTWISE):
        kind = str(op.attributes["opType"]).removeprefix("#gpu<mma_element_wise ").removesuffix(">")
        types = {str(value_.type) for value_ in [*op.operands, *op.results]}
        match = FRAGMENT.fullmatch(str(op.results[0].type))
        fragment = REGISTERS.get((match[1], match[2])) if match is not None else None
        if fragment is None or len(types) > 1:
            raise unsupported(op, f"{kind} of {' and '.join(sorted(types))}", ALLOWED)
        count, register_text = fragment
        register = ir.Type.parse(register_text)
        struct = ir.Type.parse(f"!llvm.struct<({', '.join([register_text] * count)})>")
        name = (INTEGERS if register_text == "i32" else FLOATS).get(kind)
        if name is None:
            raise unsupported(op, f"{kind} of {op.results[0].type}", ALLOWED)
        with op.location, ir.InsertionPoint(op):
            fragments = [value(CAST, struct, operand) for operand in op.operands]
            whole = value("llvm.mlir.undef", struct)
            for number in range(count):
                position = ir.DenseI64ArrayAttr.get([number])
                operands = [
                    value("llvm.extractvalue", register, fragment_struct, position=position)
                    for fragment_struct in fragments
                ]
                if kind == "negates":  # of integers: 0 - x
                    zero = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
                    operands.insert(0, value("llvm.mlir.constant", register, value=zero))
                result = value(name, register, *operands)
                whole = value("llvm.insertvalue", struct, whole, result, position=position)
            op.results[0].replace_all_uses_with(value(CAST, op.results[0].type, whole))
        op.erase()
