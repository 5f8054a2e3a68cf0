// Tasks of the async dialect: a copy, two kernels that may run side by side, and their sum.
// CHECK: [21,  42,  63]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 3 : index
  %host = memref.alloc(%n) : memref<?xi32>
  %any = memref.cast %host : memref<?xi32> to memref<*xi32>
  gpu.host_register %any : memref<*xi32>
  scf.for %i = %c0 to %n step %c1 {
    %next = arith.addi %i, %c1 : index
    %number = arith.index_cast %next : index to i32
    memref.store %number, %host[%i] : memref<?xi32>
  }
  %copied, %source = async.execute () -> !async.value<memref<?xi32>> {
    %d = gpu.alloc(%n) : memref<?xi32>
    gpu.memcpy %d, %host : memref<?xi32>, memref<?xi32>
    async.yield %d : memref<?xi32>
  }
  %by4, %first = async.execute [%copied] (%source as %d: !async.value<memref<?xi32>>)
      -> !async.value<memref<?xi32>> {
    %x = gpu.alloc(%n) : memref<?xi32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
      %four = arith.constant 4 : i32
      %v = memref.load %d[%tx] : memref<?xi32>
      %w = arith.muli %v, %four : i32
      memref.store %w, %x[%tx] : memref<?xi32>
      gpu.terminator
    }
    async.yield %x : memref<?xi32>
  }
  %by17, %second = async.execute [%copied] (%source as %d: !async.value<memref<?xi32>>)
      -> !async.value<memref<?xi32>> {
    %y = gpu.alloc(%n) : memref<?xi32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
      %seventeen = arith.constant 17 : i32
      %v = memref.load %d[%tx] : memref<?xi32>
      %w = arith.muli %v, %seventeen : i32
      memref.store %w, %y[%tx] : memref<?xi32>
      gpu.terminator
    }
    async.yield %y : memref<?xi32>
  }
  %done = async.execute [%by4, %by17] (
      %first as %x: !async.value<memref<?xi32>>, %second as %y: !async.value<memref<?xi32>>) {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
      %v = memref.load %x[%tx] : memref<?xi32>
      %w = memref.load %y[%tx] : memref<?xi32>
      %sum = arith.addi %v, %w : i32
      memref.store %sum, %host[%tx] : memref<?xi32>
      gpu.terminator
    }
    async.yield
  }
  async.await %done : !async.token
  call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
