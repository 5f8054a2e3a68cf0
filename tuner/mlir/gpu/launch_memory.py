"""Declares shared and private memory at the ``gpu.launch`` whose threads use it.

Takes functions with ``gpu.launch``, before outlining. Workgroup or private memory that the host allocates, as
``transform.structured.promote`` does, moves into each launch that uses it, with its views. Shared memory of a
launch becomes a workgroup attribution, private memory a ``memref.alloca``: passes of host code then do not
insert deallocations for it. Rejected: a use of such memory outside of kernels. Dynamic sizes stay, for later
passes to reject.

    %t = memref.alloc() : memref<16xf32, #gpu.address_space<workgroup>>
    gpu.launch blocks(...) in (...) threads(...) in (...) {
  becomes
    gpu.launch blocks(...) in (...) threads(...) in (...) workgroup(%t : memref<16xf32, ...>) {
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.buffer_roots import VIEWS
from tuner.mlir.gpu.dynamic_shared_memory import ALIGNMENT_BYTES
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.launch_operands import CLUSTER, SEGMENTS
from tuner.mlir.rewrite.located_error import unsupported
from tuner.mlir.rewrite.type_sizes import is_workgroup
from tuner.mlir.rewrite.walking import parents_of, walk

LAUNCH, KERNEL = "gpu.launch", "gpu.func"
ALLOCATIONS = ("memref.alloc", "memref.alloca")
COUNT = "workgroup_attributions"
IDS, CLUSTER_IDS = 12, 18  # block arguments: ids and sizes of blocks and threads; with clusters
PRIVATE = "#gpu.address_space<private>"


def move_into_launches(module: ir.Module) -> None:
    """Moves workgroup and private memory that the host allocates into the launches that use it, in place.

    Each launch gets a copy of the allocation and of its views. Raises CandidateError(COMPILE) for memory that
    the host uses too.
    """
    for op in [op for kind in ALLOCATIONS for op in walk(module, kind)]:
        if _is_of_kernels(op) and not _holders(op, (LAUNCH, KERNEL)):
            _sink(op)


def declare_launch_memory(module: ir.Module) -> None:
    """Moves workgroup and private memory into launches (``move_into_launches``), and declares it there.

    In a launch, static shared memory becomes a workgroup attribution, and any other static ``memref.alloc`` a
    ``memref.alloca``; their deallocations are dropped. Memory of dynamic size, or aligned to more than
    ALIGNMENT_BYTES (128), stays an allocation. Raises CandidateError(COMPILE) for memory that the host uses
    too.
    """
    move_into_launches(module)
    for launch in walk(module, LAUNCH):
        for op in [op for kind in ALLOCATIONS for op in walk(launch, kind)]:
            if op.results[0].type.has_static_shape and _alignment_bytes(op) <= ALIGNMENT_BYTES:
                _declare(launch, op)


def drop_shared_globals(module: ir.Module) -> None:
    """Erases each ``memref.global`` of shared memory outside of ``gpu.module`` ops, in place.

    Outlined kernels have copies in their ``gpu.module``.
    """
    for op in [each.operation for each in module.body.operations]:
        if op.name == "memref.global" and is_workgroup(ir.TypeAttr(op.attributes["type"]).value):
            op.erase()


def _sink(op: Op) -> None:
    """Clones an op, after views of its result, into every launch that uses the result; then erases the op."""
    launches: list[Op] = []
    for use in list(op.results[0].uses):
        user = use.owner.operation
        around = _holders(user, (LAUNCH,))
        if not around and user.name in VIEWS:
            _sink(user)
        elif not around and user.name != "memref.dealloc":
            raise unsupported(op, f"a use by {user.name} outside of kernels", "uses in kernels")
    for use in list(op.results[0].uses):
        launches += [each for each in _holders(use.owner.operation, (LAUNCH,)) if each not in launches]
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


def _declare(launch: Op, op: Op) -> None:
    memory = op.results[0]
    if is_workgroup(memory.type):
        _drop_deallocations(memory)
        memory.replace_all_uses_with(_attribution(launch, op))
        op.erase()
    elif op.name == "memref.alloc":
        _drop_deallocations(memory)
        _replace_by_alloca(memory, op)
        op.erase()


def _replace_by_alloca(memory: Value, before: Op) -> None:
    segments = ir.DenseI32ArrayAttr.get([0, 0])
    with before.location, ir.InsertionPoint(before):
        own = value("memref.alloca", memory.type, operandSegmentSizes=segments)
    memory.replace_all_uses_with(own)


def _attribution(launch: Op, op: Op) -> Value:
    """Adds a workgroup attribution after the existing ones; private ones, which follow, become allocas."""
    block = launch.regions[0].blocks[0]
    count = int(ir.IntegerAttr(launch.attributes[COUNT]).value) if COUNT in launch.attributes else 0
    has_clusters = sum(list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))[CLUSTER]) > 0
    first_private = (CLUSTER_IDS if has_clusters else IDS) + count
    for argument in reversed(list(block.arguments)[first_private:]):
        _replace_by_alloca(argument, block.operations[0])
        block.erase_argument(argument.arg_number)
    launch.attributes[COUNT] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count + 1)
    return block.add_argument(op.results[0].type, op.location)


def _alignment_bytes(op: Op) -> int:
    return int(ir.IntegerAttr(op.attributes["alignment"]).value) if "alignment" in op.attributes else 0


def _drop_deallocations(memory: Value) -> None:
    for use in list(memory.uses):
        if use.owner.operation.name == "memref.dealloc":
            use.owner.operation.erase()


def _is_of_kernels(op: Op) -> bool:
    kind = op.results[0].type
    return is_workgroup(kind) or PRIVATE in str(kind)


def _holders(op: Op, names: tuple[str, ...]) -> list[Op]:
    """Returns the parents of an op whose name is one of ``names``, innermost first."""
    return [each for each in parents_of(op) if each.name in names]
