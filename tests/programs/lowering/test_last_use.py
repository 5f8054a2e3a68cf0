import pytest

from tests.programs.lowering.reading import read, refusal
from tests.texts import text_beside
from tuner.core.errors import Stage

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.deallocation")

M = "memref<4xf32>"


def freed(*lines: str, arguments: str = "") -> list[str]:
    """Returns the first word that names an op of each line of @f, once it is read."""
    body = "\n".join(lines)
    text = read(f"func.func @f({arguments}) {{ {body}\n return }}")
    return [line.split(" = ")[-1].split()[0].split("(")[0].strip('"') for line in text.splitlines()[2:-2]]


def test_memory_of_a_stream_is_freed_in_front_of_its_end() -> None:
    names = ("create_stream", "alloc", "memcpy", "wait", "dealloc", "destroy_stream")
    found = freed(text_beside(__file__, "OF_A_STREAM"), arguments=f"%a: {M}")
    assert found == [*(f"gpux.{name}" for name in names), "return"]


def test_memory_on_two_streams_that_nobody_frees_is_refused() -> None:
    stage, reason = refusal(text_beside(__file__, "TWO_STREAMS"))
    assert stage is Stage.COMPILE
    assert "found memory on several streams that nobody frees, allowed gpux.dealloc of it" in reason


def test_memory_whose_address_is_taken_is_freed_at_the_end() -> None:
    found = freed(text_beside(__file__, "ADDRESS_TAKEN"), arguments=f"%a: {M}, %p: memref<index>")
    assert found[-3:] == ["memref.store", "gpu.dealloc", "return"]


def test_memory_that_a_branch_hands_on_is_made_in_front_of_it_and_freed_behind() -> None:
    names = freed(text_beside(__file__, "HANDED_ON"), arguments=f"%a: {M}, %flag: i1")
    assert names[0] == "gpu.alloc"
    assert names[-3:] == ["gpu.memcpy", "gpu.dealloc", "return"]


POINTER = "%w = arith.index_cast %r : index to i64 %p = llvm.inttoptr %w : i64 to !llvm.ptr"
LOADED = f"{POINTER} %v = llvm.load %p : !llvm.ptr -> f32 memref.store %v, %o[] : memref<f32>"
ADDRESS = f"%n = memref.extract_aligned_pointer_as_index %x : {M} -> index"


def test_memory_of_a_descriptor_is_freed_after_the_kernel() -> None:
    names = freed(text_beside(__file__, "OF_A_DESCRIPTOR"), arguments="%i: index")
    assert names[-4:] == ["gpu.terminator", "}", "gpu.dealloc", "return"]


@pytest.mark.parametrize("branch", ["scf.if %flag", "scf.execute_region", "memref.alloca_scope"])
@pytest.mark.parametrize("allocates", ["gpu.alloc ()", "memref.alloc()"])
def test_memory_whose_address_leaves_its_branch_is_freed_after_the_branch(
    branch: str, allocates: str
) -> None:
    end = "memref.alloca_scope.return" if "alloca" in branch else "scf.yield"
    lines = (
        f"%r = {branch} -> (index) {{".replace("(index)", "index" if "execute" in branch else "(index)"),
        f"%x = {allocates} : {M}",
        ADDRESS,
        f"{end} %n : index",
        "} else { scf.yield %i : index }" if "if" in branch else "}",
        LOADED,
    )
    names = freed(*lines, arguments="%i: index, %flag: i1, %o: memref<f32>")
    assert names[0] == allocates.split(" ")[0].removesuffix("()")
    assert names[-4:-1] == ["llvm.load", names[0].replace("alloc", "dealloc"), "memref.store"]


@pytest.mark.parametrize(
    "end", ["scf.yield %n : index", "memref.store %n, %box[] : memref<index> scf.yield %k : index"]
)
def test_memory_whose_address_leaves_an_iteration_is_refused(end: str) -> None:
    text = f"""func.func @f(%i: index, %m: index, %box: memref<index>, %o: memref<f32>) {{
      %r = scf.for %j = %i to %m step %i iter_args(%k = %i) -> (index) {{
        %x = gpu.alloc () : {M}
        {ADDRESS}
        {end}
      }}
      {LOADED}
      return
    }}"""
    reason = "found memory that leaves scf.for and that nobody frees, allowed memory that is freed"
    assert reason in refusal(text)[1]


def test_a_size_that_is_computed_in_the_branch_is_refused() -> None:
    assert (
        "found memory that leaves its branch, of a size that is computed there"
        in refusal(text_beside(__file__, "SIZE_OF_THE_BRANCH"))[1]
    )
