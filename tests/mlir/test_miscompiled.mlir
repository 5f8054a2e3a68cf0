// ----- WHILE
func.func @main() -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c40 = arith.constant 40 : index
  %r:3 = scf.while (%s = %c0) : (index) -> (index, index, index) {
    %go = arith.cmpi slt, %s, %c1 : index
    %v = scf.if %go -> index {
      %n = arith.addi %s, %c5 : index
      scf.yield %n : index
    } else {
      scf.yield %c40 : index
    }
    scf.condition(%go) %v, %v, %s : index, index, index
  } do {
  ^bb0(%f: index, %g: index, %o: index):
    scf.yield %g : index
  }
  return %r#2 : index
}
// ----- QUOTIENTS
func.func @main(%x: index, %y: index) -> (index, index, index) {
  %q = index.ceildivs %x, %y
  %r = affine.apply affine_map<(a) -> (a ceildiv 7)>(%x)
  %s = affine.max affine_map<(a) -> ((a + 1) ceildiv 7, a)>(%x)
  return %q, %r, %s : index, index, index
}
// ----- MASKED
func.func @main(%n: index, %x: i32, %y: i32) -> (i32, i32) {
  %v = vector.broadcast %x : i32 to vector<4xi32>
  %a = vector.broadcast %y : i32 to vector<4xi32>
  %m = vector.create_mask %n : vector<4xi1>
  %r = vector.mask %m { vector.multi_reduction <add>, %v, %a [] : vector<4xi32> to vector<4xi32> } : vector<4xi1> -> vector<4xi32>
  %inside = vector.extract %r[1] : i32 from vector<4xi32>
  %outside = vector.extract %r[2] : i32 from vector<4xi32>
  return %inside, %outside : i32, i32
}
// ----- AFFINE
func.func @main(%n: index, %a: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to affine_map<()[n] -> (n ceildiv 4)>()[%n] {
    affine.store %zero, %a[%i * 4] : memref<?xf32>
  }
  return
}
// ----- PASSES
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.consumed}) {
    %f = transform.structured.match ops{["func.func"]} in %m : (!transform.any_op) -> !transform.any_op
    PASS
    transform.yield
  }
}
// ----- TRIPS_BELOW_THE_BUFFER
// https://github.com/llvm/llvm-project/issues/218120
func.func @main(%m: memref<8xi32>) {
  affine.for %j = 0 to 6 {
    %v = affine.load %m[%j] : memref<8xi32>
    %w = arith.addi %v, %v : i32
    affine.store %w, %m[%j] : memref<8xi32>
  }
  return
}
// ----- STRIDE_OF_TWO
// https://github.com/llvm/llvm-project/pull/196973
func.func @main(%m: memref<8xi32>) {
  affine.for %j = 0 to 4 {
    %v = affine.load %m[%j * 2] : memref<8xi32>
    %w = arith.addi %v, %v : i32
    affine.store %w, %m[%j * 2] : memref<8xi32>
  }
  return
}
// ----- STEP_OF_TWO
// https://github.com/llvm/llvm-project/issues/225247
func.func @main(%m: memref<8xi32>) {
  affine.for %j = 0 to 8 step 2 {
    %v = affine.load %m[%j] : memref<8xi32>
    %w = arith.addi %v, %v : i32
    affine.store %w, %m[%j] : memref<8xi32>
  }
  return
}
