// Lanes exchange with the lane whose number differs in one bit; where that is not in the block, -1.
// CHECK: [2,  3,  0,  1,  6,  7,  4,  5,  10,  -1,  8]
func.func @main() {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %a = memref.alloc() : memref<11xf32>
  %dyn = memref.cast %a : memref<11xf32> to memref<?xf32>
  %n = memref.dim %dyn, %zero : memref<?xf32>
  %any = memref.cast %dyn : memref<?xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %one, %sz = %one) {
    %lane = arith.index_cast %tx : index to i32
    %mine = arith.sitofp %lane : i32 to f32
    %width = arith.index_cast %sx : index to i32
    %bit = arith.constant 2 : i32
    %other, %is_there = gpu.shuffle xor %mine, %bit, %width : f32
    cf.cond_br %is_there, ^store(%other : f32), ^none
  ^none:
    %minus = arith.constant -1.0 : f32
    cf.br ^store(%minus : f32)
  ^store(%value : f32):
    memref.store %value, %dyn[%tx] : memref<?xf32>
    gpu.terminator
  }
  call @printMemrefF32(%any) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
