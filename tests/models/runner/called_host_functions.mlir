// The launch is in a function with dynamic sizes, called twice from main; sizes by memref.dim.
// CHECK: [2.5,  2.5,  2.5,  2.5,  2.5]
// CHECK: [7,  7,  7,  7,  7]
func.func @store_everywhere(%value: f32, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    memref.store %value, %out[%tx] : memref<?xf32>
    gpu.terminator
  }
  return
}
func.func @main() {
  %first = arith.constant 2.5 : f32
  %second = arith.constant 7.0 : f32
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<5xf32>
  linalg.fill ins(%zero : f32) outs(%a : memref<5xf32>)
  %dyn = memref.cast %a : memref<5xf32> to memref<?xf32>
  %any = memref.cast %dyn : memref<?xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  call @store_everywhere(%first, %dyn) : (f32, memref<?xf32>) -> ()
  call @printMemrefF32(%any) : (memref<*xf32>) -> ()
  call @store_everywhere(%second, %dyn) : (f32, memref<?xf32>) -> ()
  call @printMemrefF32(%any) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
