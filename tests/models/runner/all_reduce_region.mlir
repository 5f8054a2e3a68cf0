// A reduction that is spelled as a region.
// CHECK: rank = 1 offset = 0 sizes = [2] strides = [1] data =
// CHECK-NEXT: [7.25,  -2.25]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %in = memref.alloc() : memref<2x3xf32>
  %out = memref.alloc() : memref<2xf32>
  %in_any = memref.cast %in : memref<2x3xf32> to memref<*xf32>
  %out_any = memref.cast %out : memref<2xf32> to memref<*xf32>
  gpu.host_register %in_any : memref<*xf32>
  gpu.host_register %out_any : memref<*xf32>
  %v00 = arith.constant 1.5 : f32
  memref.store %v00, %in[%c0, %c0] : memref<2x3xf32>
  %v01 = arith.constant -2.25 : f32
  memref.store %v01, %in[%c0, %c1] : memref<2x3xf32>
  %v02 = arith.constant 8.0 : f32
  memref.store %v02, %in[%c0, %c2] : memref<2x3xf32>
  %v10 = arith.constant 0.5 : f32
  memref.store %v10, %in[%c1, %c0] : memref<2x3xf32>
  %v11 = arith.constant 0.25 : f32
  memref.store %v11, %in[%c1, %c1] : memref<2x3xf32>
  %v12 = arith.constant -3.0 : f32
  memref.store %v12, %in[%c1, %c2] : memref<2x3xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c3, %sy = %c1, %sz = %c1) {
    %mine = memref.load %in[%bx, %tx] : memref<2x3xf32>
    %all = gpu.all_reduce %mine uniform {
    ^bb(%left: f32, %right: f32):
      %both = arith.addf %left, %right : f32
      gpu.yield %both : f32
    } : (f32) -> (f32)
    memref.store %all, %out[%bx] : memref<2xf32>
    gpu.terminator
  }
  call @printMemrefF32(%out_any) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
