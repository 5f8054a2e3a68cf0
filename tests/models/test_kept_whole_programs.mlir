// ----- STEPS
// x + n times the constant, as loops: the number of steps is an argument
func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %weight = arith.constant dense_resource<weight> : tensor<4xf32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> tensor<4xf32> {
    %more = arith.addf %sum, %weight : tensor<4xf32>
    scf.yield %more : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

{-#
  dialect_resources: { builtin: { weight: "0x04000000DATA" } }
#-}
// ----- PRINTED
// prints, calls functions of the C library, and asserts: what the machine code finds by its name
func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c4 = arith.constant 4 : index
  %is_few = arith.cmpi ult, %n, %c4 : index
  cf.assert %is_few, "n is at most 3"
  %first = tensor.extract %x[%n] : tensor<4xf32>
  vector.print %first : f32
  %y = math.erf %x : tensor<4xf32>
  %z = math.tan %y : tensor<4xf32>
  return %z : tensor<4xf32>
}
// ----- WRITTEN
// adds x to a global, which keeps its numbers from call to call
memref.global "private" @sum : memref<4xf32> = dense_resource<sum>
func.func @main(%x: memref<4xf32>) -> memref<4xf32> {
  %sum = memref.get_global @sum : memref<4xf32>
  linalg.add ins(%sum, %x : memref<4xf32>, memref<4xf32>) outs(%sum : memref<4xf32>)
  %copy = memref.alloc() : memref<4xf32>
  memref.copy %sum, %copy : memref<4xf32> to memref<4xf32>
  return %copy : memref<4xf32>
}

{-#
  dialect_resources: { builtin: { sum: "0x04000000DATA" } }
#-}
