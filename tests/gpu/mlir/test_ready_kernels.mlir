// ----- DYNAMIC
%n = memref.dim %d, %c0 : memref<?xf32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %x = memref.load %d[%bx] : memref<?xf32>
      %y = arith.addf %x, %x : f32
      memref.store %y, %d[%bx] : memref<?xf32>
      gpu.terminator
    }
// ----- PROGRAM
func.func @f(%a: {a}, %b: {b}, %c: {c}, %d: memref<?xf32>, %e: memref<8xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%c : {c})
    linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c})
    {surrounding}
    return
  }
