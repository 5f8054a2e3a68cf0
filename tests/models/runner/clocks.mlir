// A program that measures itself, as upstream's benchmarks do.
// CHECK: {{[0-9.]+ GFLOPS}}
// CHECK-NEXT: 1
func.func private @rtclock() -> f64
func.func private @nanoTime() -> i64
func.func private @printFlops(f64)
func.func private @printI64(i64)
func.func private @printNewline()
func.func @main() {
  %flop = arith.constant 8.0 : f64
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %three = arith.constant 3.0 : f32
  %begin = call @rtclock() : () -> f64
  %from = call @nanoTime() : () -> i64
  %a = memref.alloc() : memref<8xf32>
  linalg.fill ins(%three : f32) outs(%a : memref<8xf32>)
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%tx] : memref<8xf32>
    %y = arith.mulf %x, %x : f32
    memref.store %y, %a[%tx] : memref<8xf32>
    gpu.terminator
  }
  memref.dealloc %a : memref<8xf32>
  %end = call @rtclock() : () -> f64
  %to = call @nanoTime() : () -> i64
  %seconds = arith.subf %end, %begin : f64
  %flops = arith.divf %flop, %seconds : f64
  call @printFlops(%flops) : (f64) -> ()
  %is_later = arith.cmpi sgt, %to, %from : i64
  %one = arith.extui %is_later : i1 to i64
  call @printI64(%one) : (i64) -> ()
  call @printNewline() : () -> ()
  return
}
