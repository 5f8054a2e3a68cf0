// One thread fetches two tiles of a matrix by TMA, the block waits at a barrier.
// CHECK: data =
// CHECK-NEXT: {{\[\[}}272,   273,   274,   275,   276,   277,   278,   279,   280,   281,   282,   283,   284,   285,   286,   287],
// CHECK-NEXT: [304,   305,   306,   307,   308,   309,   310,   311,   312,   313,   314,   315,   316,   317,   318,   319],
// CHECK-NEXT: [336,   337,   338,   339,   340,   341,   342,   343,   344,   345,   346,   347,   348,   349,   350,   351],
// CHECK-NEXT: [368,   369,   370,   371,   372,   373,   374,   375,   376,   377,   378,   379,   380,   381,   382,   383],
// CHECK-NEXT: [400,   401,   402,   403,   404,   405,   406,   407,   408,   409,   410,   411,   412,   413,   414,   415],
// CHECK-NEXT: [432,   433,   434,   435,   436,   437,   438,   439,   440,   441,   442,   443,   444,   445,   446,   447],
// CHECK-NEXT: [464,   465,   466,   467,   468,   469,   470,   471,   472,   473,   474,   475,   476,   477,   478,   479],
// CHECK-NEXT: [496,   497,   498,   499,   500,   501,   502,   503,   504,   505,   506,   507,   508,   509,   510,   511]]
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 1>
!left_map = !nvgpu.tensormap.descriptor<tensor = memref<8x16xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
memref.global "private" @tile : memref<8x16xf32, 3> {alignment = 128 : i64}
func.func private @printMemrefF32(memref<*xf32>)
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %a = memref.alloc() : memref<16x32xf32>
  %out = memref.alloc() : memref<8x16xf32>
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c32 step %c1 {
      %r = arith.muli %i, %c32 : index
      %s = arith.addi %r, %j : index
      %n = arith.index_cast %s : index to i32
      %v = arith.sitofp %n : i32 to f32
      memref.store %v, %a[%i, %j] : memref<16x32xf32>
    }
  }
  %t0 = gpu.wait async
  %da, %t1 = gpu.alloc async [%t0] () : memref<16x32xf32>
  %dout, %t2 = gpu.alloc async [%t1] () : memref<8x16xf32>
  %t3 = gpu.memcpy async [%t2] %da, %a : memref<16x32xf32>, memref<16x32xf32>
  %any = memref.cast %da : memref<16x32xf32> to memref<*xf32>
  %map = nvgpu.tma.create.descriptor %any box[%c8, %c16] : memref<*xf32> -> !left_map
  gpu.wait [%t3]
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %bytes = arith.constant 512 : index
    %ticks = arith.constant 10000000 : index
    %phase = arith.constant 0 : i1
    %tile = memref.get_global @tile : memref<8x16xf32, 3>
    %barrier = nvgpu.mbarrier.create -> !barrier
    %first = arith.cmpi eq, %tx, %c0 : index
    nvgpu.mbarrier.init %barrier[%c0], %c1 : !barrier
    gpu.barrier
    scf.if %first {
      nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %bytes : !barrier
      nvgpu.tma.async.load %map[%c16, %c8], %barrier[%c0] to %tile : !left_map, !barrier -> memref<8x16xf32, 3>
    }
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %phase, %ticks : !barrier
    scf.for %k = %tx to %c64 step %c64 {
      %row = arith.divui %k, %c8 : index
      %column = arith.remui %k, %c8 : index
      %x = memref.load %tile[%row, %column] : memref<8x16xf32, 3>
      memref.store %x, %dout[%row, %column] : memref<8x16xf32>
      %right = arith.addi %column, %c8 : index
      %y = memref.load %tile[%row, %right] : memref<8x16xf32, 3>
      memref.store %y, %dout[%row, %right] : memref<8x16xf32>
    }
    gpu.terminator
  }
  gpu.memcpy %out, %dout : memref<8x16xf32>, memref<8x16xf32>
  gpu.dealloc %da : memref<16x32xf32>
  gpu.dealloc %dout : memref<8x16xf32>
  %printed = memref.cast %out : memref<8x16xf32> to memref<*xf32>
  call @printMemrefF32(%printed) : (memref<*xf32>) -> ()
  return
}
