// ----- TENSORS
func.func @main(%x: tensor<4x6xf32>, %y: tensor<6x4xf32>, %n: index) -> (tensor<4x4xf32>, tensor<2x?xf32>, tensor<7x8xf32>, f32, tensor<24xf32>, tensor<8x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %empty = tensor.empty() : tensor<4x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %product = linalg.matmul ins(%x, %y : tensor<4x6xf32>, tensor<6x4xf32>) outs(%zeros : tensor<4x4xf32>) -> tensor<4x4xf32>
  %part = tensor.extract_slice %x[%c1, 1] [2, %n] [1, 2] : tensor<4x6xf32> to tensor<2x?xf32>
  %doubled = arith.addf %part, %part : tensor<2x?xf32>
  %padded = tensor.pad %x low[1, 1] high[2, %c1] {
  ^bb0(%i: index, %j: index):
    %sum = arith.addi %i, %j : index
    %whole = arith.index_cast %sum : index to i32
    %float = arith.sitofp %whole : i32 to f32
    tensor.yield %float : f32
  } : tensor<4x6xf32> to tensor<7x?xf32>
  %sized = tensor.cast %padded : tensor<7x?xf32> to tensor<7x8xf32>
  %element = tensor.extract %x[%c2, %n] : tensor<4x6xf32>
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %changed = tensor.insert %element into %flat[%n] : tensor<24xf32>
  %both = tensor.concat dim(0) %x, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %product, %doubled, %sized, %element, %changed, %both : tensor<4x4xf32>, tensor<2x?xf32>, tensor<7x8xf32>, f32, tensor<24xf32>, tensor<8x6xf32>
}
// ----- STRUCTURED
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<1x6x6x2xf32>, %k: tensor<3x3x2x3xf32>, %m: tensor<4x6xi32>, %t: tensor<9xf32>)
    -> (tensor<1x2x2x3xf32>, tensor<4xi32>, tensor<4x6xindex>, tensor<6x4xi32>, tensor<4x6xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  %e0 = tensor.empty() : tensor<1x2x2x3xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x2x2x3xf32>) -> tensor<1x2x2x3xf32>
  %conv = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>} ins(%x, %k : tensor<1x6x6x2xf32>, tensor<3x3x2x3xf32>)
    outs(%z0 : tensor<1x2x2x3xf32>) -> tensor<1x2x2x3xf32>
  %e1 = tensor.empty() : tensor<4xi32>
  %z1 = linalg.fill ins(%none : i32) outs(%e1 : tensor<4xi32>) -> tensor<4xi32>
  %sums = linalg.reduce { arith.addi } ins(%m : tensor<4x6xi32>) outs(%z1 : tensor<4xi32>) dimensions = [1]
  %e2 = tensor.empty() : tensor<4x6xindex>
  %numbers = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e2 : tensor<4x6xindex>) {
  ^bb0(%o: index):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %sum = arith.muli %i, %j : index
    linalg.yield %sum : index
  } -> tensor<4x6xindex>
  %e3 = tensor.empty() : tensor<6x4xi32>
  %turned = linalg.transpose ins(%m : tensor<4x6xi32>) outs(%e3 : tensor<6x4xi32>) permutation = [1, 0]
  %e4 = tensor.empty() : tensor<4x6xf32>
  %gathered = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m : tensor<4x6xi32>) outs(%e4 : tensor<4x6xf32>) {
  ^bb0(%at: i32, %o: f32):
    %nine = arith.constant 9 : i32
    %in = arith.remui %at, %nine : i32
    %index = arith.index_castui %in : i32 to index
    %e = tensor.extract %t[%index] : tensor<9xf32>
    linalg.yield %e : f32
  } -> tensor<4x6xf32>
  %e5 = tensor.empty() : tensor<4xf32>
  %low = arith.constant 0xFF800000 : f32
  %z5 = linalg.fill ins(%low : f32) outs(%e5 : tensor<4xf32>) -> tensor<4xf32>
  %largest = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%gathered : tensor<4x6xf32>) outs(%z5 : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %conv, %sums, %numbers, %turned, %gathered, %largest : tensor<1x2x2x3xf32>, tensor<4xi32>, tensor<4x6xindex>, tensor<6x4xi32>, tensor<4x6xf32>, tensor<4xf32>
}
// ----- CONTROL
func.func private @next(%x: f32, %i: index) -> f32 {
  %w = arith.index_cast %i : index to i32
  %f = arith.sitofp %w : i32 to f32
  %y = arith.addf %x, %f : f32
  return %y : f32
}
func.func @main(%a: memref<8x4xf32>, %n: index) -> (f32, f32, i32, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.parallel (%i, %j) = (%c0, %c0) to (%c8, %c4) step (%c1, %c2) init (%zero) -> f32 {
    %x = memref.load %a[%i, %j] : memref<8x4xf32>
    scf.reduce(%x : f32) {
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      scf.reduce.return %s : f32
    }
  }
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%x = %sum) -> f32 {
    %y = func.call @next(%x, %i) : (f32, index) -> f32
    scf.yield %y : f32
  }
  affine.for %i = 0 to 8 step 3 {
    affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%i) {
      %x = affine.load %a[%i, symbol(%c1) + 1] : memref<8x4xf32>
      affine.store %x, %a[%i - 3, 0] : memref<8x4xf32>
    }
  }
  scf.forall (%i) = (0) to (4) step (2) {
    memref.store %t, %a[%i, %c2] : memref<8x4xf32>
  }
  %k = scf.index_switch %n -> i32
  case 3 {
    %r = arith.constant 30 : i32
    scf.yield %r : i32
  }
  default {
    %r = arith.constant 1 : i32
    scf.yield %r : i32
  }
  cf.br ^loop(%c0 : index)
^loop(%i: index):
  %is_less = arith.cmpi ult, %i, %n : index
  %i2 = arith.addi %i, %c2 : index
  cf.cond_br %is_less, ^loop(%i2 : index), ^end(%i : index)
^end(%last: index):
  return %sum, %t, %k, %last : f32, f32, i32, index
}
// ----- VECTORS
func.func @main(%t: tensor<4x8xf32>, %a: memref<4x8xf32>, %n: index) -> (tensor<4x8xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %all = vector.transfer_read %t[%c1, %c2], %zero {in_bounds = [false, false]} : tensor<4x8xf32>, vector<4x8xf32>
  %mask = vector.create_mask %c2, %n : vector<4x8xi1>
  %some = vector.mask %mask { vector.transfer_read %a[%c0, %c0], %zero {in_bounds = [true, true]} : memref<4x8xf32>, vector<4x8xf32> } : vector<4x8xi1> -> vector<4x8xf32>
  %sum = arith.addf %all, %some : vector<4x8xf32>
  %written = vector.transfer_write %sum, %t[%c0, %c0] {in_bounds = [true, true]} : vector<4x8xf32>, tensor<4x8xf32>
  %start = arith.constant dense<1.0> : vector<8xf32>
  %columns = vector.multi_reduction <add>, %sum, %start [0] : vector<4x8xf32> to vector<8xf32>
  %one = arith.constant dense<2.0> : vector<4x2xf32>
  %other = arith.constant dense<3.0> : vector<2x8xf32>
  %iterations = vector.create_mask %c2, %n, %c1 : vector<4x8x2xi1>
  %product = vector.mask %iterations { vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>,
    affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"],
    kind = #vector.kind<add>} %one, %other, %sum : vector<4x2xf32>, vector<2x8xf32> into vector<4x8xf32> } : vector<4x8x2xi1> -> vector<4x8xf32>
  vector.transfer_write %product, %a[%c0, %c0] {in_bounds = [true, true]} : vector<4x8xf32>, memref<4x8xf32>
  %total = vector.reduction <add>, %columns : vector<8xf32> into f32
  vector.print %columns : vector<8xf32>
  return %written, %total : tensor<4x8xf32>, f32
}
// ----- KERNELS
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @add(%a: memref<64xf32>, %x: f32) kernel {
      %i = gpu.global_id x
      %v = memref.load %a[%i] : memref<64xf32>
      %w = arith.addf %v, %x : f32
      memref.store %w, %a[%i] : memref<64xf32>
      gpu.return
    }
  }
  func.func @main(%a: memref<64xf32>, %b: memref<64xf32>, %x: f32) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %d = gpu.alloc () : memref<64xf32>
    gpu.memcpy %d, %a : memref<64xf32>, memref<64xf32>
    gpu.launch_func @m::@add blocks in (%c2, %c1, %c1) threads in (%c32, %c1, %c1) args(%d : memref<64xf32>, %x : f32)
    gpu.memcpy %a, %d : memref<64xf32>, memref<64xf32>
    gpu.dealloc %d : memref<64xf32>
    gpu.launch blocks(%p, %q, %r) in (%gp = %c2, %gq = %c1, %gr = %c1) threads(%t, %u, %v) in (%bt = %c32, %bu = %c1, %bv = %c1)
        workgroup(%shared : memref<32xf32, #gpu.address_space<workgroup>>) {
      %first = arith.muli %p, %bt : index
      %i = arith.addi %first, %t : index
      %e = memref.load %a[%i] : memref<64xf32>
      memref.store %e, %shared[%t] : memref<32xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %last = arith.constant 31 : index
      %opposite = arith.subi %last, %t : index
      %o = memref.load %shared[%opposite] : memref<32xf32, #gpu.address_space<workgroup>>
      memref.store %o, %b[%i] : memref<64xf32>
      gpu.terminator
    }
    return
  }
}
// ----- ENDLESS
func.func @main(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0) -> index {
    %y = arith.addi %x, %i : index
    scf.yield %y : index
  }
  return %r : index
}
// ----- OUTSIDE
func.func @main(%t: tensor<4xf32>, %i: index) -> f32 {
  %x = tensor.extract %t[%i] : tensor<4xf32>
  return %x : f32
}
// ----- RESOURCES
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = arith.constant dense_resource<weights> : tensor<2x2xf32>
  %r = arith.addf %x, %w : tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}
{-#
  dialect_resources: {
    builtin: {
      weights: "0x080000000000803F0000004000004040000080C0"
    }
  }
#-}
