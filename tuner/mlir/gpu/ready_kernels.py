"""Kernels of a program that are compiled before the rest of the program, by the same pipeline as a trial.

A tuned script's ``gpu.module`` keeps its body, from which its effects are read, and has its code in the
attribute ``tuner.objects``. Later passes of the program cannot change that code: the code that was tuned is
the code that runs. Such kernels take addresses for memrefs, also if other kernels of the program do not.

    gpu.module @kernels_64x64x64 attributes {tuner.objects = [#gpu.object<#nvvm.target, "...">]} {
      gpu.func @matmul(%a: memref<64x64xf32>) kernel { ... }
  becomes, once effects are known
    gpu.binary @kernels_64x64x64 [#gpu.object<#nvvm.target, "...">]
"""

from tuner.core.chips import Chip
from tuner.mlir.bindings import Op, Value, gpu, ir
from tuner.mlir.gpu.lowering import kernels_to_ptx
from tuner.mlir.gpu.ready_modules import OBJECTS, is_ready
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.launch_operands import ARGUMENTS, SEGMENTS, module_of
from tuner.mlir.rewrite.symbols import name_of
from tuner.mlir.rewrite.walking import walk

TIME = "LLVMIRToISATimeInMs"  # a property of an object
HANDLER = "#gpu.select_object"  # as gpu-module-to-binary writes it: selects the first object


def make_ready(holder: Op, chip: Chip, alignment_bytes: int) -> None:
    """Compiles a copy of a ``gpu.module`` and stores its PTX as an attribute of the original, which stays.

    ``alignment_bytes`` is that of dynamic shared memory. Raises CandidateError(COMPILE).
    """
    alone = ir.Module.create()
    alone.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
    with ir.InsertionPoint(alone.body):
        holder.clone()
    kernels_to_ptx(alone, chip, alignment_bytes)
    (made,) = ir.ArrayAttr(walk(alone, "gpu.binary")[0].attributes["objects"])
    holder.attributes[OBJECTS] = ir.ArrayAttr.get([_without_time(gpu.ObjectAttr(made))])


def _without_time(made: gpu.ObjectAttr) -> gpu.ObjectAttr:
    """Returns an object without upstream's property of compile time, which differs each time."""
    kept = {each.name: each.attr for each in made.properties if each.name != TIME}
    return gpu.ObjectAttr.get(made.target, made.format, made.object, ir.DictAttr.get(kept), made.kernels)


def use_code_of_ready_kernels(module: ir.Module) -> frozenset[str]:
    """Replaces each ``gpu.module`` that has compiled code (``make_ready``) by a ``gpu.binary`` of the code.

    Returns the names of these modules, which the binaries have too.
    """
    ready = [holder for holder in walk(module, "gpu.module") if is_ready(holder)]
    for holder in ready:
        with holder.location, ir.InsertionPoint(holder):
            create(
                "gpu.binary",
                sym_name=holder.attributes["sym_name"],
                objects=holder.attributes[OBJECTS],
                offloadingHandler=ir.Attribute.parse(HANDLER),
            )
    names = frozenset(map(name_of, ready))
    for holder in ready:
        holder.erase()
    return names


def drop_code(module: ir.Module) -> None:
    """Removes the code that ``make_ready`` stored in ``gpu.module`` ops, in place; kernel bodies stay."""
    for holder in walk(module, "gpu.module"):
        if is_ready(holder):
            del holder.attributes[OBJECTS]


def pass_addresses(module: ir.Module, names: frozenset[str]) -> None:
    """Makes launches of kernels in the named ``gpu.module`` ops pass one address per memref, in place.

    ``gpu-to-llvm`` could do this too, but has one calling convention for all launches of a module.
    """
    for launch in walk(module, "gpu.launch_func"):
        if module_of(launch) in names:
            first = sum(list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS]))[:ARGUMENTS])
            for number in range(first, len(launch.operands)):
                if isinstance(launch.operands[number].type, ir.MemRefType):
                    launch.operands[number] = _address(launch, launch.operands[number])


def _address(launch: Op, memref: Value) -> Value:
    """Creates, before the launch, the aligned pointer of a memref."""
    with launch.location, ir.InsertionPoint(launch):
        number = value("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), memref)
        integer = value("arith.index_cast", ir.IntegerType.get_signless(64), number)
        return value("llvm.inttoptr", ir.Type.parse("!llvm.ptr"), integer)
