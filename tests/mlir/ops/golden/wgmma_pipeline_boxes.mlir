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
          %206 = arith.muli %arg16, %c8_i32_45 : i32
          %207 = arith.addi %206, %10 : i32
          %c49152_i32_46 = arith.constant 49152 : i32
          %208 = arith.addi %207, %c49152_i32_46 : i32
          %209 = llvm.inttoptr %208 : i32 to !llvm.ptr<3>
          %c10000000_i32_47 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %209, %arg17, %c10000000_i32_47 : !llvm.ptr<3>, i32, i32
          %c8192_i32_48 = arith.constant 8192 : i32
          %210 = arith.muli %13, %c8192_i32_48 : i32
          %c16384_i32_49 = arith.constant 16384 : i32
          %211 = arith.muli %arg16, %c16384_i32_49 : i32
          %212 = arith.addi %211, %10 : i32
          %213 = arith.addi %212, %210 : i32
          %c4_i32_50 = arith.constant 4 : i32
          %214 = arith.shrui %213, %c4_i32_50 : i32
          %c16383_i32_51 = arith.constant 16383 : i32
          %215 = arith.andi %214, %c16383_i32_51 : i32
          %216 = arith.extui %215 : i32 to i64
          %c4611686293305360384_i64_52 = arith.constant 4611686293305360384 : i64
          %217 = arith.ori %216, %c4611686293305360384_i64_52 : i64
          %c16384_i32_53 = arith.constant 16384 : i32
          %218 = arith.muli %arg16, %c16384_i32_53 : i32
          %219 = arith.addi %218, %10 : i32
          %c8192_i32_54 = arith.constant 8192 : i32
          %220 = arith.addi %219, %c8192_i32_54 : i32
          %c4_i32_55 = arith.constant 4 : i32
          %221 = arith.shrui %220, %c4_i32_55 : i32
          %c16383_i32_56 = arith.constant 16383 : i32
          %222 = arith.andi %221, %c16383_i32_56 : i32
          %223 = arith.extui %222 : i32 to i64
          %c4611686293338849280_i64_57 = arith.constant 4611686293338849280 : i64
          %224 = arith.ori %223, %c4611686293338849280_i64_57 : i64
          nvvm.wgmma.fence.aligned
          %225 = nvvm.wgmma.mma_async %217, %224, %arg19, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c2_i64_58 = arith.constant 2 : i64
          %226 = arith.addi %217, %c2_i64_58 : i64
          %c128_i64_59 = arith.constant 128 : i64
          %227 = arith.addi %224, %c128_i64_59 : i64
          %228 = nvvm.wgmma.mma_async %226, %227, %225, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c4_i64_60 = arith.constant 4 : i64
          %229 = arith.addi %217, %c4_i64_60 : i64
          %c256_i64_61 = arith.constant 256 : i64
          %230 = arith.addi %224, %c256_i64_61 : i64
          %231 = nvvm.wgmma.mma_async %229, %230, %228, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c6_i64_62 = arith.constant 6 : i64
          %232 = arith.addi %217, %c6_i64_62 : i64
          %c384_i64_63 = arith.constant 384 : i64
          %233 = arith.addi %224, %c384_i64_63 : i64
          %234 = nvvm.wgmma.mma_async %232, %233, %231, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          nvvm.wgmma.commit.group.sync.aligned
          nvvm.wgmma.wait.group.sync.aligned 1
          %c1_i32_64 = arith.constant 1 : i32
          %235 = arith.cmpi ult, %14, %c1_i32_64 : i32
          scf.if %235 {
            %c8_i32_68 = arith.constant 8 : i32
            %241 = arith.muli %arg18, %c8_i32_68 : i32
            %242 = arith.addi %241, %10 : i32
            %c49168_i32 = arith.constant 49168 : i32
            %243 = arith.addi %242, %c49168_i32 : i32
            %244 = llvm.inttoptr %243 : i32 to !llvm.ptr<3>
            %245 = nvvm.mbarrier.arrive %244 : !llvm.ptr<3> -> i64
          }
          %c1_i32_65 = arith.constant 1 : i32
          %236 = arith.addi %arg16, %c1_i32_65 : i32
          %c2_i32_66 = arith.constant 2 : i32
          %237 = arith.cmpi eq, %236, %c2_i32_66 : i32
          %c0_i32_67 = arith.constant 0 : i32
          %238 = arith.select %237, %c0_i32_67, %236 : i32
          %239 = arith.extui %237 : i1 to i32
          %240 = arith.xori %arg17, %239 : i32
          scf.yield %238, %240, %arg16, %234 : i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        }
        nvvm.wgmma.wait.group.sync.aligned 0
        %c0 = arith.constant 0 : index
        %c31_i32_18 = arith.constant 31 : i32
        %51 = arith.andi %14, %c31_i32_18 : i32
        %c32768_i32 = arith.constant 32768 : i32
        %52 = arith.addi %10, %c32768_i32 : i32
        %c4096_i32 = arith.constant 4096 : i32
        %53 = arith.muli %9, %c4096_i32 : i32
        %54 = arith.addi %52, %53 : i32
        %c2_i32_19 = arith.constant 2 : i32
        %55 = arith.shrui %9, %c2_i32_19 : i32
        %c64_i32 = arith.constant 64 : i32
        %56 = arith.muli %55, %c64_i32 : i32
        %c3_i32_20 = arith.constant 3 : i32
        %57 = arith.andi %9, %c3_i32_20 : i32
        %c16_i32 = arith.constant 16 : i32
        %58 = arith.muli %57, %c16_i32 : i32
        %59 = arith.addi %56, %58 : i32
        %60 = arith.index_cast %c0 : index to i32
        %61 = arith.addi %60, %59 : i32
        %62 = arith.index_cast %6 : index to i32
        %c2_i32_21 = arith.constant 2 : i32
        %63 = arith.shrui %51, %c2_i32_21 : i32
        %64 = arith.addi %61, %63 : i32
        %65 = arith.index_cast %64 : i32 to index
        %c3_i32_22 = arith.constant 3 : i32
        %66 = arith.andi %51, %c3_i32_22 : i32
        %c2_i32_23 = arith.constant 2 : i32
        %67 = arith.muli %66, %c2_i32_23 : i32
        %68 = arith.index_cast %67 : i32 to index
        %69 = arith.addi %6, %68 : index
        %70 = llvm.extractvalue %50#3[0] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %71 = llvm.extractvalue %50#3[1] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %72 = vector.from_elements %70, %71 : vector<2xf32>
        %73 = arith.truncf %72 : vector<2xf32> to vector<2xf16>
        %74 = vector.bitcast %73 : vector<2xf16> to vector<1xi32>
        %75 = vector.extract %74[0] : i32 from vector<1xi32>
        %76 = llvm.extractvalue %50#3[2] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %77 = llvm.extractvalue %50#3[3] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %78 = vector.from_elements %76, %77 : vector<2xf32>
        %c8 = arith.constant 8 : index
        %79 = arith.addi %65, %c8 : index
        %80 = arith.truncf %78 : vector<2xf32> to vector<2xf16>
        %81 = vector.bitcast %80 : vector<2xf16> to vector<1xi32>
        %82 = vector.extract %81[0] : i32 from vector<1xi32>
        %c8_24 = arith.constant 8 : index
        %83 = arith.addi %69, %c8_24 : index
        %84 = llvm.extractvalue %50#3[4] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %85 = llvm.extractvalue %50#3[5] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %86 = vector.from_elements %84, %85 : vector<2xf32>
        %87 = arith.truncf %86 : vector<2xf32> to vector<2xf16>
        %88 = vector.bitcast %87 : vector<2xf16> to vector<1xi32>
        %89 = vector.extract %88[0] : i32 from vector<1xi32>
        %c8_25 = arith.constant 8 : index
        %90 = arith.addi %69, %c8_25 : index
        %91 = llvm.extractvalue %50#3[6] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %92 = llvm.extractvalue %50#3[7] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %93 = vector.from_elements %91, %92 : vector<2xf32>
        %c8_26 = arith.constant 8 : index
        %94 = arith.addi %65, %c8_26 : index
        %95 = arith.truncf %93 : vector<2xf32> to vector<2xf16>
        %96 = vector.bitcast %95 : vector<2xf16> to vector<1xi32>
        %97 = vector.extract %96[0] : i32 from vector<1xi32>
        %c16_27 = arith.constant 16 : index
        %98 = arith.addi %69, %c16_27 : index
        %99 = llvm.extractvalue %50#3[8] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %100 = llvm.extractvalue %50#3[9] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %101 = vector.from_elements %99, %100 : vector<2xf32>
        %102 = arith.truncf %101 : vector<2xf32> to vector<2xf16>
        %103 = vector.bitcast %102 : vector<2xf16> to vector<1xi32>
        %104 = vector.extract %103[0] : i32 from vector<1xi32>
        %c16_28 = arith.constant 16 : index
        %105 = arith.addi %69, %c16_28 : index
        %106 = llvm.extractvalue %50#3[10] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %107 = llvm.extractvalue %50#3[11] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %108 = vector.from_elements %106, %107 : vector<2xf32>
        %c8_29 = arith.constant 8 : index
        %109 = arith.addi %65, %c8_29 : index
        %110 = arith.truncf %108 : vector<2xf32> to vector<2xf16>
        %111 = vector.bitcast %110 : vector<2xf16> to vector<1xi32>
        %112 = vector.extract %111[0] : i32 from vector<1xi32>
        %c24 = arith.constant 24 : index
        %113 = arith.addi %69, %c24 : index
        %114 = llvm.extractvalue %50#3[12] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %115 = llvm.extractvalue %50#3[13] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %116 = vector.from_elements %114, %115 : vector<2xf32>
        %117 = arith.truncf %116 : vector<2xf32> to vector<2xf16>
        %118 = vector.bitcast %117 : vector<2xf16> to vector<1xi32>
        %119 = vector.extract %118[0] : i32 from vector<1xi32>
        %c24_30 = arith.constant 24 : index
        %120 = arith.addi %69, %c24_30 : index
        %121 = llvm.extractvalue %50#3[14] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %122 = llvm.extractvalue %50#3[15] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %123 = vector.from_elements %121, %122 : vector<2xf32>
        %c8_31 = arith.constant 8 : index
        %124 = arith.addi %65, %c8_31 : index
        %125 = arith.truncf %123 : vector<2xf32> to vector<2xf16>
        %126 = vector.bitcast %125 : vector<2xf16> to vector<1xi32>
        %127 = vector.extract %126[0] : i32 from vector<1xi32>
        %c32 = arith.constant 32 : index
        %128 = arith.addi %69, %c32 : index
        %129 = llvm.extractvalue %50#3[16] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %130 = llvm.extractvalue %50#3[17] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %131 = vector.from_elements %129, %130 : vector<2xf32>
        %132 = arith.truncf %131 : vector<2xf32> to vector<2xf16>
        %133 = vector.bitcast %132 : vector<2xf16> to vector<1xi32>
        %134 = vector.extract %133[0] : i32 from vector<1xi32>
        %c32_32 = arith.constant 32 : index
        %135 = arith.addi %69, %c32_32 : index
        %136 = llvm.extractvalue %50#3[18] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %137 = llvm.extractvalue %50#3[19] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %138 = vector.from_elements %136, %137 : vector<2xf32>
        %c8_33 = arith.constant 8 : index
        %139 = arith.addi %65, %c8_33 : index
        %140 = arith.truncf %138 : vector<2xf32> to vector<2xf16>
        %141 = vector.bitcast %140 : vector<2xf16> to vector<1xi32>
        %142 = vector.extract %141[0] : i32 from vector<1xi32>
        %c40 = arith.constant 40 : index
        %143 = arith.addi %69, %c40 : index
        %144 = llvm.extractvalue %50#3[20] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %145 = llvm.extractvalue %50#3[21] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %146 = vector.from_elements %144, %145 : vector<2xf32>
        %147 = arith.truncf %146 : vector<2xf32> to vector<2xf16>
        %148 = vector.bitcast %147 : vector<2xf16> to vector<1xi32>
        %149 = vector.extract %148[0] : i32 from vector<1xi32>
        %c40_34 = arith.constant 40 : index
        %150 = arith.addi %69, %c40_34 : index
        %151 = llvm.extractvalue %50#3[22] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %152 = llvm.extractvalue %50#3[23] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %153 = vector.from_elements %151, %152 : vector<2xf32>
        %c8_35 = arith.constant 8 : index
        %154 = arith.addi %65, %c8_35 : index
        %155 = arith.truncf %153 : vector<2xf32> to vector<2xf16>
        %156 = vector.bitcast %155 : vector<2xf16> to vector<1xi32>
        %157 = vector.extract %156[0] : i32 from vector<1xi32>
        %c48 = arith.constant 48 : index
        %158 = arith.addi %69, %c48 : index
        %159 = llvm.extractvalue %50#3[24] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %160 = llvm.extractvalue %50#3[25] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %161 = vector.from_elements %159, %160 : vector<2xf32>
        %162 = arith.truncf %161 : vector<2xf32> to vector<2xf16>
        %163 = vector.bitcast %162 : vector<2xf16> to vector<1xi32>
        %164 = vector.extract %163[0] : i32 from vector<1xi32>
        %c48_36 = arith.constant 48 : index
        %165 = arith.addi %69, %c48_36 : index
        %166 = llvm.extractvalue %50#3[26] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %167 = llvm.extractvalue %50#3[27] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %168 = vector.from_elements %166, %167 : vector<2xf32>
        %c8_37 = arith.constant 8 : index
        %169 = arith.addi %65, %c8_37 : index
        %170 = arith.truncf %168 : vector<2xf32> to vector<2xf16>
        %171 = vector.bitcast %170 : vector<2xf16> to vector<1xi32>
        %172 = vector.extract %171[0] : i32 from vector<1xi32>
        %c56 = arith.constant 56 : index
        %173 = arith.addi %69, %c56 : index
        %174 = llvm.extractvalue %50#3[28] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %175 = llvm.extractvalue %50#3[29] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %176 = vector.from_elements %174, %175 : vector<2xf32>
        %177 = arith.truncf %176 : vector<2xf32> to vector<2xf16>
        %178 = vector.bitcast %177 : vector<2xf16> to vector<1xi32>
        %179 = vector.extract %178[0] : i32 from vector<1xi32>
        %c56_38 = arith.constant 56 : index
        %180 = arith.addi %69, %c56_38 : index
        %181 = llvm.extractvalue %50#3[30] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %182 = llvm.extractvalue %50#3[31] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %183 = vector.from_elements %181, %182 : vector<2xf32>
        %c8_39 = arith.constant 8 : index
        %184 = arith.addi %65, %c8_39 : index
        %185 = arith.truncf %183 : vector<2xf32> to vector<2xf16>
        %186 = vector.bitcast %185 : vector<2xf16> to vector<1xi32>
        %187 = vector.extract %186[0] : i32 from vector<1xi32>
        %c15_i32 = arith.constant 15 : i32
        %188 = arith.andi %51, %c15_i32 : i32
        %c128_i32 = arith.constant 128 : i32
        %189 = arith.muli %188, %c128_i32 : i32
        %c4_i32_40 = arith.constant 4 : i32
        %190 = arith.shrui %51, %c4_i32_40 : i32
        %c7_i32 = arith.constant 7 : i32
        %191 = arith.andi %51, %c7_i32 : i32
        %192 = arith.xori %190, %191 : i32
        %193 = arith.addi %54, %189 : i32
        %c4_i32_41 = arith.constant 4 : i32
        %194 = arith.shli %192, %c4_i32_41 : i32
        %195 = arith.addi %193, %194 : i32
        %c0_i32_42 = arith.constant 0 : i32
        %196 = arith.xori %195, %c0_i32_42 : i32
        %197 = llvm.inttoptr %196 : i32 to !llvm.ptr<3>
        nvvm.stmatrix %197, %75, %82, %89, %97 {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : !llvm.ptr<3>, i32, i32, i32, i32
        %c32_i32 = arith.constant 32 : i32
        %198 = arith.xori %195, %c32_i32 : i32
        %199 = llvm.inttoptr %198 : i32 to !llvm.ptr<3>
        nvvm.stmatrix %199, %104, %112, %119, %127 {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : !llvm.ptr<3>, i32, i32, i32, i32
        %c64_i32_43 = arith.constant 64 : i32
        %200 = arith.xori %195, %c64_i32_43 : i32
        %201 = llvm.inttoptr %200 : i32 to !llvm.ptr<3>
        nvvm.stmatrix %201, %134, %142, %149, %157 {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : !llvm.ptr<3>, i32, i32, i32, i32
        %c96_i32 = arith.constant 96 : i32
        %202 = arith.xori %195, %c96_i32 : i32
        %203 = llvm.inttoptr %202 : i32 to !llvm.ptr<3>
        nvvm.stmatrix %203, %164, %172, %179, %187 {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : !llvm.ptr<3>, i32, i32, i32, i32
        nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
        %c-1_i32_44 = arith.constant -1 : i32
        nvvm.bar.warp.sync %c-1_i32_44 : i32
        %204 = nvvm.elect.sync -> i1
        scf.if %204 {
          %206 = llvm.inttoptr %54 : i32 to !llvm.ptr<3>
          nvvm.cp.async.bulk.tensor.global.shared.cta %5, %206, box[%62, %61] : !llvm.ptr, <3>
          nvvm.cp.async.bulk.commit.group
        }
        %205 = nvvm.elect.sync -> i1
        scf.if %205 {
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
