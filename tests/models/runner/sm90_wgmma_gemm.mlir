// A warpgroup multiplies 64x128 by 128x128 halves: TMA fetches two stages of 64 columns, wgmma adds both in f32.
// CHECK: right:
// CHECK-NEXT: 8192
// CHECK-NEXT: wrong:
// CHECK-NEXT: 0
// CHECK-NEXT: 776
!barriers = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!left_map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!right_map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!left = memref<64x64xf16, 3>
!right = memref<64x128xf16, 3>
!sum = !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
memref.global "private" @dynamic : memref<0xf16, 3> {alignment = 16 : i64}
memref.global "private" @result : memref<0xf32, 3> {alignment = 16 : i64}
func.func @main() {
  %bytes = arith.constant 49152 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c7 = arith.constant 7 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<64x128xf16>
  %b = memref.alloc() : memref<128x128xf16>
  %d = memref.alloc() : memref<64x128xf32>
  %expected = memref.alloc() : memref<64x128xf32>
  scf.for %i = %c0 to %c128 step %c1 {
    scf.for %j = %c0 to %c128 step %c1 {
      %i3 = arith.muli %i, %c3 : index
      %s = arith.addi %i3, %j : index
      %m = arith.remui %s, %c7 : index
      %n = arith.index_cast %m : index to i32
      %v = arith.sitofp %n : i32 to f16
      memref.store %v, %b[%i, %j] : memref<128x128xf16>
    }
  }
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c128 step %c1 {
      %j3 = arith.muli %j, %c3 : index
      %s = arith.addi %j3, %i : index
      %m = arith.remui %s, %c5 : index
      %n = arith.index_cast %m : index to i32
      %v = arith.sitofp %n : i32 to f16
      memref.store %v, %a[%i, %j] : memref<64x128xf16>
      memref.store %zero, %expected[%i, %j] : memref<64x128xf32>
    }
  }
  %t0 = gpu.wait async
  %da, %t1 = gpu.alloc async [%t0] () : memref<64x128xf16>
  %db, %t2 = gpu.alloc async [%t1] () : memref<128x128xf16>
  %dd, %t3 = gpu.alloc async [%t2] () : memref<64x128xf32>
  %t4 = gpu.memcpy async [%t3] %da, %a : memref<64x128xf16>, memref<64x128xf16>
  %t5 = gpu.memcpy async [%t4] %db, %b : memref<128x128xf16>, memref<128x128xf16>
  %any_a = memref.cast %da : memref<64x128xf16> to memref<*xf16>
  %any_b = memref.cast %db : memref<128x128xf16> to memref<*xf16>
  %map_a = nvgpu.tma.create.descriptor %any_a box[%c64, %c64] : memref<*xf16> -> !left_map
  %map_b = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xf16> -> !right_map
  %t6 = gpu.launch async [%t5] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1)
             dynamic_shared_memory_size %bytes {
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %k4 = arith.constant 4 : index
    %k32 = arith.constant 32 : index
    %columns = arith.constant 64 : index
    %rows = arith.constant 64 : index
    %fetched = arith.constant 24576 : index
    %left_bytes = arith.constant 8192 : index
    %right_bytes = arith.constant 16384 : index
    %right_start = arith.constant 16384 : index
    %ticks = arith.constant 10000000 : index
    %phase = arith.constant 0 : i1
    %shared = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %base = memref.get_global @dynamic : memref<0xf16, 3>
    %lefts = memref.reinterpret_cast %base to offset: [0], sizes: [2, 64, 64], strides: [4096, 64, 1] : memref<0xf16, 3> to memref<2x64x64xf16, 3>
    %rights = memref.reinterpret_cast %base to offset: [8192], sizes: [2, 64, 128], strides: [8192, 128, 1] : memref<0xf16, 3> to memref<2x64x128xf16, strided<[8192, 128, 1], offset: 8192>, 3>
    %barriers = nvgpu.mbarrier.create -> !barriers
    %first = arith.cmpi eq, %tx, %k0 : index
    nvgpu.mbarrier.init %barriers[%k0], %k1, predicate = %first : !barriers
    nvgpu.mbarrier.init %barriers[%k1], %k1, predicate = %first : !barriers
    nvgpu.tma.prefetch.descriptor %map_a : !left_map
    nvgpu.tma.prefetch.descriptor %map_b : !right_map
    gpu.barrier
    scf.if %first {
      scf.for %stage = %k0 to %k2 step %k1 {
        %left_at = arith.muli %stage, %left_bytes : index
        %skipped = arith.muli %stage, %right_bytes : index
        %right_at = arith.addi %right_start, %skipped : index
        %half_at = arith.addi %right_at, %left_bytes : index
        %k = arith.muli %stage, %columns : index
        %l = memref.view %shared[%left_at][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64x64xf16, #gpu.address_space<workgroup>>
        %r0 = memref.view %shared[%right_at][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64x64xf16, #gpu.address_space<workgroup>>
        %r1 = memref.view %shared[%half_at][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64x64xf16, #gpu.address_space<workgroup>>
        nvgpu.mbarrier.arrive.expect_tx %barriers[%stage], %fetched : !barriers
        nvgpu.tma.async.load %map_a[%k, %k0], %barriers[%stage] to %l : !left_map, !barriers -> memref<64x64xf16, #gpu.address_space<workgroup>>
        nvgpu.tma.async.load %map_b[%k0, %k], %barriers[%stage] to %r0 : !right_map, !barriers -> memref<64x64xf16, #gpu.address_space<workgroup>>
        nvgpu.tma.async.load %map_b[%columns, %k], %barriers[%stage] to %r1 : !right_map, !barriers -> memref<64x64xf16, #gpu.address_space<workgroup>>
      }
    }
    %none = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x128xf32>>
    %sum = scf.for %stage = %k0 to %k2 step %k1 iter_args(%before = %none) -> (!sum) {
      nvgpu.mbarrier.try_wait.parity %barriers[%stage], %phase, %ticks : !barriers
      %l = memref.subview %lefts[%stage, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, 3> to memref<64x64xf16, strided<[64, 1], offset: ?>, 3>
      %r = memref.subview %rights[%stage, 0, 0] [1, 64, 128] [1, 1, 1] : memref<2x64x128xf16, strided<[8192, 128, 1], offset: 8192>, 3> to memref<64x128xf16, strided<[128, 1], offset: ?>, 3>
      %dl = nvgpu.warpgroup.generate.descriptor %l, %map_a : memref<64x64xf16, strided<[64, 1], offset: ?>, 3>, !left_map -> !nvgpu.warpgroup.descriptor<tensor = !left>
      %dr = nvgpu.warpgroup.generate.descriptor %r, %map_b : memref<64x128xf16, strided<[128, 1], offset: ?>, 3>, !right_map -> !nvgpu.warpgroup.descriptor<tensor = !right>
      %after = nvgpu.warpgroup.mma %dl, %dr, %before {transposeB} : <tensor = !left>, <tensor = !right>, <fragmented = vector<64x128xf32>> -> <fragmented = vector<64x128xf32>>
      scf.yield %after : !sum
    }
    nvvm.wgmma.wait.group.sync.aligned 0
    gpu.barrier
    %empty = memref.get_global @result : memref<0xf32, 3>
    %tile = memref.reinterpret_cast %empty to offset: [0], sizes: [64, 128], strides: [128, 1] : memref<0xf32, 3> to memref<64x128xf32, 3>
    nvgpu.warpgroup.mma.store %sum, %tile : <fragmented = vector<64x128xf32>> to memref<64x128xf32, 3>
    gpu.barrier
    %warp = arith.divui %tx, %k32 : index
    %lane = arith.remui %tx, %k32 : index
    scf.for %row = %warp to %rows step %k4 {
      %column = arith.muli %lane, %k4 : index
      %x = vector.load %tile[%row, %column] : memref<64x128xf32, 3>, vector<4xf32>
      vector.store %x, %dd[%row, %column] : memref<64x128xf32>, vector<4xf32>
    }
    gpu.terminator
  }
  %t7 = gpu.memcpy async [%t6] %d, %dd : memref<64x128xf32>, memref<64x128xf32>
  %t8 = gpu.dealloc async [%t7] %da : memref<64x128xf16>
  %t9 = gpu.dealloc async [%t8] %db : memref<128x128xf16>
  %t10 = gpu.dealloc async [%t9] %dd : memref<64x128xf32>
  gpu.wait [%t10]
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c128 step %c1 {
      scf.for %k = %c0 to %c128 step %c1 {
        %x = memref.load %a[%i, %k] : memref<64x128xf16>
        %y = memref.load %b[%k, %j] : memref<128x128xf16>
        %xf = arith.extf %x : f16 to f32
        %yf = arith.extf %y : f16 to f32
        %p = arith.mulf %xf, %yf : f32
        %s = memref.load %expected[%i, %j] : memref<64x128xf32>
        %n = arith.addf %s, %p : f32
        memref.store %n, %expected[%i, %j] : memref<64x128xf32>
      }
    }
  }
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %right:2 = scf.for %i = %c0 to %c64 step %c1 iter_args(%p = %i0, %q = %i0) -> (i32, i32) {
    %row:2 = scf.for %j = %c0 to %c128 step %c1 iter_args(%u = %p, %w = %q) -> (i32, i32) {
      %x = memref.load %d[%i, %j] : memref<64x128xf32>
      %y = memref.load %expected[%i, %j] : memref<64x128xf32>
      %same = arith.cmpf oeq, %x, %y : f32
      %more = arith.select %same, %i1, %i0 : i32
      %less = arith.subi %i1, %more : i32
      %un = arith.addi %u, %more : i32
      %wn = arith.addi %w, %less : i32
      scf.yield %un, %wn : i32, i32
    }
    scf.yield %row#0, %row#1 : i32, i32
  }
  vector.print str "right:\0A"
  vector.print %right#0 : i32
  vector.print str "wrong:\0A"
  vector.print %right#1 : i32
  %some = memref.load %d[%c5, %c7] : memref<64x128xf32>
  vector.print %some : f32
  return
}
