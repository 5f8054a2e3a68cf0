// Every thread of a three-dimensional block adds its number; every thread gets the sum.
// CHECK: sizes = [3, 4, 2]
// CHECK-SAME: strides = [8, 2, 1] data =
// CHECK-NEXT: [276, 276],
// CHECK: [276, 276]]]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %all = memref.alloc() : memref<3x4x2xf32>
  %dyn = memref.cast %all : memref<3x4x2xf32> to memref<?x?x?xf32>
  %any = memref.cast %dyn : memref<?x?x?xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  %sz = memref.dim %dyn, %c0 : memref<?x?x?xf32>
  %sy = memref.dim %dyn, %c1 : memref<?x?x?xf32>
  %sx = memref.dim %dyn, %c2 : memref<?x?x?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%nx = %sx, %ny = %sy, %nz = %sz) {
    %zy = arith.muli %tz, %ny : index
    %y = arith.addi %zy, %ty : index
    %yx = arith.muli %y, %nx : index
    %id = arith.addi %yx, %tx : index
    %bits = arith.index_cast %id : index to i32
    %mine = arith.sitofp %bits : i32 to f32
    %sum = gpu.all_reduce add %mine uniform {} : (f32) -> (f32)
    memref.store %sum, %dyn[%tz, %ty, %tx] : memref<?x?x?xf32>
    gpu.terminator
  }
  call @printMemrefF32(%any) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
