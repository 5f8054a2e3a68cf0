"""Short passes over kernels, each for one thing that upstream's lowering to NVVM rejects or does worse.

They are of composed ops, constant arguments, atomics, intrinsics, outlining, printing, undefined values.
"""

from tuner.gpu.ir.launches import CLUSTER_SIZE, TILE_GRID
from tuner.gpu.mlir.shared_memory import DYNAMIC_SHARED
from tuner.mlir.bindings import Attribute, Op, Value, interpreter, ir
from tuner.mlir.effects.launches import ARGUMENTS, kernel_of, launches_of, module_of, operands
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.reading import name_of, op_of, walk
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
INT_BITS = 32
UNDEFINED = "llvm.mlir.undef"
# Number of a barrier's operands, its id and how many threads wait -> the intrinsic; without them its id is 0.
BARRIERS = {
    0: "llvm.nvvm.barrier.cta.sync.aligned.all",
    1: "llvm.nvvm.barrier.cta.sync.aligned.all",
    2: "llvm.nvvm.barrier.cta.sync.aligned.count",
}


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
    count = 0
    for function in walk(module, "gpu.func"):
        if walk(function, DYNAMIC_SHARED):
            constants = _constants(module, function)
            count += len(constants)
            for argument, number in constants:
                with function.location, ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
                    argument.replace_all_uses_with(value("arith.constant", argument.type, value=number))
    return count


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
    count = 0
    for op in walk(module, "llvm.atomicrmw"):
        # as upstream lowers memref.atomic_rmw: any other order or scope is the author's
        is_acq_rel = ir.IntegerAttr(op.attributes["ordering"]).value == ACQ_REL
        if is_acq_rel and "syncscope" not in op.attributes and not list(op.results[0].uses):
            op.attributes["ordering"] = ir.Attribute.parse(f"{MONOTONIC} : i64")
            op.attributes["syncscope"] = ir.StringAttr.get("device")
            count += 1
    return count


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
        attributes = _of_call(f"llvm.{kept[op.name]}", len(numbers))
        if FAST_MATH in op.attributes:
            attributes[FAST_MATH] = op.attributes[FAST_MATH]
        with op.location, ir.InsertionPoint(op):
            result = value("llvm.call_intrinsic", op.results[0].type, *numbers, **attributes)
        op.results[0].replace_all_uses_with(result)
        op.erase()
    return len(ops)


def _of_call(intrinsic: str, operands: int) -> dict[str, Attribute]:
    return {
        "intrin": ir.StringAttr.get(intrinsic),
        SEGMENTS: ir.DenseI32ArrayAttr.get([operands, 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }


def call_barriers_directly(module: ir.Module) -> int:
    """Replaces aligned barriers without a reduction by ``llvm.call_intrinsic``, in place; returns how many.

    MLIR cannot read the text of ``nvvm.barrier`` with a location: its parser takes this for an attribute.

        nvvm.barrier
      becomes
        llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"(%zero) : (i32) -> ()
    """
    barriers = list(filter(_only_waits, walk(module, "nvvm.barrier")))
    for op in barriers:
        given = list(op.operands)
        intrinsic = BARRIERS[len(given)]
        with op.location, ir.InsertionPoint(op):
            if not given:
                first = ir.IntegerAttr.get(ir.IntegerType.get_signless(INT_BITS), 0)
                given = [value("llvm.mlir.constant", first.type, value=first)]
            create("llvm.call_intrinsic", (), given, **_of_call(intrinsic, len(given)))
        op.erase()
    return len(barriers)


def _only_waits(barrier: Op) -> bool:
    return not list(barrier.results) and "aligned" in barrier.attributes


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


def widen_printed_integers(module: ir.Module) -> None:
    """Extends the integers below 32 bits that ``gpu.printf`` prints to 32 bits, in place.

    ``vprintf`` reads at least an int per argument; upstream leaves the upper bytes of an i8 undefined.

        gpu.printf "%d", %x : i8
      becomes
        %0 = arith.extsi %x : i8 to i32
        gpu.printf "%d", %0 : i32
    """
    for op in walk(module, "gpu.printf"):
        for index, operand in enumerate(list(op.operands)):
            if isinstance(operand.type, ir.IntegerType) and operand.type.width < INT_BITS:
                extend = "arith.extui" if operand.type.width == 1 else "arith.extsi"
                with op.location, ir.InsertionPoint(op):
                    op.operands[index] = value(extend, ir.IntegerType.get_signless(INT_BITS), operand)


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
