#map = affine_map<(d0) -> (d0 * 64)>
module {
  func.func @f(%arg0: memref<64x192xf16>, %arg1: memref<192x128xf16>, %arg2: memref<64x128xf16>) {
    %cst = arith.constant 0.000000e+00 : f32
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %cast = memref.cast %arg0 : memref<64x192xf16> to memref<*xf16>
    %c64 = arith.constant 64 : index
    %c64_0 = arith.constant 64 : index
    %0 = nvgpu.tma.create.descriptor %cast box[%c64, %c64_0] : memref<*xf16> -> <tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
    %1 = builtin.unrealized_conversion_cast %0 : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none> to !llvm.ptr
    %cast_1 = memref.cast %arg1 : memref<192x128xf16> to memref<*xf16>
    %c64_2 = arith.constant 64 : index
    %c64_3 = arith.constant 64 : index
    %2 = nvgpu.tma.create.descriptor %cast_1 box[%c64_2, %c64_3] : memref<*xf16> -> <tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
    %3 = builtin.unrealized_conversion_cast %2 : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none> to !llvm.ptr
    %cast_4 = memref.cast %arg2 : memref<64x128xf16> to memref<*xf16>
    %c16 = arith.constant 16 : index
    %c64_5 = arith.constant 64 : index
    %4 = nvgpu.tma.create.descriptor %cast_4 box[%c16, %c64_5] : memref<*xf16> -> <tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
    %5 = builtin.unrealized_conversion_cast %4 : !nvgpu.tensormap.descriptor<tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none> to !llvm.ptr
    %c256 = arith.constant 256 : index
    gpu.launch blocks(%arg3, %arg4, %arg5) in (%arg9 = %c2, %arg10 = %c1, %arg11 = %c1) threads(%arg6, %arg7, %arg8) in (%arg12 = %c256, %arg13 = %c1, %arg14 = %c1) {
      %6 = affine.apply #map(%arg3)
      %thread_id_x = gpu.thread_id x
      %7 = arith.index_cast %thread_id_x : index to i32
      %c5_i32 = arith.constant 5 : i32
      %8 = arith.shrui %7, %c5_i32 : i32
      %c-1_i32 = arith.constant -1 : i32
      %c0_i32 = arith.constant 0 : i32
      %c31_i32 = arith.constant 31 : i32
      %9 = nvvm.shfl.sync idx %c-1_i32, %8, %c0_i32, %c31_i32 : i32 -> i32
      %alloc = memref.alloc() {alignment = 1024 : i64} : memref<49184xi8, #gpu.address_space<workgroup>>
      %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<49184xi8, #gpu.address_space<workgroup>> -> index
      %10 = arith.index_cast %intptr : index to i32
      %c0_i32_6 = arith.constant 0 : i32
      %11 = arith.cmpi eq, %7, %c0_i32_6 : i32
      scf.if %11 {
        %c0_i32_7 = arith.constant 0 : i32
        %c8_i32 = arith.constant 8 : i32
        %13 = arith.muli %c0_i32_7, %c8_i32 : i32
        %14 = arith.addi %13, %10 : i32
        %c49152_i32 = arith.constant 49152 : i32
        %15 = arith.addi %14, %c49152_i32 : i32
        %16 = llvm.inttoptr %15 : i32 to !llvm.ptr<3>
        %c1_i32 = arith.constant 1 : i32
        nvvm.mbarrier.init %16, %c1_i32 : !llvm.ptr<3>, i32
        %c0_i32_8 = arith.constant 0 : i32
        %c8_i32_9 = arith.constant 8 : i32
        %17 = arith.muli %c0_i32_8, %c8_i32_9 : i32
        %18 = arith.addi %17, %10 : i32
        %c49168_i32 = arith.constant 49168 : i32
        %19 = arith.addi %18, %c49168_i32 : i32
        %20 = llvm.inttoptr %19 : i32 to !llvm.ptr<3>
        %c1_i32_10 = arith.constant 1 : i32
        nvvm.mbarrier.init %20, %c1_i32_10 : !llvm.ptr<3>, i32
        %c1_i32_11 = arith.constant 1 : i32
        %c8_i32_12 = arith.constant 8 : i32
        %21 = arith.muli %c1_i32_11, %c8_i32_12 : i32
        %22 = arith.addi %21, %10 : i32
        %c49152_i32_13 = arith.constant 49152 : i32
        %23 = arith.addi %22, %c49152_i32_13 : i32
        %24 = llvm.inttoptr %23 : i32 to !llvm.ptr<3>
        %c1_i32_14 = arith.constant 1 : i32
        nvvm.mbarrier.init %24, %c1_i32_14 : !llvm.ptr<3>, i32
        %c1_i32_15 = arith.constant 1 : i32
        %c8_i32_16 = arith.constant 8 : i32
        %25 = arith.muli %c1_i32_15, %c8_i32_16 : i32
        %26 = arith.addi %25, %10 : i32
        %c49168_i32_17 = arith.constant 49168 : i32
        %27 = arith.addi %26, %c49168_i32_17 : i32
        %28 = llvm.inttoptr %27 : i32 to !llvm.ptr<3>
        %c1_i32_18 = arith.constant 1 : i32
        nvvm.mbarrier.init %28, %c1_i32_18 : !llvm.ptr<3>, i32
        nvvm.fence.mbarrier.init
        nvvm.prefetch tensormap, %1 : !llvm.ptr
        nvvm.prefetch tensormap, %3 : !llvm.ptr
        nvvm.prefetch tensormap, %5 : !llvm.ptr
      }
      gpu.barrier
      %c4_i32 = arith.constant 4 : i32
      %12 = arith.cmpi ult, %9, %c4_i32 : i32
      scf.if %12 {
        %c2_i32 = arith.constant 2 : i32
        %13 = arith.shrui %9, %c2_i32 : i32
        %c127_i32 = arith.constant 127 : i32
        %14 = arith.andi %7, %c127_i32 : i32
        %c0_i32_7 = arith.constant 0 : i32
        %c0_i32_8 = arith.constant 0 : i32
        %15 = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c8_i32 = arith.constant 8 : i32
        %16 = arith.muli %c0_i32_7, %c8_i32 : i32
        %17 = arith.addi %16, %10 : i32
        %c49152_i32 = arith.constant 49152 : i32
        %18 = arith.addi %17, %c49152_i32 : i32
        %19 = llvm.inttoptr %18 : i32 to !llvm.ptr<3>
        %c10000000_i32 = arith.constant 10000000 : i32
        nvvm.mbarrier.try_wait.parity %19, %c0_i32_8, %c10000000_i32 : !llvm.ptr<3>, i32, i32
        %c8192_i32 = arith.constant 8192 : i32
        %20 = arith.muli %13, %c8192_i32 : i32
        %c16384_i32 = arith.constant 16384 : i32
        %21 = arith.muli %c0_i32_7, %c16384_i32 : i32
        %22 = arith.addi %21, %10 : i32
        %23 = arith.addi %22, %20 : i32
        %c4_i32_9 = arith.constant 4 : i32
        %24 = arith.shrui %23, %c4_i32_9 : i32
        %c16383_i32 = arith.constant 16383 : i32
        %25 = arith.andi %24, %c16383_i32 : i32
        %26 = arith.extui %25 : i32 to i64
        %c4611686293305360384_i64 = arith.constant 4611686293305360384 : i64
        %27 = arith.ori %26, %c4611686293305360384_i64 : i64
        %c16384_i32_10 = arith.constant 16384 : i32
        %28 = arith.muli %c0_i32_7, %c16384_i32_10 : i32
        %29 = arith.addi %28, %10 : i32
        %c8192_i32_11 = arith.constant 8192 : i32
        %30 = arith.addi %29, %c8192_i32_11 : i32
        %c4_i32_12 = arith.constant 4 : i32
        %31 = arith.shrui %30, %c4_i32_12 : i32
        %c16383_i32_13 = arith.constant 16383 : i32
        %32 = arith.andi %31, %c16383_i32_13 : i32
        %33 = arith.extui %32 : i32 to i64
        %c4611686293338849280_i64 = arith.constant 4611686293338849280 : i64
        %34 = arith.ori %33, %c4611686293338849280_i64 : i64
        nvvm.wgmma.fence.aligned
        %35 = nvvm.wgmma.mma_async %27, %34, %15, <m = 64, n = 64, k = 16>, D[<f32>, <zero>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c2_i64 = arith.constant 2 : i64
        %36 = arith.addi %27, %c2_i64 : i64
        %c128_i64 = arith.constant 128 : i64
        %37 = arith.addi %34, %c128_i64 : i64
        %38 = nvvm.wgmma.mma_async %36, %37, %35, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c4_i64 = arith.constant 4 : i64
        %39 = arith.addi %27, %c4_i64 : i64
        %c256_i64 = arith.constant 256 : i64
        %40 = arith.addi %34, %c256_i64 : i64
        %41 = nvvm.wgmma.mma_async %39, %40, %38, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c6_i64 = arith.constant 6 : i64
        %42 = arith.addi %27, %c6_i64 : i64
        %c384_i64 = arith.constant 384 : i64
        %43 = arith.addi %34, %c384_i64 : i64
        %44 = nvvm.wgmma.mma_async %42, %43, %41, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        nvvm.wgmma.commit.group.sync.aligned
        %c1_i32 = arith.constant 1 : i32
        %45 = arith.addi %c0_i32_7, %c1_i32 : i32
        %c2_i32_14 = arith.constant 2 : i32
        %46 = arith.cmpi eq, %45, %c2_i32_14 : i32
        %c0_i32_15 = arith.constant 0 : i32
        %47 = arith.select %46, %c0_i32_15, %45 : i32
        %48 = arith.extui %46 : i1 to i32
        %49 = arith.xori %c0_i32_8, %48 : i32
        %c1_i32_16 = arith.constant 1 : i32
        %c3_i32 = arith.constant 3 : i32
        %c1_i32_17 = arith.constant 1 : i32
        %50:4 = scf.for %arg15 = %c1_i32_16 to %c3_i32 step %c1_i32_17 iter_args(%arg16 = %47, %arg17 = %49, %arg18 = %c0_i32_7, %arg19 = %44) -> (i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>)  : i32 {
          %c8_i32_45 = arith.constant 8 : i32
          %239 = arith.muli %arg16, %c8_i32_45 : i32
          %240 = arith.addi %239, %10 : i32
          %c49152_i32_46 = arith.constant 49152 : i32
          %241 = arith.addi %240, %c49152_i32_46 : i32
          %242 = llvm.inttoptr %241 : i32 to !llvm.ptr<3>
          %c10000000_i32_47 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %242, %arg17, %c10000000_i32_47 : !llvm.ptr<3>, i32, i32
          %c8192_i32_48 = arith.constant 8192 : i32
          %243 = arith.muli %13, %c8192_i32_48 : i32
          %c16384_i32_49 = arith.constant 16384 : i32
          %244 = arith.muli %arg16, %c16384_i32_49 : i32
          %245 = arith.addi %244, %10 : i32
          %246 = arith.addi %245, %243 : i32
          %c4_i32_50 = arith.constant 4 : i32
          %247 = arith.shrui %246, %c4_i32_50 : i32
          %c16383_i32_51 = arith.constant 16383 : i32
          %248 = arith.andi %247, %c16383_i32_51 : i32
          %249 = arith.extui %248 : i32 to i64
          %c4611686293305360384_i64_52 = arith.constant 4611686293305360384 : i64
          %250 = arith.ori %249, %c4611686293305360384_i64_52 : i64
          %c16384_i32_53 = arith.constant 16384 : i32
          %251 = arith.muli %arg16, %c16384_i32_53 : i32
          %252 = arith.addi %251, %10 : i32
          %c8192_i32_54 = arith.constant 8192 : i32
          %253 = arith.addi %252, %c8192_i32_54 : i32
          %c4_i32_55 = arith.constant 4 : i32
          %254 = arith.shrui %253, %c4_i32_55 : i32
          %c16383_i32_56 = arith.constant 16383 : i32
          %255 = arith.andi %254, %c16383_i32_56 : i32
          %256 = arith.extui %255 : i32 to i64
          %c4611686293338849280_i64_57 = arith.constant 4611686293338849280 : i64
          %257 = arith.ori %256, %c4611686293338849280_i64_57 : i64
          nvvm.wgmma.fence.aligned
          %258 = nvvm.wgmma.mma_async %250, %257, %arg19, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c2_i64_58 = arith.constant 2 : i64
          %259 = arith.addi %250, %c2_i64_58 : i64
          %c128_i64_59 = arith.constant 128 : i64
          %260 = arith.addi %257, %c128_i64_59 : i64
          %261 = nvvm.wgmma.mma_async %259, %260, %258, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c4_i64_60 = arith.constant 4 : i64
          %262 = arith.addi %250, %c4_i64_60 : i64
          %c256_i64_61 = arith.constant 256 : i64
          %263 = arith.addi %257, %c256_i64_61 : i64
          %264 = nvvm.wgmma.mma_async %262, %263, %261, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c6_i64_62 = arith.constant 6 : i64
          %265 = arith.addi %250, %c6_i64_62 : i64
          %c384_i64_63 = arith.constant 384 : i64
          %266 = arith.addi %257, %c384_i64_63 : i64
          %267 = nvvm.wgmma.mma_async %265, %266, %264, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          nvvm.wgmma.commit.group.sync.aligned
          nvvm.wgmma.wait.group.sync.aligned 1
          %c1_i32_64 = arith.constant 1 : i32
          %268 = arith.cmpi ult, %14, %c1_i32_64 : i32
          scf.if %268 {
            %c8_i32_68 = arith.constant 8 : i32
            %274 = arith.muli %arg18, %c8_i32_68 : i32
            %275 = arith.addi %274, %10 : i32
            %c49168_i32 = arith.constant 49168 : i32
            %276 = arith.addi %275, %c49168_i32 : i32
            %277 = llvm.inttoptr %276 : i32 to !llvm.ptr<3>
            %278 = nvvm.mbarrier.arrive %277 : !llvm.ptr<3> -> i64
          }
          %c1_i32_65 = arith.constant 1 : i32
          %269 = arith.addi %arg16, %c1_i32_65 : i32
          %c2_i32_66 = arith.constant 2 : i32
          %270 = arith.cmpi eq, %269, %c2_i32_66 : i32
          %c0_i32_67 = arith.constant 0 : i32
          %271 = arith.select %270, %c0_i32_67, %269 : i32
          %272 = arith.extui %270 : i1 to i32
          %273 = arith.xori %arg17, %272 : i32
          scf.yield %271, %273, %arg16, %267 : i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        }
        %51 = llvm.extractvalue %50#3[0] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %52 = llvm.extractvalue %50#3[1] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %53 = llvm.extractvalue %50#3[2] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %54 = llvm.extractvalue %50#3[3] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %55 = llvm.extractvalue %50#3[4] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %56 = llvm.extractvalue %50#3[5] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %57 = llvm.extractvalue %50#3[6] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %58 = llvm.extractvalue %50#3[7] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %59 = llvm.extractvalue %50#3[8] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %60 = llvm.extractvalue %50#3[9] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %61 = llvm.extractvalue %50#3[10] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %62 = llvm.extractvalue %50#3[11] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %63 = llvm.extractvalue %50#3[12] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %64 = llvm.extractvalue %50#3[13] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %65 = llvm.extractvalue %50#3[14] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %66 = llvm.extractvalue %50#3[15] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %67 = llvm.extractvalue %50#3[16] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %68 = llvm.extractvalue %50#3[17] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %69 = llvm.extractvalue %50#3[18] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %70 = llvm.extractvalue %50#3[19] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %71 = llvm.extractvalue %50#3[20] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %72 = llvm.extractvalue %50#3[21] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %73 = llvm.extractvalue %50#3[22] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %74 = llvm.extractvalue %50#3[23] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %75 = llvm.extractvalue %50#3[24] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %76 = llvm.extractvalue %50#3[25] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %77 = llvm.extractvalue %50#3[26] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %78 = llvm.extractvalue %50#3[27] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %79 = llvm.extractvalue %50#3[28] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %80 = llvm.extractvalue %50#3[29] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %81 = llvm.extractvalue %50#3[30] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %82 = llvm.extractvalue %50#3[31] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %83 = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31" %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82 : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c0 = arith.constant 0 : index
        %c31_i32_18 = arith.constant 31 : i32
        %84 = arith.andi %14, %c31_i32_18 : i32
        %c32768_i32 = arith.constant 32768 : i32
        %85 = arith.addi %10, %c32768_i32 : i32
        %c4096_i32 = arith.constant 4096 : i32
        %86 = arith.muli %9, %c4096_i32 : i32
        %87 = arith.addi %85, %86 : i32
        %c2_i32_19 = arith.constant 2 : i32
        %88 = arith.shrui %9, %c2_i32_19 : i32
        %c64_i32 = arith.constant 64 : i32
        %89 = arith.muli %88, %c64_i32 : i32
        %c3_i32_20 = arith.constant 3 : i32
        %90 = arith.andi %9, %c3_i32_20 : i32
        %c16_i32 = arith.constant 16 : i32
        %91 = arith.muli %90, %c16_i32 : i32
        %92 = arith.addi %89, %91 : i32
        %93 = arith.index_cast %c0 : index to i32
        %94 = arith.addi %93, %92 : i32
        %95 = arith.index_cast %6 : index to i32
        %c2_i32_21 = arith.constant 2 : i32
        %96 = arith.shrui %84, %c2_i32_21 : i32
        %97 = arith.addi %94, %96 : i32
        %98 = arith.index_cast %97 : i32 to index
        %c3_i32_22 = arith.constant 3 : i32
        %99 = arith.andi %84, %c3_i32_22 : i32
        %c2_i32_23 = arith.constant 2 : i32
        %100 = arith.muli %99, %c2_i32_23 : i32
        %101 = arith.index_cast %100 : i32 to index
        %102 = arith.addi %6, %101 : index
        %103 = llvm.extractvalue %83[0] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %104 = llvm.extractvalue %83[1] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %105 = vector.from_elements %103, %104 : vector<2xf32>
        %106 = arith.truncf %105 : vector<2xf32> to vector<2xf16>
        %107 = vector.bitcast %106 : vector<2xf16> to vector<1xi32>
        %108 = vector.extract %107[0] : i32 from vector<1xi32>
        %109 = llvm.extractvalue %83[2] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %110 = llvm.extractvalue %83[3] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %111 = vector.from_elements %109, %110 : vector<2xf32>
        %c8 = arith.constant 8 : index
        %112 = arith.addi %98, %c8 : index
        %113 = arith.truncf %111 : vector<2xf32> to vector<2xf16>
        %114 = vector.bitcast %113 : vector<2xf16> to vector<1xi32>
        %115 = vector.extract %114[0] : i32 from vector<1xi32>
        %c8_24 = arith.constant 8 : index
        %116 = arith.addi %102, %c8_24 : index
        %117 = llvm.extractvalue %83[4] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %118 = llvm.extractvalue %83[5] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %119 = vector.from_elements %117, %118 : vector<2xf32>
        %120 = arith.truncf %119 : vector<2xf32> to vector<2xf16>
        %121 = vector.bitcast %120 : vector<2xf16> to vector<1xi32>
        %122 = vector.extract %121[0] : i32 from vector<1xi32>
        %c8_25 = arith.constant 8 : index
        %123 = arith.addi %102, %c8_25 : index
        %124 = llvm.extractvalue %83[6] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %125 = llvm.extractvalue %83[7] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %126 = vector.from_elements %124, %125 : vector<2xf32>
        %c8_26 = arith.constant 8 : index
        %127 = arith.addi %98, %c8_26 : index
        %128 = arith.truncf %126 : vector<2xf32> to vector<2xf16>
        %129 = vector.bitcast %128 : vector<2xf16> to vector<1xi32>
        %130 = vector.extract %129[0] : i32 from vector<1xi32>
        %c16_27 = arith.constant 16 : index
        %131 = arith.addi %102, %c16_27 : index
        %132 = llvm.extractvalue %83[8] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %133 = llvm.extractvalue %83[9] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %134 = vector.from_elements %132, %133 : vector<2xf32>
        %135 = arith.truncf %134 : vector<2xf32> to vector<2xf16>
        %136 = vector.bitcast %135 : vector<2xf16> to vector<1xi32>
        %137 = vector.extract %136[0] : i32 from vector<1xi32>
        %c16_28 = arith.constant 16 : index
        %138 = arith.addi %102, %c16_28 : index
        %139 = llvm.extractvalue %83[10] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %140 = llvm.extractvalue %83[11] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %141 = vector.from_elements %139, %140 : vector<2xf32>
        %c8_29 = arith.constant 8 : index
        %142 = arith.addi %98, %c8_29 : index
        %143 = arith.truncf %141 : vector<2xf32> to vector<2xf16>
        %144 = vector.bitcast %143 : vector<2xf16> to vector<1xi32>
        %145 = vector.extract %144[0] : i32 from vector<1xi32>
        %c24 = arith.constant 24 : index
        %146 = arith.addi %102, %c24 : index
        %147 = llvm.extractvalue %83[12] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %148 = llvm.extractvalue %83[13] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %149 = vector.from_elements %147, %148 : vector<2xf32>
        %150 = arith.truncf %149 : vector<2xf32> to vector<2xf16>
        %151 = vector.bitcast %150 : vector<2xf16> to vector<1xi32>
        %152 = vector.extract %151[0] : i32 from vector<1xi32>
        %c24_30 = arith.constant 24 : index
        %153 = arith.addi %102, %c24_30 : index
        %154 = llvm.extractvalue %83[14] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %155 = llvm.extractvalue %83[15] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %156 = vector.from_elements %154, %155 : vector<2xf32>
        %c8_31 = arith.constant 8 : index
        %157 = arith.addi %98, %c8_31 : index
        %158 = arith.truncf %156 : vector<2xf32> to vector<2xf16>
        %159 = vector.bitcast %158 : vector<2xf16> to vector<1xi32>
        %160 = vector.extract %159[0] : i32 from vector<1xi32>
        %c32 = arith.constant 32 : index
        %161 = arith.addi %102, %c32 : index
        %162 = llvm.extractvalue %83[16] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %163 = llvm.extractvalue %83[17] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %164 = vector.from_elements %162, %163 : vector<2xf32>
        %165 = arith.truncf %164 : vector<2xf32> to vector<2xf16>
        %166 = vector.bitcast %165 : vector<2xf16> to vector<1xi32>
        %167 = vector.extract %166[0] : i32 from vector<1xi32>
        %c32_32 = arith.constant 32 : index
        %168 = arith.addi %102, %c32_32 : index
        %169 = llvm.extractvalue %83[18] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %170 = llvm.extractvalue %83[19] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %171 = vector.from_elements %169, %170 : vector<2xf32>
        %c8_33 = arith.constant 8 : index
        %172 = arith.addi %98, %c8_33 : index
        %173 = arith.truncf %171 : vector<2xf32> to vector<2xf16>
        %174 = vector.bitcast %173 : vector<2xf16> to vector<1xi32>
        %175 = vector.extract %174[0] : i32 from vector<1xi32>
        %c40 = arith.constant 40 : index
        %176 = arith.addi %102, %c40 : index
        %177 = llvm.extractvalue %83[20] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %178 = llvm.extractvalue %83[21] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %179 = vector.from_elements %177, %178 : vector<2xf32>
        %180 = arith.truncf %179 : vector<2xf32> to vector<2xf16>
        %181 = vector.bitcast %180 : vector<2xf16> to vector<1xi32>
        %182 = vector.extract %181[0] : i32 from vector<1xi32>
        %c40_34 = arith.constant 40 : index
        %183 = arith.addi %102, %c40_34 : index
        %184 = llvm.extractvalue %83[22] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %185 = llvm.extractvalue %83[23] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %186 = vector.from_elements %184, %185 : vector<2xf32>
        %c8_35 = arith.constant 8 : index
        %187 = arith.addi %98, %c8_35 : index
        %188 = arith.truncf %186 : vector<2xf32> to vector<2xf16>
        %189 = vector.bitcast %188 : vector<2xf16> to vector<1xi32>
        %190 = vector.extract %189[0] : i32 from vector<1xi32>
        %c48 = arith.constant 48 : index
        %191 = arith.addi %102, %c48 : index
        %192 = llvm.extractvalue %83[24] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %193 = llvm.extractvalue %83[25] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %194 = vector.from_elements %192, %193 : vector<2xf32>
        %195 = arith.truncf %194 : vector<2xf32> to vector<2xf16>
        %196 = vector.bitcast %195 : vector<2xf16> to vector<1xi32>
        %197 = vector.extract %196[0] : i32 from vector<1xi32>
        %c48_36 = arith.constant 48 : index
        %198 = arith.addi %102, %c48_36 : index
        %199 = llvm.extractvalue %83[26] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %200 = llvm.extractvalue %83[27] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %201 = vector.from_elements %199, %200 : vector<2xf32>
        %c8_37 = arith.constant 8 : index
        %202 = arith.addi %98, %c8_37 : index
        %203 = arith.truncf %201 : vector<2xf32> to vector<2xf16>
        %204 = vector.bitcast %203 : vector<2xf16> to vector<1xi32>
        %205 = vector.extract %204[0] : i32 from vector<1xi32>
        %c56 = arith.constant 56 : index
        %206 = arith.addi %102, %c56 : index
        %207 = llvm.extractvalue %83[28] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %208 = llvm.extractvalue %83[29] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %209 = vector.from_elements %207, %208 : vector<2xf32>
        %210 = arith.truncf %209 : vector<2xf32> to vector<2xf16>
        %211 = vector.bitcast %210 : vector<2xf16> to vector<1xi32>
        %212 = vector.extract %211[0] : i32 from vector<1xi32>
        %c56_38 = arith.constant 56 : index
        %213 = arith.addi %102, %c56_38 : index
        %214 = llvm.extractvalue %83[30] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %215 = llvm.extractvalue %83[31] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %216 = vector.from_elements %214, %215 : vector<2xf32>
        %c8_39 = arith.constant 8 : index
        %217 = arith.addi %98, %c8_39 : index
        %218 = arith.truncf %216 : vector<2xf32> to vector<2xf16>
        %219 = vector.bitcast %218 : vector<2xf16> to vector<1xi32>
        %220 = vector.extract %219[0] : i32 from vector<1xi32>
        %c15_i32 = arith.constant 15 : i32
        %221 = arith.andi %84, %c15_i32 : i32
        %c128_i32 = arith.constant 128 : i32
        %222 = arith.muli %221, %c128_i32 : i32
        %c4_i32_40 = arith.constant 4 : i32
        %223 = arith.shrui %84, %c4_i32_40 : i32
        %c7_i32 = arith.constant 7 : i32
        %224 = arith.andi %84, %c7_i32 : i32
        %225 = arith.xori %223, %224 : i32
        %226 = arith.addi %87, %222 : i32
        %c4_i32_41 = arith.constant 4 : i32
        %227 = arith.shli %225, %c4_i32_41 : i32
        %228 = arith.addi %226, %227 : i32
        %c0_i32_42 = arith.constant 0 : i32
        %229 = arith.xori %228, %c0_i32_42 : i32
        %230 = llvm.inttoptr %229 : i32 to !llvm.ptr<3>
        nvvm.stmatrix %230, %108, %115, %122, %130 {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : !llvm.ptr<3>, i32, i32, i32, i32
        %c32_i32 = arith.constant 32 : i32
        %231 = arith.xori %228, %c32_i32 : i32
        %232 = llvm.inttoptr %231 : i32 to !llvm.ptr<3>
        nvvm.stmatrix %232, %137, %145, %152, %160 {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : !llvm.ptr<3>, i32, i32, i32, i32
        %c64_i32_43 = arith.constant 64 : i32
        %233 = arith.xori %228, %c64_i32_43 : i32
        %234 = llvm.inttoptr %233 : i32 to !llvm.ptr<3>
        nvvm.stmatrix %234, %167, %175, %182, %190 {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : !llvm.ptr<3>, i32, i32, i32, i32
        %c96_i32 = arith.constant 96 : i32
        %235 = arith.xori %228, %c96_i32 : i32
        %236 = llvm.inttoptr %235 : i32 to !llvm.ptr<3>
        nvvm.stmatrix %236, %197, %205, %212, %220 {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : !llvm.ptr<3>, i32, i32, i32, i32
        nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
        %c-1_i32_44 = arith.constant -1 : i32
        nvvm.bar.warp.sync %c-1_i32_44 : i32
        %237 = nvvm.elect.sync -> i1
        scf.if %237 {
          %239 = llvm.inttoptr %87 : i32 to !llvm.ptr<3>
          nvvm.cp.async.bulk.tensor.global.shared.cta %5, %239, box[%95, %94] : !llvm.ptr, <3>
          nvvm.cp.async.bulk.commit.group
        }
        %238 = nvvm.elect.sync -> i1
        scf.if %238 {
          nvvm.cp.async.bulk.wait_group 0
        }
      } else {
        %c4_i32_7 = arith.constant 4 : i32
        %13 = arith.cmpi eq, %9, %c4_i32_7 : i32
        scf.if %13 {
          %14 = nvvm.elect.sync -> i1
          scf.if %14 {
            %c0_i32_8 = arith.constant 0 : i32
            %c1_i32 = arith.constant 1 : i32
            %c0 = arith.constant 0 : index
            %15 = arith.index_cast %c0 : index to i32
            %16 = arith.index_cast %6 : index to i32
            %c0_i32_9 = arith.constant 0 : i32
            %c3_i32 = arith.constant 3 : i32
            %c1_i32_10 = arith.constant 1 : i32
            %17:2 = scf.for %arg15 = %c0_i32_9 to %c3_i32 step %c1_i32_10 iter_args(%arg16 = %c0_i32_8, %arg17 = %c1_i32) -> (i32, i32)  : i32 {
              %c8_i32 = arith.constant 8 : i32
              %18 = arith.muli %arg16, %c8_i32 : i32
              %19 = arith.addi %18, %10 : i32
              %c49152_i32 = arith.constant 49152 : i32
              %20 = arith.addi %19, %c49152_i32 : i32
              %21 = llvm.inttoptr %20 : i32 to !llvm.ptr<3>
              %c8_i32_11 = arith.constant 8 : i32
              %22 = arith.muli %arg16, %c8_i32_11 : i32
              %23 = arith.addi %22, %10 : i32
              %c49168_i32 = arith.constant 49168 : i32
              %24 = arith.addi %23, %c49168_i32 : i32
              %25 = llvm.inttoptr %24 : i32 to !llvm.ptr<3>
              %c10000000_i32 = arith.constant 10000000 : i32
              nvvm.mbarrier.try_wait.parity %25, %arg17, %c10000000_i32 : !llvm.ptr<3>, i32, i32
              %c16384_i32 = arith.constant 16384 : i32
              nvvm.mbarrier.arrive.expect_tx %21, %c16384_i32 : !llvm.ptr<3>, i32
              %c64_i32 = arith.constant 64 : i32
              %26 = arith.muli %arg15, %c64_i32 : i32
              %c16384_i32_12 = arith.constant 16384 : i32
              %27 = arith.muli %arg16, %c16384_i32_12 : i32
              %28 = arith.addi %27, %10 : i32
              %29 = llvm.inttoptr %28 : i32 to !llvm.ptr<3>
              %30 = llvm.addrspacecast %29 : !llvm.ptr<3> to !llvm.ptr<7>
              nvvm.cp.async.bulk.tensor.shared.cluster.global %30, %1, %21, box[%26, %15] : !llvm.ptr<7>, !llvm.ptr
              %c16384_i32_13 = arith.constant 16384 : i32
              %31 = arith.muli %arg16, %c16384_i32_13 : i32
              %32 = arith.addi %31, %10 : i32
              %c8192_i32 = arith.constant 8192 : i32
              %33 = arith.addi %32, %c8192_i32 : i32
              %34 = llvm.inttoptr %33 : i32 to !llvm.ptr<3>
              %35 = llvm.addrspacecast %34 : !llvm.ptr<3> to !llvm.ptr<7>
              nvvm.cp.async.bulk.tensor.shared.cluster.global %35, %3, %21, box[%16, %26] : !llvm.ptr<7>, !llvm.ptr
              %c1_i32_14 = arith.constant 1 : i32
              %36 = arith.addi %arg16, %c1_i32_14 : i32
              %c2_i32 = arith.constant 2 : i32
              %37 = arith.cmpi eq, %36, %c2_i32 : i32
              %c0_i32_15 = arith.constant 0 : i32
              %38 = arith.select %37, %c0_i32_15, %36 : i32
              %39 = arith.extui %37 : i1 to i32
              %40 = arith.xori %arg17, %39 : i32
              scf.yield %38, %40 : i32, i32
            }
          }
        }
      }
      gpu.terminator
    }
    return
  }
}
