"""Memory of kernels that the host code of a script allocates: moved into the launches, and declared there."""

from tuner.gpu.mlir.shared_memory import ALIGNMENT_BYTES
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import VIEWS
from tuner.mlir.effects.launches import CLUSTER, SEGMENTS
from tuner.mlir.ir.building import value
from tuner.mlir.ir.memrefs import is_workgroup
from tuner.mlir.ir.reading import ops_in, parents_of, unsupported, walk

LAUNCH = "gpu.launch"
KERNEL = "gpu.func"
ALLOCATIONS = ("memref.alloc", "memref.alloca")
COUNT = "workgroup_attributions"
# block arguments: ids and sizes of blocks and threads; with clusters
IDS = 12
CLUSTER_IDS = 18
PRIVATE = "#gpu.address_space<private>"


def move_into_launches(module: ir.Module) -> None:
    """Moves host allocations of shared and private memory, with their views, into the launches, in place.

    Raises CandidateError(COMPILE) for memory that the host uses too.
    """
    for op in [op for name in ALLOCATIONS for op in walk(module, name)]:
        memory = op.results[0].type
        is_of_kernels = is_workgroup(memory) or PRIVATE in str(memory)
        if is_of_kernels and not _holders(op, (LAUNCH, KERNEL)):
            _sink(op)


def declare_launch_memory(module: ir.Module) -> None:
    """Moves shared and private memory that the host allocates into launches, and declares it there, in place.

    Static shared memory becomes a workgroup attribution, and any other static ``memref.alloc`` a
    ``memref.alloca``: so passes of host code add no deallocations. Memory of dynamic size, or aligned to more
    than ALIGNMENT_BYTES (128), stays an allocation. Raises CandidateError(COMPILE) for memory that the host
    uses too.

        %t = memref.alloc() : memref<16xf32, #gpu.address_space<workgroup>>
        gpu.launch blocks(...) in (...) threads(...) in (...) {
      becomes
        gpu.launch blocks(...) in (...) threads(...) in (...) workgroup(%t : memref<16xf32, ...>) {
    """
    move_into_launches(module)
    for launch in walk(module, LAUNCH):
        for op in [op for name in ALLOCATIONS for op in walk(launch, name)]:
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
    """Adds a workgroup attribution of the type of ``op``'s result to a launch; returns it, a block argument.

    Private attributions, which would come after it, are replaced by ``memref.alloca`` ops.
    """
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
