// A matmul schedule with open choices, for f32. Its tiles are sized for AVX-512. On AVX2 it runs, and is right, but its larger
// tiles do not fit the registers: write 96 in place of 384 below, and 8, 16 in place of 32, 64.
//   tuner tune matmul 128x128x128 --strategy examples/matmul_knobs.mlir --trials 20
// docs/guides/own-schedules.md explains it.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %function = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %product = transform.structured.match ops{["linalg.matmul"]} in %function : (!transform.any_op) -> !transform.any_op

    // The choices. A register tile is tile_m x tile_n accumulators, unroll_k outer products per iteration.
    %tile_m = transform.tune.knob<"tile_m"> options = {min = 2, max = 16, divides = 16} -> !transform.param<i64>
    %tile_n = transform.tune.knob<"tile_n"> options = [16, 32, 64] -> !transform.param<i64>
    %unroll_k = transform.tune.knob<"unroll_k"> options = [1, 2, 4] -> !transform.param<i64>

    // AVX-512 has 32 registers of 16 floats. 24 of them hold accumulators (384 floats), the others A and B: larger tiles are
    // never tried. AVX2 has 16 registers of 8 floats: 12 of them hold 96.
    transform.smt.constrain_params(%tile_m, %tile_n) : (!transform.param<i64>, !transform.param<i64>) -> () {
    ^bb0(%rows: !smt.int, %columns: !smt.int):
      %accumulators = smt.int.mul %rows, %columns
      %most = smt.int.constant 384
      %fits = smt.int.cmp le %accumulators, %most
      smt.assert %fits
    }

    // Columns outermost, or rows. The fill of C moves into the loops with the tile.
    %tile = transform.tune.alternatives<"outer_loop"> -> !transform.any_op {
      %by_columns, %loops:2 = transform.structured.fuse %product tile_sizes [%tile_m, %tile_n, 0] interchange [1, 0, 2]
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op, !transform.any_op)
      transform.yield %by_columns : !transform.any_op
    }, {
      %by_rows, %loops:2 = transform.structured.fuse %product tile_sizes [%tile_m, %tile_n, 0]
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op, !transform.any_op)
      transform.yield %by_rows : !transform.any_op
    }
    %kernel, %k_loop = transform.structured.tile_using_for %tile tile_sizes [0, 0, %unroll_k]
      : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.annotate %k_loop "k_loop" : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.linalg.tiling_canonicalization
    } : !transform.any_op

    // Vectors: fails where a tile does not divide the sizes, since vectors have static shapes.
    %kernels = transform.structured.match ops{["linalg.matmul", "linalg.fill"]} in %function : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %kernels {create_named_contraction} : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.vector.reduction_to_contract
      transform.apply_patterns.vector.transfer_permutation_patterns
      transform.apply_patterns.canonicalization
      transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
    } : !transform.any_op

    // The accumulators stay in registers over the loop of k.
    %loops = transform.structured.match ops{["scf.for"]} in %function : (!transform.any_op) -> !transform.any_op
    transform.apply_licm to %loops : !transform.any_op
    %k_loops = transform.structured.match ops{["scf.for"]} attributes{k_loop} in %function : (!transform.any_op) -> !transform.any_op
    transform.loop.hoist_loop_invariant_subsets %k_loops : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.canonicalization
    } : !transform.any_op

    // Buffers, then vectors that the lowering to LLVM takes.
    %buffers = transform.bufferization.one_shot_bufferize %function : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %buffers {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_patterns to %buffers {
      transform.apply_patterns.vector.lower_contraction lowering_strategy = "outerproduct"
      transform.apply_patterns.vector.lower_outerproduct
      transform.apply_patterns.vector.lower_transpose
    } : !transform.any_op
    transform.apply_patterns to %buffers {
      transform.apply_patterns.vector.transfer_to_scf max_transfer_rank = 1 full_unroll = true
    } : !transform.any_op
    transform.yield
  }
}
