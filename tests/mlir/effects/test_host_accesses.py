import pytest

from tests.mlir.kernels import parsed
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

host_accesses = pytest.importorskip("tuner.mlir.effects.memory_effects")
alias_sets = pytest.importorskip("tuner.mlir.effects.aliases")

M = "memref<4x4xf32>"
MODULE = f"""module attributes {{gpu.container_module}} {{
  func.func private @other({M})
  func.func @main(%a: {M}, %b: {M}, %x: f32, %i: index) {{
    BODY
    return
  }}
  gpu.module @m {{ gpu.func @k(%a: {M}) kernel {{ gpu.return }} }}
}}"""
LAUNCH = f"gpu.launch_func @m::@k blocks in (%i, %i, %i) threads in (%i, %i, %i) args(%a : {M})"


def accesses(body: str) -> list[tuple[str, tuple[bool, bool]]]:
    """Returns the accesses of the first operation."""
    with parsed(MODULE.replace("BODY", body)) as module:
        op = module.body.operations[1].regions[0].blocks[0].operations[0].operation
        found = host_accesses.host_effects(op)
        return [(access.value.get_name(), tuple(access.effect)[:2]) for access in found]


A_READ, A_WRITTEN, A_BOTH = ("%arg0", (True, False)), ("%arg0", (False, True)), ("%arg0", (True, True))
B_READ, B_BOTH = ("%arg1", (True, False)), ("%arg1", (True, True))
GENERIC = f"""linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]
    }} outs(%a : {M}) {{
    ^bb0(%o: f32):
      %r = memref.load %b[%i, %i] : {M}
      linalg.yield %r : f32
    }}"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"%r = memref.load %a[%i, %i] : {M}", [A_READ]),
        (f"memref.store %x, %a[%i, %i] : {M}", [A_WRITTEN]),
        (f"linalg.fill ins(%x : f32) outs(%a : {M})", [A_WRITTEN]),
        (f"linalg.add ins(%b, %b : {M}, {M}) outs(%a : {M})", [B_READ, B_READ, A_BOTH]),
        (f"linalg.transpose ins(%b : {M}) outs(%a : {M}) permutation = [1, 0]", [B_BOTH, A_BOTH]),
        (GENERIC, [A_BOTH, B_BOTH]),
        (f"memref.copy %b, %a : {M} to {M}", [B_READ, A_WRITTEN]),
        (f"func.call @other(%a) : ({M}) -> ()", [A_BOTH]),
        (f"%r = memref.dim %a, %i : {M}", []),
        (f"%r = memref.cast %a : {M} to memref<?x?xf32>", []),
        (f"memref.dealloc %a : {M}", []),
        (f"scf.parallel (%j) = (%i) to (%i) step (%i) {{ memref.store %x, %a[%j, %j] : {M} }}", [A_BOTH]),
        (
            f"""scf.parallel (%j) = (%i) to (%i) step (%i) {{
            %own = memref.alloc() : {M} memref.store %x, %own[%j, %j] : {M}
            }}""",
            [],
        ),
    ],
)
def test_an_operation_with_all_in_it_is_one_access(
    body: str, found: list[tuple[str, tuple[bool, bool]]]
) -> None:
    assert accesses(body) == found


def test_only_a_fill_is_known_to_overwrite_a_buffer() -> None:
    for body, is_whole in (
        (f"linalg.fill ins(%x : f32) outs(%a : {M})", True),
        (f"memref.store %x, %a[%i, %i] : {M}", False),
    ):
        with parsed(MODULE.replace("BODY", body)) as module:
            block = module.body.operations[1].regions[0].blocks[0]
            op = block.operations[0].operation
            assert host_accesses.is_overwritten(op, block.arguments[0]) == is_whole
            assert not host_accesses.is_overwritten(op, block.arguments[1])


@pytest.mark.parametrize(
    "body",
    [
        f"%r = memref.extract_aligned_pointer_as_index %a : {M} -> index",
        f"""scf.parallel (%j) = (%i) to (%i) step (%i) {{
          %r = memref.extract_aligned_pointer_as_index %a : {M} -> index
        }}""",
    ],
)
def test_an_operation_that_keeps_an_address_is_refused(body: str) -> None:
    with pytest.raises(
        CandidateError,
        match=r"^argument %arg0: found memref\.extract_aligned_pointer_as_index, allowed operations that",
    ) as failure:
        accesses(body)
    assert failure.value.stage is Stage.COMPILE


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"gpu.memcpy %a, %b : {M}, {M}", r"^found gpu\.memcpy, allowed gpu\.launch_func without tokens$"),
        (
            f"%t = gpu.wait async {LAUNCH.replace('@m', 'async [%t] @m')}".replace(
                "gpu.launch", "%u = gpu.launch"
            ),
            r"^found gpu\.wait, allowed",
        ),
        (
            f"scf.parallel (%j) = (%i) to (%i) step (%i) {{ {LAUNCH} }}",
            r"^found a launch in scf\.parallel, allowed func\.func, scf\.for, scf\.while, scf\.if$",
        ),
    ],
)
def test_device_code_that_is_there_already_is_refused(body: str, reason: str) -> None:
    with parsed(MODULE.replace("BODY", body)) as module:
        function = module.body.operations[1].operation
        block = function.regions[0].blocks[0]
        with pytest.raises(CandidateError, match=reason):
            host_accesses.reject_device_code(function, set(alias_sets.structured_operations(block)))


def test_memory_that_the_host_reaches_as_well_is_left_as_it_is() -> None:
    body = f"%d = gpu.alloc host_shared () : {M}\ngpu.dealloc %d : {M}"
    with parsed(MODULE.replace("BODY", body)) as module:
        function = module.body.operations[1].operation
        block = function.regions[0].blocks[0]
        host_accesses.reject_device_code(function, set(alias_sets.structured_operations(block)))
