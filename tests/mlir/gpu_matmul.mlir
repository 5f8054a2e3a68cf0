// ----- SCRIPT
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill = transform.structured.match ops{["linalg.fill"]} in %root : (!transform.any_op) -> !transform.any_op
    %tb, %fb = transform.structured.tile_using_forall %mm tile_sizes [{block}, {block}]
      (mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fillb, %fb2 = transform.structured.fuse_into_containing_op %fill into %fb
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tk, %kl = transform.structured.tile_using_for %tb tile_sizes [0, 0, {depth}] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %pm, %pad, %copy = transform.structured.pad %tk {
      padding_values = [0.0 : f32, 0.0 : f32, 0.0 : f32], padding_dimensions = [0, 1, 2],
      nofold_flags = [1, 1, 0], copy_back_op = "none"} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %pa = transform.get_producer_of_operand %pm[0] : (!transform.any_op) -> !transform.any_op
    %pb = transform.get_producer_of_operand %pm[1] : (!transform.any_op) -> !transform.any_op
    %ca = transform.structured.rewrite_in_destination_passing_style %pa : (!transform.any_op) -> !transform.any_op
    %cb = transform.structured.rewrite_in_destination_passing_style %pb : (!transform.any_op) -> !transform.any_op
    %fca, %tca = transform.structured.gpu.map_copy_to_threads %ca
      total_num_threads = {total} desired_bit_alignment = 128 : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fcb, %tcb = transform.structured.gpu.map_copy_to_threads %cb
      total_num_threads = {total} desired_bit_alignment = 128 : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tt, %ft = transform.structured.tile_using_forall %pm tile_sizes [{tile}, {tile}]
      (mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tf, %ff = transform.structured.tile_using_forall %fillb tile_sizes [{tile}, {tile}]
      (mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %func = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } {apply_cse} : !transform.any_op
    %blocks = transform.structured.match ops{["scf.forall"]}
      attributes{mapping = [#gpu.block<y>, #gpu.block<x>]} in %root : (!transform.any_op) -> !transform.any_op
    %at = transform.structured.match ops{["bufferization.alloc_tensor"]} in %blocks : (!transform.any_op) -> !transform.any_op
    %buffer, %new = transform.structured.bufferize_to_allocation %at {
      memory_space = #gpu.address_space<workgroup>, alloc_op = "memref.alloc"} : !transform.any_op
    %m2 = transform.bufferization.one_shot_bufferize %root {
      bufferize_function_boundaries = false} : (!transform.any_op) -> !transform.any_op
    %f2 = transform.structured.match ops{["func.func"]} in %m2 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %f2 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } {apply_cse} : !transform.any_op
    transform.memref.erase_dead_alloc_and_stores %f2 : (!transform.any_op) -> ()
    %launch = transform.gpu.map_forall_to_blocks %f2 generate_gpu_launch : (!transform.any_op) -> !transform.any_op
    %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [{threads}, {threads}, 1]
      : (!transform.any_op) -> !transform.any_op
    %f3 = transform.structured.match ops{["func.func"]} in %m2 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %f3 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } {apply_cse} : !transform.any_op
    %left = transform.structured.match interface{LinalgOp} in %f3 : (!transform.any_op) -> !transform.any_op
    %loops = transform.structured.convert_to_loops %left : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
