// ----- LOOP
func.func @main(%m: memref<8x8xf32>, %one: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    scf.parallel (%j, %k) = (%c0, %c1) to (%c8, %c8) step (%c1, %c1) {
      gpu.launch blocks(%a, %b, %c) in (%u = %c1, %v = %c1, %w = %c1) threads(%d, %e, %f) in (%x = %c1, %y = %c1, %z = %c1) {
        memref.store %one, %m[%i, %j] : memref<8x8xf32>
        gpu.terminator
      }
      scf.reduce
    }
    scf.reduce
  }
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    memref.store %one, %m[%i, %i] : memref<8x8xf32>
    scf.reduce
  }
  return
}
// ----- SUM
func.func @f(%a: memref<8xf32>) -> f32 {
  %c0 = arith.constant 0 : index %c1 = arith.constant 1 : index %c3 = arith.constant 3 : index %one = arith.constant 1.0 : f32
  %sum = scf.parallel (%i) = (%c0) to (%c3) step (%c1) init (%one) -> f32 {
    %x = memref.load %a[%i] : memref<8xf32>
    scf.reduce(%x : f32) {
    ^bb0(%left: f32, %right: f32):
      %both = arith.addf %left, %right : f32
      scf.reduce.return %both : f32
    }
  }
  return %sum : f32
}
// ----- SQUARES
func.func @f(%x: tensor<9x33xf32>) -> (tensor<33x9xf32>, tensor<9xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x33xf32>
  %t = tensor.empty() : tensor<33x9xf32>
  %s = tensor.empty() : tensor<9xf32>
  %squares = linalg.mul ins(%x, %x : tensor<9x33xf32>, tensor<9x33xf32>) outs(%e : tensor<9x33xf32>)
    -> tensor<9x33xf32>
  %turned = linalg.transpose ins(%squares : tensor<9x33xf32>) outs(%t : tensor<33x9xf32>)
    permutation = [1, 0]
  %start = linalg.fill ins(%zero : f32) outs(%s : tensor<9xf32>) -> tensor<9xf32>
  %sums = linalg.reduce ins(%squares : tensor<9x33xf32>) outs(%start : tensor<9xf32>) dimensions = [1]
    (%in: f32, %sum: f32) { %n = arith.addf %in, %sum : f32 linalg.yield %n : f32 }
  return %turned, %sums : tensor<33x9xf32>, tensor<9xf32>
}
// ----- FILLING
func.func @f(%a: memref<KIND>EXTRA) {
      CONSTANTS ONE
      scf.parallel BOUNDS {
        %x = memref.load %a[INDICES] : memref<KIND>
        %y = arith.addf %x, %one : f32
        memref.store %y, %a[INDICES] : memref<KIND>
        scf.reduce
      }
      return
    }
// ----- INNER
func.func @f(%a: memref<3x3xf32>) { CONSTANTS ONE
scf.parallel (%i) = (%c0) to (%c3) step (%c1) {
  scf.parallel (%j) = (%c0) to (%c3) step (%c1) {
    memref.store %one, %a[%i, %j] : memref<3x3xf32>
    scf.reduce
  }
  scf.reduce
}
return }
// ----- MATMUL
func.func @f(%a: OF_A, %b: OF_B, %c: OF_C) {
      %zero = arith.constant 0.0 : RESULT
      FILL
      linalg.matmul ins(%a, %b : OF_A, OF_B) outs(%c : OF_C)
      return
    }
// ----- VIEWS
func.func @main(%a: WHOLE, %b: SQUARE, %c: SQUARE, %d: SQUARE, %flag: i1) {
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      BODY
      return
    }
// ----- MAPPED
func.func @f(%a: memref<20x12xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  %c12 = arith.constant 12 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%c20, %c12) step (%c1, %c1) {
    memref.store %zero, %a[%i, %j] : memref<20x12xf32>
    scf.reduce
  } {mapping = [#gpu.loop_dim_map<processor = block_x, map = (d0) -> (d0), bound = (d0) -> (d0)>,
                #gpu.loop_dim_map<processor = thread_x, map = (d0) -> (d0), bound = (d0) -> (d0)>]}
  return
}
// ----- NO_KERNEL
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) { transform.yield }
}
