// ----- MODULE
module attributes {gpu.container_module} {
  func.func private @other(memref<4x4xf32>)
  func.func @main(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %x: f32, %i: index) {
    BODY
    return
  }
  gpu.module @m { gpu.func @k(%a: memref<4x4xf32>) kernel { gpu.return } }
}
// ----- GENERIC
linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]
    } outs(%a : memref<4x4xf32>) {
    ^bb0(%o: f32):
      %r = memref.load %b[%i, %i] : memref<4x4xf32>
      linalg.yield %r : f32
    }
// ----- KERNEL
module attributes {gpu.container_module} {
  func.func @host(%a: KIND) {
    %c1 = arith.constant 1 : index
    %x = arith.constant 1.0 : f32
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%x : f32, %a : KIND, %c1 : index)
    return
  }
  gpu.module @m {
    gpu.func @k(%x: f32, %a: KIND, %i: index) workgroup(%s : memref<16xf32, 3>) kernel {
      %v = arith.constant dense<0.0> : vector<4xf32>
      %m = arith.constant dense<true> : vector<4xi1>
      %n = arith.constant dense<1> : vector<4xindex>
      BODY
      gpu.return
    }
  }
}
// ----- STORING
module attributes {gpu.container_module} {
    gpu.module @m { gpu.func @k(%a: {kind}, %v: f32, %k: index) kernel { %bx = gpu.block_id x
      %by = gpu.block_id y
      %tx = gpu.thread_id x
      %size = gpu.block_dim x
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c32 = arith.constant 32 : index
      %base = arith.muli %bx, %size : index
      %n = arith.addi %base, %tx : index
      %given = arith.muli %bx, %k : index
      %m = arith.addi %given, %tx : index
      %last = arith.subi %n, %c4 : index
      %row = arith.divui %n, %c8 : index
      %column = arith.remui %n, %c8 : index
      %in = arith.cmpi slt, %n, %c32 : index
      %out = arith.cmpi slt, %n, %c8 : index

      {body}
      gpu.return } }
    func.func @f(%a: {kind}, %v: f32) {
      %c1 = arith.constant 1 : index
      %g = arith.constant {grid} : index
      %b = arith.constant {block} : index
      gpu.launch_func @m::@k blocks in (%g, %c1, %c1) threads in (%b, %c1, %c1)
        args(%a : {kind}, %v : f32, %b : index)
      return
    } }
// ----- VIEWS
%w = memref.subview %a[4] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 4>>
%y = memref.expand_shape %w [[0, 1]] output_shape [2, 4]
  : memref<8xf32, strided<[1], offset: 4>> into memref<2x4xf32, strided<[4, 1], offset: 4>>
memref.store %x, %y[%i, %i] : memref<2x4xf32, strided<[4, 1], offset: 4>>
// ----- CARRIED
%r = scf.for %j = %i to %i step %i iter_args(%b = %a) -> memref<16xf32> { scf.yield %b : memref<16xf32> }
// ----- METADATA
%c = memref.cast %a : memref<16xf32> to memref<?xf32>
%w, %o, %size, %t = memref.extract_strided_metadata %c : memref<?xf32> -> memref<f32>, index, index, index
// ----- FRAGMENT
%c = gpu.subgroup_mma_load_matrix %a[%i] {leadDimension = 16 : index}
  : memref<16xf32> -> !gpu.mma_matrix<16x16xf32, "COp">
// ----- REINTERPRETED
%c = memref.reinterpret_cast %a to offset: [0], sizes: [32], strides: [1] : memref<16xf32> to memref<32xf32>
// ----- TMA_STORE
%t = memref.alloc() : memref<64x32xf16, 3>
nvgpu.tma.async.store %t to %a[%i, %i] : memref<64x32xf16, 3> -> KIND
// ----- SCATTER
vector.scatter %a[%i] [%n], %m, %v : memref<16xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>
