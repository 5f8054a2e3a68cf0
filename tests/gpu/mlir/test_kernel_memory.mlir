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
// ----- FORALL
func.func @main(%x: memref<64x16xf32>, %n: memref<64xi32>, %y: memref<64xf32>) {
  scf.forall (%i) in (64) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %t = memref.alloc() {alignment = 32 : i64} : memref<16xf32>
    scf.for %k = %c0 to %c16 step %c1 {
      %p = memref.load %x[%i, %k] : memref<64x16xf32>
      memref.store %p, %t[%k] : memref<16xf32>
    }
    %w = memref.load %n[%i] : memref<64xi32>
    %q = arith.index_cast %w : i32 to index
    %s = memref.load %t[%q] : memref<16xf32>
    memref.store %s, %y[%i] : memref<64xf32>
    memref.dealloc %t : memref<16xf32>
  }
  return
}
// ----- LOOP
func.func @main(%x: memref<64x16xf32>, %n: memref<64xi32>, %y: memref<64xf32>) {
  scf.forall (%i) in (64) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %w = memref.load %n[%i] : memref<64xi32>
    %q = arith.index_cast %w : i32 to index
    scf.for %iteration = %c0 to %c4 step %c1 {
      %t = memref.alloc() : memref<16xf32>
      %v = memref.subview %t[8] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 8>>
      scf.for %k = %c0 to %c16 step %c1 {
        %p = memref.load %x[%i, %k] : memref<64x16xf32>
        memref.store %p, %t[%k] : memref<16xf32>
      }
      %r = arith.remui %q, %c4 : index
      %low = memref.load %t[%q] : memref<16xf32>
      %high = memref.load %v[%r] : memref<8xf32, strided<[1], offset: 8>>
      %s = arith.addf %low, %high : f32
      memref.store %s, %y[%i] : memref<64xf32>
      memref.dealloc %t : memref<16xf32>
    }
  }
  return
}
// ----- TENSORS
#row = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
func.func @main(%x: tensor<64x16xf32>, %n: tensor<64xi32>) -> tensor<64xf32> {
  %empty = tensor.empty() : tensor<64xf32>
  %result = scf.forall (%i) in (64) shared_outs(%all = %empty) -> tensor<64xf32> {
    %row = tensor.extract_slice %x[%i, 0] [1, 16] [1, 1] : tensor<64x16xf32> to tensor<16xf32>
    %t = tensor.empty() : tensor<16xf32>
    %copy = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
      ins(%row : tensor<16xf32>) outs(%t : tensor<16xf32>) {
    ^bb0(%a: f32, %b: f32):
      %sum = arith.addf %a, %a : f32
      linalg.yield %sum : f32
    } -> tensor<16xf32>
    %w = tensor.extract %n[%i] : tensor<64xi32>
    %q = arith.index_cast %w : i32 to index
    %s = tensor.extract %copy[%q] : tensor<16xf32>
    %one = tensor.from_elements %s : tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %one into %all[%i] [1] [1] : tensor<1xf32> into tensor<64xf32>
    }
  }
  return %result : tensor<64xf32>
}
// ----- HANDED_ON
%first = memref.alloc() : memref<4xf32>
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%before = %first) -> memref<4xf32> {
      %own = memref.alloc() : memref<4xf32>
      %x = memref.load %before[%c0] : memref<4xf32>
      memref.store %x, %own[%c1] : memref<4xf32>
      scf.yield %own : memref<4xf32>
    }
    %x = memref.load %last[%c0] : memref<4xf32>
    memref.store %x, %g[%c0] : memref<?xf32>
// ----- CHOSEN
%one = memref.alloc() : memref<4xf32>
    %other = memref.alloc() : memref<4xf32>
    %is = arith.cmpi slt, %n, %c1 : index
    %either = arith.select %is, %one, %other : memref<4xf32>
    memref.store %f, %either[%c0] : memref<4xf32>
    memref.dealloc %either : memref<4xf32>
// ----- FREED_IN_A_LOOP
scf.for %i = %c0 to %n step %c1 {
  %own = memref.alloc() : memref<4xf32>
  memref.store %f, %own[%c1] : memref<4xf32>
  memref.dealloc %own : memref<4xf32>
}
// ----- KERNEL
gpu.module @m {
  gpu.func @k(%a: memref<16x16xf32>, %n: index) kernel {
    %i = gpu.thread_id x
    %t = memref.alloc() : {tile}
    {lines}
    gpu.return
  }
}
// ----- ALLOCA_IN_A_LOOP
scf.for %i = %c0 to %n step %c1 {
  %own = memref.alloca() : memref<2048xf32, #gpu.address_space<private>>
  memref.store %f, %own[%c1] : memref<2048xf32, #gpu.address_space<private>>
}
// ----- PRIVATE_KERNEL
gpu.module @m {{
  gpu.func @k(%g: memref<?xf32>, %n: index, %f: f32) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    {0}
    gpu.return
  }}
}}
