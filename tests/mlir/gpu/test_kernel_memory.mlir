// ----- SCRIPT
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill = transform.structured.match ops{["linalg.fill"]} in %root : (!transform.any_op) -> !transform.any_op
    %tb, %fb = transform.structured.tile_using_forall %mm tile_sizes [16, 16]
      (mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %inside, %fb2 = transform.structured.fuse_into_containing_op %fill into %fb
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %func = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %func { transform.apply_patterns.canonicalization } {apply_cse} : !transform.any_op
    %m2 = transform.bufferization.one_shot_bufferize %root {bufferize_function_boundaries = false}
      : (!transform.any_op) -> !transform.any_op
    %f1 = transform.structured.match ops{["func.func"]} in %m2 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %f1 { transform.apply_patterns.canonicalization } {apply_cse} : !transform.any_op
    transform.memref.erase_dead_alloc_and_stores %f1 : (!transform.any_op) -> ()
    %m = transform.structured.match ops{["linalg.matmul"]} in %m2 : (!transform.any_op) -> !transform.any_op
    %f = transform.structured.match ops{["linalg.fill"]} in %m2 : (!transform.any_op) -> !transform.any_op
    %tf, %ff = transform.structured.tile_using_forall %f tile_sizes [1, 1] (mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tk, %loop = transform.structured.tile_using_for %m tile_sizes [0, 0, 16] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %p = transform.structured.promote %tk {operands_to_promote = [0, 1], PROMOTED} : (!transform.any_op) -> !transform.any_op
    MORE
    %tt, %ft = transform.structured.tile_using_forall %p tile_sizes [1, 1] (mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %f2 = transform.structured.match ops{["func.func"]} in %m2 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %f2 { transform.apply_patterns.canonicalization } {apply_cse} : !transform.any_op
    %launch = transform.gpu.map_forall_to_blocks %f2 generate_gpu_launch : (!transform.any_op) -> !transform.any_op
    %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [16, 16, 1] : (!transform.any_op) -> !transform.any_op
    %f3 = transform.structured.match ops{["func.func"]} in %m2 : (!transform.any_op) -> !transform.any_op
    %left = transform.structured.match interface{LinalgOp} in %f3 : (!transform.any_op) -> !transform.any_op
    %loops = transform.structured.convert_to_loops %left : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
// ----- BY_THREADS
%copies = transform.structured.match ops{["linalg.copy"]} in %m2 : (!transform.any_op) -> !transform.any_op
    %tc, %fc = transform.structured.tile_using_forall %copies tile_sizes [1, 1] (mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
