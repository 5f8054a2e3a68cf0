// A whole warp: values from above, from below, and from one lane.
// CHECK: data =
// CHECK-NEXT: [3,  4,  5,  6
// CHECK: data =
// CHECK-NEXT: [0,  1,  0,  1,  2
// CHECK: data =
// CHECK-NEXT: [9,  9,  9,  9
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %a = memref.alloc() : memref<3x32xi32>
  %any = memref.cast %a : memref<3x32xi32> to memref<*xi32>
  gpu.host_register %any : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %lane = arith.index_cast %tx : index to i32
    %width = arith.constant 32 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %nine = arith.constant 9 : i32
    %down, %p0 = gpu.shuffle down %lane, %three, %width : i32
    %up, %p1 = gpu.shuffle up %lane, %two, %width : i32
    %from, %p2 = gpu.shuffle idx %lane, %nine, %width : i32
    memref.store %down, %a[%c0, %tx] : memref<3x32xi32>
    memref.store %up, %a[%c1, %tx] : memref<3x32xi32>
    memref.store %from, %a[%c2, %tx] : memref<3x32xi32>
    gpu.terminator
  }
  scf.for %i = %c0 to %c1 step %c1 {
    %row0 = memref.subview %a[0, 0] [1, 32] [1, 1] : memref<3x32xi32> to memref<32xi32, strided<[1]>>
    %row1 = memref.subview %a[1, 0] [1, 32] [1, 1] : memref<3x32xi32> to memref<32xi32, strided<[1], offset: 32>>
    %row2 = memref.subview %a[2, 0] [1, 32] [1, 1] : memref<3x32xi32> to memref<32xi32, strided<[1], offset: 64>>
    %u0 = memref.cast %row0 : memref<32xi32, strided<[1]>> to memref<*xi32>
    %u1 = memref.cast %row1 : memref<32xi32, strided<[1], offset: 32>> to memref<*xi32>
    %u2 = memref.cast %row2 : memref<32xi32, strided<[1], offset: 64>> to memref<*xi32>
    func.call @printMemrefI32(%u0) : (memref<*xi32>) -> ()
    func.call @printMemrefI32(%u1) : (memref<*xi32>) -> ()
    func.call @printMemrefI32(%u2) : (memref<*xi32>) -> ()
  }
  return
}
func.func private @printMemrefI32(memref<*xi32>)
