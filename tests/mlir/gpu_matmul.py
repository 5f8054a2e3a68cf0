"""A matmul for GPUs by upstream transform ops alone: tiles of A and B in shared memory, scalar arithmetic."""

from tuner.core.problem import Problem
from tuner.payload.cpu import partition, payload_mlir

ANY = "!transform.any_op"
CLEAN = """transform.apply_patterns to %FUNCTION {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } {apply_cse} : !transform.any_op"""


def gpu_payload(problem: Problem) -> str:
    """Returns the payload of the whole problem."""
    return payload_mlir(problem, partition(problem, 1, "none", 1))


def gpu_script(block: int = 32, depth: int = 16, tile: int = 4) -> str:
    """Returns a script: square blocks, k in steps of ``depth``, ``tile`` x ``tile`` elements per thread."""
    threads = block // tile
    mapping = "(mapping = [#gpu.{0}<y>, #gpu.{0}<x>])"
    return f"""module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: {ANY}) {{
    %mm = transform.structured.match ops{{["linalg.matmul"]}} in %root : ({ANY}) -> {ANY}
    %fill = transform.structured.match ops{{["linalg.fill"]}} in %root : ({ANY}) -> {ANY}
    %tb, %fb = transform.structured.tile_using_forall %mm tile_sizes [{block}, {block}]
      {mapping.format("block")} : ({ANY}) -> ({ANY}, {ANY})
    %fillb, %fb2 = transform.structured.fuse_into_containing_op %fill into %fb
      : ({ANY}, {ANY}) -> ({ANY}, {ANY})
    %tk, %kl = transform.structured.tile_using_for %tb tile_sizes [0, 0, {depth}] : ({ANY}) -> ({ANY}, {ANY})
    %pm, %pad, %copy = transform.structured.pad %tk {{
      padding_values = [0.0 : f32, 0.0 : f32, 0.0 : f32], padding_dimensions = [0, 1, 2],
      nofold_flags = [1, 1, 0], copy_back_op = "none"}} : ({ANY}) -> ({ANY}, {ANY}, {ANY})
    %pa = transform.get_producer_of_operand %pm[0] : ({ANY}) -> {ANY}
    %pb = transform.get_producer_of_operand %pm[1] : ({ANY}) -> {ANY}
    %ca = transform.structured.rewrite_in_destination_passing_style %pa : ({ANY}) -> {ANY}
    %cb = transform.structured.rewrite_in_destination_passing_style %pb : ({ANY}) -> {ANY}
    %fca, %tca = transform.structured.gpu.map_copy_to_threads %ca
      total_num_threads = {threads * threads} desired_bit_alignment = 128 : ({ANY}) -> ({ANY}, {ANY})
    %fcb, %tcb = transform.structured.gpu.map_copy_to_threads %cb
      total_num_threads = {threads * threads} desired_bit_alignment = 128 : ({ANY}) -> ({ANY}, {ANY})
    %tt, %ft = transform.structured.tile_using_forall %pm tile_sizes [{tile}, {tile}]
      {mapping.format("thread")} : ({ANY}) -> ({ANY}, {ANY})
    %tf, %ff = transform.structured.tile_using_forall %fillb tile_sizes [{tile}, {tile}]
      {mapping.format("thread")} : ({ANY}) -> ({ANY}, {ANY})
    %func = transform.structured.match ops{{["func.func"]}} in %root : ({ANY}) -> {ANY}
    {CLEAN.replace("FUNCTION", "func")}
    %blocks = transform.structured.match ops{{["scf.forall"]}}
      attributes{{mapping = [#gpu.block<y>, #gpu.block<x>]}} in %root : ({ANY}) -> {ANY}
    %at = transform.structured.match ops{{["bufferization.alloc_tensor"]}} in %blocks : ({ANY}) -> {ANY}
    %buffer, %new = transform.structured.bufferize_to_allocation %at {{
      memory_space = #gpu.address_space<workgroup>, alloc_op = "memref.alloc"}} : {ANY}
    %m2 = transform.bufferization.one_shot_bufferize %root {{
      bufferize_function_boundaries = false}} : ({ANY}) -> {ANY}
    %f2 = transform.structured.match ops{{["func.func"]}} in %m2 : ({ANY}) -> {ANY}
    {CLEAN.replace("FUNCTION", "f2")}
    transform.memref.erase_dead_alloc_and_stores %f2 : ({ANY}) -> ()
    %launch = transform.gpu.map_forall_to_blocks %f2 generate_gpu_launch : ({ANY}) -> {ANY}
    %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [{threads}, {threads}, 1]
      : ({ANY}) -> {ANY}
    %f3 = transform.structured.match ops{{["func.func"]}} in %m2 : ({ANY}) -> {ANY}
    {CLEAN.replace("FUNCTION", "f3")}
    %left = transform.structured.match interface{{LinalgOp}} in %f3 : ({ANY}) -> {ANY}
    %loops = transform.structured.convert_to_loops %left : ({ANY}) -> {ANY}
    transform.yield
  }}
}}
"""
