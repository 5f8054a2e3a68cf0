"""Memory of kernels: shared and private memory declared in the kernel, and ``memref.copy`` as loops."""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import VIEWS, is_buffer, roots_of
from tuner.mlir.gpu.kernel_passes import linear_thread, threads_of_block
from tuner.mlir.gpu.shared_memory import ALIGNMENT_BYTES
from tuner.mlir.ir import building
from tuner.mlir.ir.building import create, index, size_of, value
from tuner.mlir.ir.memrefs import is_workgroup, memref_bytes, replace_copy
from tuner.mlir.ir.reading import (
    CLUSTER,
    SEGMENTS,
    location_of,
    name_of,
    ops_in,
    parents_of,
    unsupported,
    walk,
)

BARRIER = "gpu.barrier"
LOOP = "scf.for"
PURE = ("arith.", "affine.", "index.")
# Ops whose result is the same for all threads of a block where their operands are; allocations: shared ones.
UNIFORM = VIEWS | {
    *("gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.dynamic_shared_memory"),
    *("memref.alloc", "memref.get_global", "memref.dim"),
}
LAUNCH = "gpu.launch"
KERNEL = "gpu.func"
ALLOCATIONS = ("memref.alloc", "memref.alloca")
COUNT = "workgroup_attributions"
# block arguments: ids and sizes of blocks and threads; with clusters
IDS = 12
CLUSTER_IDS = 18
PRIVATE = "#gpu.address_space<private>"
LIMIT_BYTES = 512 * 1024  # local memory per thread: CUDA C programming guide, compute capabilities


def expand_copies(module: ir.Module) -> int:
    """Replaces each ``memref.copy`` in kernels by loops; returns how many copies a block's threads share.

    ``transform.structured.promote`` puts a copy of shared memory between two barriers: each of n threads then
    copies every n-th element. Any other copy is done whole by each thread.
        gpu.barrier
        memref.copy %a, %t : memref<16x16xf32> to memref<16x16xf32, #gpu.address_space<workgroup>>
        gpu.barrier
      becomes, between the barriers
        scf.for %i = %thread to %c256 step %threads {
          %x = memref.load %a[%row, %column] : memref<16x16xf32>
          memref.store %x, %t[%row, %column] : memref<16x16xf32, #gpu.address_space<workgroup>>
        }
    """
    shared = 0
    for function in walk(module, "gpu.func"):
        for op in walk(function, "memref.copy"):
            is_shared = _is_of_block(op)
            shared += is_shared
            replace_copy(op, _share_out if is_shared else building.copy)
    return shared


def _share_out(source: Value, target: Value) -> None:
    sizes = [size_of(target, number) for number in range(target.type.rank)]
    total = index(1)
    for size in sizes:
        total = value("arith.muli", total.type, total, size)
    loop = ir.Operation.create(LOOP, operands=[linear_thread(), total, threads_of_block()], regions=1)
    body = loop.regions[0].blocks.append(total.type, arg_locs=[loop.location])
    with loop.location, ir.InsertionPoint(body):
        indices = building.delinearized(body.arguments[0], sizes)
        building.store(building.load(source, indices), target, indices)
        create("scf.yield")


def _is_of_block(op: Op) -> bool:
    ops = ops_in(op.block)
    place = ops.index(op)
    is_between = _meets_barrier(ops[:place][::-1]) and _meets_barrier(ops[place + 1 :])
    if not is_between or not any(is_workgroup(operand.type) for operand in op.operands):
        return False
    return all(map(_is_uniform, op.operands))


def _meets_barrier(ops: list[Op]) -> bool:
    for op in ops:
        if op.name not in UNIFORM and not op.name.startswith(PURE):
            return bool(op.name == BARRIER)
    return False


def _is_uniform(root: Value) -> bool:
    open_values = [root]
    seen = set[Value]()
    while open_values:
        open_value = open_values.pop()
        if open_value in seen:
            continue
        seen.add(open_value)
        if isinstance(open_value.owner, ir.Block):
            holder = open_value.owner.owner.operation
            if holder.name == LOOP and open_value == open_value.owner.arguments[0]:
                open_values += list(holder.operands)[:3]  # the loop's bounds and step
            elif holder.name != "gpu.func":
                return False
            continue
        owner = open_value.owner.operation
        is_private = owner.name == "memref.alloc" and not is_workgroup(open_value.type)
        if is_private or (owner.name not in UNIFORM and not owner.name.startswith(PURE)):
            return False
        open_values += list(owner.operands)
    return True


def move_into_launches(module: ir.Module) -> None:
    """Moves host allocations of shared and private memory, with their views, into the launches, in place.

    Raises CandidateError(COMPILE) for memory that the host uses too.
    """
    for op in [op for kind in ALLOCATIONS for op in walk(module, kind)]:
        memory = op.results[0].type
        is_of_kernels = is_workgroup(memory) or PRIVATE in str(memory)
        if is_of_kernels and not _holders(op, (LAUNCH, KERNEL)):
            _sink(op)


def declare_launch_memory(module: ir.Module) -> None:
    """Moves shared and private memory that the host allocates into launches, and declares it there, in place.

    Static shared memory becomes a workgroup attribution, and any other static ``memref.alloc`` a
    ``memref.alloca``: so passes of host code add no deallocations. Memory of dynamic size, or aligned to more
    than ALIGNMENT_BYTES, stays an allocation. Raises CandidateError(COMPILE) for memory that the host uses
    too.

        %t = memref.alloc() : memref<16xf32, #gpu.address_space<workgroup>>
        gpu.launch blocks(...) in (...) threads(...) in (...) {
      becomes
        gpu.launch blocks(...) in (...) threads(...) in (...) workgroup(%t : memref<16xf32, ...>) {
    """
    move_into_launches(module)
    for launch in walk(module, LAUNCH):
        for op in [op for kind in ALLOCATIONS for op in walk(launch, kind)]:
            alignment = op.attributes["alignment"].value if "alignment" in op.attributes else 0
            if op.results[0].type.has_static_shape and alignment <= ALIGNMENT_BYTES:
                memory = op.results[0]
                if is_workgroup(memory.type):
                    _drop_deallocations_of(memory)
                    memory.replace_all_uses_with(_attribution(launch, op))
                    op.erase()
                elif op.name == "memref.alloc":
                    _drop_deallocations_of(memory)
                    _replace_by_alloca(memory, op)
                    op.erase()


def drop_shared_globals(module: ir.Module) -> None:
    """Erases each ``memref.global`` of shared memory outside of ``gpu.module`` ops, in place."""
    for op in ops_in(module.body):
        if op.name == "memref.global" and is_workgroup(ir.TypeAttr(op.attributes["type"]).value):
            op.erase()


def _sink(op: Op) -> None:
    launches: list[Op] = []
    for use in list(op.results[0].uses):
        user = use.owner.operation
        around = _holders(user, (LAUNCH,))
        if not around and user.name in VIEWS:
            _sink(user)
        elif not around and user.name != "memref.dealloc":
            raise unsupported(op, f"a use by {user.name} outside of kernels", "uses in kernels")
    for use in list(op.results[0].uses):
        launches += [holder for holder in _holders(use.owner.operation, (LAUNCH,)) if holder not in launches]
    for launch in launches:
        _clone_into(launch, op)
    for use in list(op.results[0].uses):
        use.owner.operation.erase()  # only deallocations are left
    op.erase()


def _clone_into(launch: Op, op: Op) -> None:
    with op.location, ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0]):
        own = op.clone().results[0]
    for use in list(op.results[0].uses):
        user = use.owner.operation
        if launch in _holders(user, (LAUNCH,)):
            user.operands[use.operand_number] = own


def _replace_by_alloca(memory: Value, before: Op) -> None:
    segments = ir.DenseI32ArrayAttr.get([0, 0])
    with before.location, ir.InsertionPoint(before):
        own = value("memref.alloca", memory.type, operandSegmentSizes=segments)
    memory.replace_all_uses_with(own)


def _attribution(launch: Op, op: Op) -> Value:
    """Adds a workgroup attribution after the existing ones; private ones, the last, become allocas."""
    block = launch.regions[0].blocks[0]
    if COUNT in launch.attributes:
        count = int(ir.IntegerAttr(launch.attributes[COUNT]).value)
    else:
        count = 0
    has_clusters = sum(list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))[CLUSTER]) > 0
    first_private = (CLUSTER_IDS if has_clusters else IDS) + count
    for argument in reversed(list(block.arguments)[first_private:]):
        _replace_by_alloca(argument, block.operations[0])
        block.erase_argument(argument.arg_number)
    launch.attributes[COUNT] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count + 1)
    return block.add_argument(op.results[0].type, op.location)


def _drop_deallocations_of(memory: Value) -> None:
    for use in list(memory.uses):
        if use.owner.operation.name == "memref.dealloc":
            use.owner.operation.erase()


def _holders(op: Op, names: tuple[str, ...]) -> list[Op]:
    return [parent for parent in parents_of(op) if parent.name in names]


def use_private_memory(module: ir.Module) -> int:
    """Moves the memory that each thread of a kernel allocates to local memory, in place; returns how many.

    Each allocation becomes a ``memref.alloca`` at the start of the kernel: in a loop it would take more of
    the stack in each iteration. Raises CandidateError: RESOURCES above LIMIT_BYTES per thread; COMPILE for
    sizes that are not static, memory that leaves the loop iteration that allocates it, and a free of other
    memory.

        scf.for %i = %c0 to %n step %c1 {
          %t = memref.alloc() : memref<4xf32>
          memref.dealloc %t : memref<4xf32>
      becomes
        %t = memref.alloca() : memref<4xf32>
        scf.for %i = %c0 to %n step %c1 {
    """
    return sum(map(_move_to_local_memory, walk(module, "gpu.func")))


def _move_to_local_memory(function: Op) -> int:
    name = name_of(function)
    block = function.regions[0].blocks[0]
    found = [*walk(function, "memref.alloc"), *walk(function, "memref.alloca")]
    allocations = [op for op in found if not is_workgroup(op.results[0].type)]
    _require_small(name, allocations)
    for op in allocations:
        if _is_in_loop(op):
            _require_no_escape_from_iteration(name, op.results[0])
    _drop_own_deallocations(name, function, allocations)
    for op in allocations:
        kept = {key: op.attributes[key] for key in ("alignment",) if key in op.attributes}
        kept[SEGMENTS] = ir.DenseI32ArrayAttr.get([0, 0])
        with op.location, ir.InsertionPoint.at_block_begin(block):
            alloca = ir.Operation.create("memref.alloca", results=[op.results[0].type], attributes=kept)
        op.results[0].replace_all_uses_with(alloca.results[0])
    for op in allocations:  # last: the memory of another one may have been created before it
        op.erase()
    return len(allocations)


def _require_small(kernel: str, allocations: list[Op]) -> None:
    for op in allocations:
        if not op.results[0].type.has_static_shape:
            found = f"found {op.results[0].type} allocated by each thread"
            raise _unsupported(op, kernel, found, "a static shape")
    total = sum(memref_bytes(op.results[0].type) for op in allocations)
    if total > LIMIT_BYTES:
        found = f"found {total} bytes allocated by each thread"
        raise _unsupported(allocations[0], kernel, found, f"{LIMIT_BYTES}", Stage.RESOURCES)


def _is_in_loop(op: Op) -> bool:
    parent = op.parent
    while parent.name != "gpu.func":
        if parent.name != "scf.if":
            return True
        parent = parent.operation.parent
    return False


def _require_no_escape_from_iteration(kernel: str, buffer: Value) -> None:
    for use in buffer.uses:
        op = use.owner.operation
        if op.name in VIEWS:
            for view in (result for result in op.results if is_buffer(result.type)):
                _require_no_escape_from_iteration(kernel, view)
        elif op.name in ("scf.yield", "scf.condition") or any(
            is_buffer(result.type) for result in op.results
        ):
            found = f"found memory of one iteration of a loop that {op.name} forwards"
            raise _unsupported(op, kernel, found, "loads, stores and views")


def _drop_own_deallocations(kernel: str, function: Op, allocations: list[Op]) -> None:
    own = {op.results[0] for op in allocations}
    for op in walk(function, "memref.dealloc"):
        if is_workgroup(op.operands[0].type):
            continue  # of shared memory, which other passes declare
        if not own.issuperset(roots_of(op.operands[0])):
            found = "found memref.dealloc of other memory"
            raise _unsupported(op, kernel, found, "what it allocated itself")
        op.erase()


def _unsupported(
    op: Op, kernel: str, found: str, allowed: str, stage: Stage = Stage.COMPILE
) -> CandidateError:
    return CandidateError(stage, f"kernel {kernel}: {found}, allowed {allowed} ({location_of(op)})")
