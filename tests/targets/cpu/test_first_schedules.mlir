// Schedules as somebody who knows MLIR writes them first. Each is the body of @__transform_main.
// ----- TILE
  %product = transform.structured.match ops{["linalg.matmul", "linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [8, 32, 4]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
// ----- TILE_VECTORIZE
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %tm = transform.tune.knob<"tm"> options = [4, 8] -> !transform.param<i64>
  %tn = transform.tune.knob<"tn"> options = [16, 8] -> !transform.param<i64>
  %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [%tm, %tn, 4]
    : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.structured.vectorize %tile : !transform.any_op
// ----- MASKED
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [4, 16, 4]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.structured.vectorize %tile vector_sizes [4, 16, 4] : !transform.any_op
// ----- PAD_TILE
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [8, 16, 8]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %padded, %pad, %copy = transform.structured.pad %tile pad_to_multiple_of [8, 16, 8] {
    padding_values = [{zero}, {zero}, {zero}], padding_dimensions = [0, 1, 2],
    nofold_flags = [1, 1, 0], copy_back_op = "linalg.copy"
  } : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  transform.structured.vectorize %padded : !transform.any_op
// ----- TILE_TWICE
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %outer, %outer_loops:3 = transform.structured.tile_using_for %product tile_sizes [32, 32, 32]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %inner, %inner_loops:3 = transform.structured.tile_using_for %outer tile_sizes [4, 16, 1]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.structured.vectorize %inner vector_sizes [4, 16, 1] : !transform.any_op
// ----- FORALL
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %fill = transform.structured.match ops{["linalg.fill"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %forall = transform.structured.tile_using_forall %product tile_sizes [16, 32]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %fused, %again = transform.structured.fuse_into_containing_op %fill into %forall
    : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  %inner, %loop = transform.structured.tile_using_for %tile tile_sizes [0, 0, 8]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
// ----- BUFFERIZED
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [8, 16, 2]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %whole = transform.bufferization.one_shot_bufferize layout{IdentityLayoutMap} %root
    {bufferize_function_boundaries = true} : (!transform.any_op) -> !transform.any_op
  %on_buffers = transform.structured.match ops{["linalg.matmul"]} in %whole : (!transform.any_op) -> !transform.any_op
  transform.structured.vectorize %on_buffers vector_sizes [8, 16, 2] : !transform.any_op
  %function = transform.structured.match ops{["func.func"]} in %whole : (!transform.any_op) -> !transform.any_op
  transform.apply_patterns to %function {
    transform.apply_patterns.vector.lower_masked_transfers
    transform.apply_patterns.canonicalization
  } : !transform.any_op
// ----- TRANSFERS_OF_RANK_2
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %loops:2 = transform.structured.tile_using_for %product tile_sizes [6, 0, 5] interchange = [2, 0, 1]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %strip, %along = transform.structured.tile_using_for %tile tile_sizes [0, 8, 0]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.structured.vectorize %strip vector_sizes [6, 8, 5] : !transform.any_op
// ----- FUSE
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %fused, %loops:2 = transform.structured.fuse %product tile_sizes [8, 16]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %inner, %along_k = transform.structured.tile_using_for %fused tile_sizes [0, 0, 4]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
// ----- INTERCHANGE
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %generic = transform.structured.generalize %product : (!transform.any_op) -> !transform.any_op
  %turned = transform.structured.interchange %generic iterator_interchange = [2, 0, 1]
    : (!transform.any_op) -> !transform.any_op
  %tile, %loops:3 = transform.structured.tile_using_for %turned tile_sizes [4, 8, 16]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.structured.vectorize %tile vector_sizes [4, 8, 16] : !transform.any_op
// ----- UNROLL
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [1, 16, 1]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.structured.vectorize %tile vector_sizes [1, 16, 1] : !transform.any_op
  %factor = transform.tune.knob<"factor"> options = [4, 2] -> !transform.param<i64>
  transform.loop.unroll %loops#2 { factor = 4 } : !transform.any_op
// ----- SPLIT_REDUCTION
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %partial, %fill, %split, %combining = transform.structured.tile_reduction_using_for %product
    by tile_sizes = [0, 0, 5]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
// ----- VECTORIZE_CHILDREN
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [8, 16, 8]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %function = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
  %vectorized = transform.structured.vectorize_children_and_apply_patterns %function
    : (!transform.any_op) -> !transform.any_op
// ----- LOWER_CONTRACTION
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [4, 8, 2]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.structured.vectorize %tile vector_sizes [4, 8, 2] : !transform.any_op
  %function = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
  transform.tune.alternatives<"lowering"> {
    transform.apply_patterns to %function {
      transform.apply_patterns.vector.lower_contraction lowering_strategy = "outerproduct"
      transform.apply_patterns.vector.lower_outerproduct
    } : !transform.any_op
  }, {
    transform.apply_patterns to %function {
      transform.apply_patterns.vector.lower_contraction lowering_strategy = "dot"
    } : !transform.any_op
  }, {
    transform.apply_patterns to %function {
      transform.apply_patterns.vector.lower_contraction lowering_strategy = "parallelarith"
    } : !transform.any_op
  }
// ----- PACK
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %packed = transform.structured.pack %product packed_sizes = [8, 16, 4]
    : (!transform.any_op) -> !transform.op<"linalg.generic">
// ----- HOIST_PAD
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [8, 16, 8]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %padded, %pad, %copy = transform.structured.pad %tile pad_to_multiple_of [8, 16, 8] {
    padding_values = [{zero}, {zero}, {zero}], padding_dimensions = [0, 1, 2],
    nofold_flags = [1, 1, 0], copy_back_op = "linalg.copy"
  } : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %operand = transform.get_producer_of_operand %padded[1] : (!transform.any_op) -> !transform.any_op
  %hoisted = transform.structured.hoist_pad %operand by 2 loops : (!transform.any_op) -> !transform.any_op
// ----- PROMOTE
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [16, 16, 16]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %whole = transform.bufferization.one_shot_bufferize layout{IdentityLayoutMap} %root
    {bufferize_function_boundaries = true} : (!transform.any_op) -> !transform.any_op
  %on_buffers = transform.structured.match ops{["linalg.matmul"]} in %whole : (!transform.any_op) -> !transform.any_op
  %promoted = transform.structured.promote %on_buffers { operands_to_promote = [0, 1], use_alloca } : (!transform.any_op) -> !transform.any_op
// ----- HOIST_SUBSETS
  %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
  %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [4, 16, 1]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.structured.vectorize %tile vector_sizes [4, 16, 1] : !transform.any_op
  %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
  transform.apply_patterns to %f { transform.apply_patterns.canonicalization } : !transform.any_op
  %ks = transform.structured.match ops{["scf.for"]} in %root : (!transform.any_op) -> !transform.any_op
  transform.loop.hoist_loop_invariant_subsets %ks : !transform.any_op
// ----- OWN
    %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [4, 16, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %tile : !transform.any_op
