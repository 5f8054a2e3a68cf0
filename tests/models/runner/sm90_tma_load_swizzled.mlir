// TMA writes a tile of 64 halves a row with its 16-byte chunks exchanged: swizzle_128b, which repeats after 8 rows.
// CHECK: bytes of the tile: 2048
// CHECK: data =
// CHECK-NEXT: {{\[\[}}0,   1,   2,   3,   4,   5,   6,   7],
// CHECK-NEXT: [9,   8,   11,   10,   13,   12,   15,   14],
// CHECK-NEXT: [18,   19,   16,   17,   22,   23,   20,   21],
// CHECK-NEXT: [27,   26,   25,   24,   31,   30,   29,   28],
// CHECK-NEXT: [36,   37,   38,   39,   32,   33,   34,   35],
// CHECK-NEXT: [45,   44,   47,   46,   41,   40,   43,   42],
// CHECK-NEXT: [54,   55,   52,   53,   50,   51,   48,   49],
// CHECK-NEXT: [63,   62,   61,   60,   59,   58,   57,   56],
// CHECK-NEXT: [64,   65,   66,   67,   68,   69,   70,   71],
// CHECK-NEXT: [73,   72,   75,   74,   77,   76,   79,   78],
// CHECK-NEXT: [82,   83,   80,   81,   86,   87,   84,   85],
// CHECK-NEXT: [91,   90,   89,   88,   95,   94,   93,   92],
// CHECK-NEXT: [100,   101,   102,   103,   96,   97,   98,   99],
// CHECK-NEXT: [109,   108,   111,   110,   105,   104,   107,   106],
// CHECK-NEXT: [118,   119,   116,   117,   114,   115,   112,   113],
// CHECK-NEXT: [127,   126,   125,   124,   123,   122,   121,   120]]
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 1>
!tile = memref<16x64xf16, 3>
!tile_map = !nvgpu.tensormap.descriptor<tensor = !tile, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
memref.global "private" @tile : !tile
func.func private @printMemrefF16(memref<*xf16>)
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %a = memref.alloc() : memref<16x64xf16>
  %out = memref.alloc() : memref<16x8xf16>
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %r = arith.muli %i, %c64 : index
      %s = arith.addi %r, %j : index
      %chunk = arith.divui %s, %c8 : index
      %n = arith.index_cast %chunk : index to i32
      %v = arith.sitofp %n : i32 to f16
      memref.store %v, %a[%i, %j] : memref<16x64xf16>
    }
  }
  %t0 = gpu.wait async
  %da, %t1 = gpu.alloc async [%t0] () : memref<16x64xf16>
  %dout, %t2 = gpu.alloc async [%t1] () : memref<16x8xf16>
  %t3 = gpu.memcpy async [%t2] %da, %a : memref<16x64xf16>, memref<16x64xf16>
  %any = memref.cast %da : memref<16x64xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %any box[%c16, %c64] : memref<*xf16> -> !tile_map
  %t4 = gpu.launch async [%t3] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %bytes = arith.constant 2048 : index
    %none = arith.constant 0 : index
    %two = arith.constant 2 : index
    %ticks = arith.constant 10000000 : index
    %phase = arith.constant 0 : i1
    %threads = gpu.block_dim x
    %tile = memref.get_global @tile : !tile
    %barrier = nvgpu.mbarrier.create -> !barrier
    %first = arith.cmpi eq, %tx, %c0 : index
    nvgpu.mbarrier.init %barrier[%c0], %threads, predicate = %first : !barrier
    gpu.barrier
    nvgpu.tma.prefetch.descriptor %map : !tile_map
    scf.if %first {
      gpu.printf "bytes of the tile: %d\0A", %bytes : index
      nvgpu.tma.async.load %map[%c0, %c0], %barrier[%c0] to %tile : !tile_map, !barrier -> !tile
      nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %bytes : !barrier
    } else {
      nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %none : !barrier
    }
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %phase, %ticks : !barrier
    scf.for %k = %none to %two step %c1 {
      %half = arith.divui %tx, %c8 : index
      %below = arith.muli %k, %c8 : index
      %row = arith.addi %half, %below : index
      %chunk = arith.remui %tx, %c8 : index
      %column = arith.muli %chunk, %c8 : index
      %x = memref.load %tile[%row, %column] : !tile
      memref.store %x, %dout[%row, %chunk] : memref<16x8xf16>
    }
    gpu.terminator
  }
  %t5 = gpu.memcpy async [%t4] %out, %dout : memref<16x8xf16>, memref<16x8xf16>
  %t6 = gpu.dealloc async [%t5] %da : memref<16x64xf16>
  %t7 = gpu.dealloc async [%t6] %dout : memref<16x8xf16>
  gpu.wait [%t7]
  %printed = memref.cast %out : memref<16x8xf16> to memref<*xf16>
  call @printMemrefF16(%printed) : (memref<*xf16>) -> ()
  return
}
