#map = affine_map<(d0) -> (d0 * 64)>
#map1 = affine_map<()[s0] -> (s0)>
#map2 = affine_map<()[s0] -> (s0 + 8)>
#map3 = affine_map<()[s0] -> (s0 + 16)>
#map4 = affine_map<()[s0] -> (s0 + 24)>
#map5 = affine_map<()[s0] -> (s0 + 32)>
#map6 = affine_map<()[s0] -> (s0 + 40)>
#map7 = affine_map<()[s0] -> (s0 + 48)>
#map8 = affine_map<()[s0] -> (s0 + 56)>
module {
  func.func @f(%arg0: memref<64x192xf16>, %arg1: memref<192x128xf16>, %arg2: memref<64x128xf32>) {
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
    %c256 = arith.constant 256 : index
    gpu.launch blocks(%arg3, %arg4, %arg5) in (%arg9 = %c2, %arg10 = %c1, %arg11 = %c1) threads(%arg6, %arg7, %arg8) in (%arg12 = %c256, %arg13 = %c1, %arg14 = %c1) {
      %4 = affine.apply #map(%arg3)
      %thread_id_x = gpu.thread_id x
      %5 = arith.index_cast %thread_id_x : index to i32
      %c5_i32 = arith.constant 5 : i32
      %6 = arith.shrui %5, %c5_i32 : i32
      %c-1_i32 = arith.constant -1 : i32
      %c0_i32 = arith.constant 0 : i32
      %c31_i32 = arith.constant 31 : i32
      %7 = nvvm.shfl.sync idx %c-1_i32, %6, %c0_i32, %c31_i32 : i32 -> i32
      %alloc = memref.alloc() {alignment = 1024 : i64} : memref<32800xi8, #gpu.address_space<workgroup>>
      %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<32800xi8, #gpu.address_space<workgroup>> -> index
      %8 = arith.index_cast %intptr : index to i32
      %c0_i32_4 = arith.constant 0 : i32
      %9 = arith.cmpi eq, %5, %c0_i32_4 : i32
      scf.if %9 {
        %c0_i32_5 = arith.constant 0 : i32
        %c8_i32 = arith.constant 8 : i32
        %11 = arith.muli %c0_i32_5, %c8_i32 : i32
        %12 = arith.addi %11, %8 : i32
        %c32768_i32 = arith.constant 32768 : i32
        %13 = arith.addi %12, %c32768_i32 : i32
        %14 = llvm.inttoptr %13 : i32 to !llvm.ptr<3>
        %c1_i32 = arith.constant 1 : i32
        nvvm.mbarrier.init %14, %c1_i32 : !llvm.ptr<3>, i32
        %c0_i32_6 = arith.constant 0 : i32
        %c8_i32_7 = arith.constant 8 : i32
        %15 = arith.muli %c0_i32_6, %c8_i32_7 : i32
        %16 = arith.addi %15, %8 : i32
        %c32784_i32 = arith.constant 32784 : i32
        %17 = arith.addi %16, %c32784_i32 : i32
        %18 = llvm.inttoptr %17 : i32 to !llvm.ptr<3>
        %c1_i32_8 = arith.constant 1 : i32
        nvvm.mbarrier.init %18, %c1_i32_8 : !llvm.ptr<3>, i32
        %c1_i32_9 = arith.constant 1 : i32
        %c8_i32_10 = arith.constant 8 : i32
        %19 = arith.muli %c1_i32_9, %c8_i32_10 : i32
        %20 = arith.addi %19, %8 : i32
        %c32768_i32_11 = arith.constant 32768 : i32
        %21 = arith.addi %20, %c32768_i32_11 : i32
        %22 = llvm.inttoptr %21 : i32 to !llvm.ptr<3>
        %c1_i32_12 = arith.constant 1 : i32
        nvvm.mbarrier.init %22, %c1_i32_12 : !llvm.ptr<3>, i32
        %c1_i32_13 = arith.constant 1 : i32
        %c8_i32_14 = arith.constant 8 : i32
        %23 = arith.muli %c1_i32_13, %c8_i32_14 : i32
        %24 = arith.addi %23, %8 : i32
        %c32784_i32_15 = arith.constant 32784 : i32
        %25 = arith.addi %24, %c32784_i32_15 : i32
        %26 = llvm.inttoptr %25 : i32 to !llvm.ptr<3>
        %c1_i32_16 = arith.constant 1 : i32
        nvvm.mbarrier.init %26, %c1_i32_16 : !llvm.ptr<3>, i32
        nvvm.fence.mbarrier.init
        nvvm.prefetch tensormap, %1 : !llvm.ptr
        nvvm.prefetch tensormap, %3 : !llvm.ptr
      }
      gpu.barrier
      %c4_i32 = arith.constant 4 : i32
      %10 = arith.cmpi ult, %7, %c4_i32 : i32
      scf.if %10 {
        %c2_i32 = arith.constant 2 : i32
        %11 = arith.shrui %7, %c2_i32 : i32
        %c127_i32 = arith.constant 127 : i32
        %12 = arith.andi %5, %c127_i32 : i32
        %c0_i32_5 = arith.constant 0 : i32
        %c0_i32_6 = arith.constant 0 : i32
        %13 = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c8_i32 = arith.constant 8 : i32
        %14 = arith.muli %c0_i32_5, %c8_i32 : i32
        %15 = arith.addi %14, %8 : i32
        %c32768_i32 = arith.constant 32768 : i32
        %16 = arith.addi %15, %c32768_i32 : i32
        %17 = llvm.inttoptr %16 : i32 to !llvm.ptr<3>
        %c10000000_i32 = arith.constant 10000000 : i32
        nvvm.mbarrier.try_wait.parity %17, %c0_i32_6, %c10000000_i32 : !llvm.ptr<3>, i32, i32
        %c8192_i32 = arith.constant 8192 : i32
        %18 = arith.muli %11, %c8192_i32 : i32
        %c16384_i32 = arith.constant 16384 : i32
        %19 = arith.muli %c0_i32_5, %c16384_i32 : i32
        %20 = arith.addi %19, %8 : i32
        %21 = arith.addi %20, %18 : i32
        %c4_i32_7 = arith.constant 4 : i32
        %22 = arith.shrui %21, %c4_i32_7 : i32
        %c16383_i32 = arith.constant 16383 : i32
        %23 = arith.andi %22, %c16383_i32 : i32
        %24 = arith.extui %23 : i32 to i64
        %c4611686293305360384_i64 = arith.constant 4611686293305360384 : i64
        %25 = arith.ori %24, %c4611686293305360384_i64 : i64
        %c16384_i32_8 = arith.constant 16384 : i32
        %26 = arith.muli %c0_i32_5, %c16384_i32_8 : i32
        %27 = arith.addi %26, %8 : i32
        %c8192_i32_9 = arith.constant 8192 : i32
        %28 = arith.addi %27, %c8192_i32_9 : i32
        %c4_i32_10 = arith.constant 4 : i32
        %29 = arith.shrui %28, %c4_i32_10 : i32
        %c16383_i32_11 = arith.constant 16383 : i32
        %30 = arith.andi %29, %c16383_i32_11 : i32
        %31 = arith.extui %30 : i32 to i64
        %c4611686293338849280_i64 = arith.constant 4611686293338849280 : i64
        %32 = arith.ori %31, %c4611686293338849280_i64 : i64
        nvvm.wgmma.fence.aligned
        %33 = nvvm.wgmma.mma_async %25, %32, %13, <m = 64, n = 64, k = 16>, D[<f32>, <zero>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c2_i64 = arith.constant 2 : i64
        %34 = arith.addi %25, %c2_i64 : i64
        %c128_i64 = arith.constant 128 : i64
        %35 = arith.addi %32, %c128_i64 : i64
        %36 = nvvm.wgmma.mma_async %34, %35, %33, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c4_i64 = arith.constant 4 : i64
        %37 = arith.addi %25, %c4_i64 : i64
        %c256_i64 = arith.constant 256 : i64
        %38 = arith.addi %32, %c256_i64 : i64
        %39 = nvvm.wgmma.mma_async %37, %38, %36, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c6_i64 = arith.constant 6 : i64
        %40 = arith.addi %25, %c6_i64 : i64
        %c384_i64 = arith.constant 384 : i64
        %41 = arith.addi %32, %c384_i64 : i64
        %42 = nvvm.wgmma.mma_async %40, %41, %39, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        nvvm.wgmma.commit.group.sync.aligned
        %c1_i32 = arith.constant 1 : i32
        %43 = arith.addi %c0_i32_5, %c1_i32 : i32
        %c2_i32_12 = arith.constant 2 : i32
        %44 = arith.cmpi eq, %43, %c2_i32_12 : i32
        %c0_i32_13 = arith.constant 0 : i32
        %45 = arith.select %44, %c0_i32_13, %43 : i32
        %46 = arith.extui %44 : i1 to i32
        %47 = arith.xori %c0_i32_6, %46 : i32
        %c1_i32_14 = arith.constant 1 : i32
        %c3_i32 = arith.constant 3 : i32
        %c1_i32_15 = arith.constant 1 : i32
        %48:4 = scf.for %arg15 = %c1_i32_14 to %c3_i32 step %c1_i32_15 iter_args(%arg16 = %45, %arg17 = %47, %arg18 = %c0_i32_5, %arg19 = %42) -> (i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>)  : i32 {
          %c8_i32_21 = arith.constant 8 : i32
          %160 = arith.muli %arg16, %c8_i32_21 : i32
          %161 = arith.addi %160, %8 : i32
          %c32768_i32_22 = arith.constant 32768 : i32
          %162 = arith.addi %161, %c32768_i32_22 : i32
          %163 = llvm.inttoptr %162 : i32 to !llvm.ptr<3>
          %c10000000_i32_23 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %163, %arg17, %c10000000_i32_23 : !llvm.ptr<3>, i32, i32
          %c8192_i32_24 = arith.constant 8192 : i32
          %164 = arith.muli %11, %c8192_i32_24 : i32
          %c16384_i32_25 = arith.constant 16384 : i32
          %165 = arith.muli %arg16, %c16384_i32_25 : i32
          %166 = arith.addi %165, %8 : i32
          %167 = arith.addi %166, %164 : i32
          %c4_i32_26 = arith.constant 4 : i32
          %168 = arith.shrui %167, %c4_i32_26 : i32
          %c16383_i32_27 = arith.constant 16383 : i32
          %169 = arith.andi %168, %c16383_i32_27 : i32
          %170 = arith.extui %169 : i32 to i64
          %c4611686293305360384_i64_28 = arith.constant 4611686293305360384 : i64
          %171 = arith.ori %170, %c4611686293305360384_i64_28 : i64
          %c16384_i32_29 = arith.constant 16384 : i32
          %172 = arith.muli %arg16, %c16384_i32_29 : i32
          %173 = arith.addi %172, %8 : i32
          %c8192_i32_30 = arith.constant 8192 : i32
          %174 = arith.addi %173, %c8192_i32_30 : i32
          %c4_i32_31 = arith.constant 4 : i32
          %175 = arith.shrui %174, %c4_i32_31 : i32
          %c16383_i32_32 = arith.constant 16383 : i32
          %176 = arith.andi %175, %c16383_i32_32 : i32
          %177 = arith.extui %176 : i32 to i64
          %c4611686293338849280_i64_33 = arith.constant 4611686293338849280 : i64
          %178 = arith.ori %177, %c4611686293338849280_i64_33 : i64
          nvvm.wgmma.fence.aligned
          %179 = nvvm.wgmma.mma_async %171, %178, %arg19, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c2_i64_34 = arith.constant 2 : i64
          %180 = arith.addi %171, %c2_i64_34 : i64
          %c128_i64_35 = arith.constant 128 : i64
          %181 = arith.addi %178, %c128_i64_35 : i64
          %182 = nvvm.wgmma.mma_async %180, %181, %179, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c4_i64_36 = arith.constant 4 : i64
          %183 = arith.addi %171, %c4_i64_36 : i64
          %c256_i64_37 = arith.constant 256 : i64
          %184 = arith.addi %178, %c256_i64_37 : i64
          %185 = nvvm.wgmma.mma_async %183, %184, %182, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c6_i64_38 = arith.constant 6 : i64
          %186 = arith.addi %171, %c6_i64_38 : i64
          %c384_i64_39 = arith.constant 384 : i64
          %187 = arith.addi %178, %c384_i64_39 : i64
          %188 = nvvm.wgmma.mma_async %186, %187, %185, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          nvvm.wgmma.commit.group.sync.aligned
          nvvm.wgmma.wait.group.sync.aligned 1
          %c1_i32_40 = arith.constant 1 : i32
          %189 = arith.cmpi ult, %12, %c1_i32_40 : i32
          scf.if %189 {
            %c8_i32_44 = arith.constant 8 : i32
            %195 = arith.muli %arg18, %c8_i32_44 : i32
            %196 = arith.addi %195, %8 : i32
            %c32784_i32 = arith.constant 32784 : i32
            %197 = arith.addi %196, %c32784_i32 : i32
            %198 = llvm.inttoptr %197 : i32 to !llvm.ptr<3>
            %199 = nvvm.mbarrier.arrive %198 : !llvm.ptr<3> -> i64
          }
          %c1_i32_41 = arith.constant 1 : i32
          %190 = arith.addi %arg16, %c1_i32_41 : i32
          %c2_i32_42 = arith.constant 2 : i32
          %191 = arith.cmpi eq, %190, %c2_i32_42 : i32
          %c0_i32_43 = arith.constant 0 : i32
          %192 = arith.select %191, %c0_i32_43, %190 : i32
          %193 = arith.extui %191 : i1 to i32
          %194 = arith.xori %arg17, %193 : i32
          scf.yield %192, %194, %arg16, %188 : i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        }
        %49 = llvm.extractvalue %48#3[0] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %50 = llvm.extractvalue %48#3[1] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %51 = llvm.extractvalue %48#3[2] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %52 = llvm.extractvalue %48#3[3] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %53 = llvm.extractvalue %48#3[4] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %54 = llvm.extractvalue %48#3[5] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %55 = llvm.extractvalue %48#3[6] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %56 = llvm.extractvalue %48#3[7] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %57 = llvm.extractvalue %48#3[8] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %58 = llvm.extractvalue %48#3[9] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %59 = llvm.extractvalue %48#3[10] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %60 = llvm.extractvalue %48#3[11] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %61 = llvm.extractvalue %48#3[12] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %62 = llvm.extractvalue %48#3[13] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %63 = llvm.extractvalue %48#3[14] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %64 = llvm.extractvalue %48#3[15] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %65 = llvm.extractvalue %48#3[16] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %66 = llvm.extractvalue %48#3[17] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %67 = llvm.extractvalue %48#3[18] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %68 = llvm.extractvalue %48#3[19] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %69 = llvm.extractvalue %48#3[20] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %70 = llvm.extractvalue %48#3[21] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %71 = llvm.extractvalue %48#3[22] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %72 = llvm.extractvalue %48#3[23] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %73 = llvm.extractvalue %48#3[24] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %74 = llvm.extractvalue %48#3[25] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %75 = llvm.extractvalue %48#3[26] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %76 = llvm.extractvalue %48#3[27] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %77 = llvm.extractvalue %48#3[28] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %78 = llvm.extractvalue %48#3[29] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %79 = llvm.extractvalue %48#3[30] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %80 = llvm.extractvalue %48#3[31] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %81 = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31" %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80 : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c0 = arith.constant 0 : index
        %c5_i32_16 = arith.constant 5 : i32
        %82 = arith.shrui %12, %c5_i32_16 : i32
        %c31_i32_17 = arith.constant 31 : i32
        %83 = arith.andi %12, %c31_i32_17 : i32
        %c64_i32 = arith.constant 64 : i32
        %84 = arith.muli %11, %c64_i32 : i32
        %c16_i32 = arith.constant 16 : i32
        %85 = arith.muli %82, %c16_i32 : i32
        %86 = arith.addi %84, %85 : i32
        %c2_i32_18 = arith.constant 2 : i32
        %87 = arith.shrui %83, %c2_i32_18 : i32
        %88 = arith.addi %86, %87 : i32
        %89 = arith.index_cast %88 : i32 to index
        %90 = arith.addi %c0, %89 : index
        %c3_i32_19 = arith.constant 3 : i32
        %91 = arith.andi %83, %c3_i32_19 : i32
        %c2_i32_20 = arith.constant 2 : i32
        %92 = arith.muli %91, %c2_i32_20 : i32
        %93 = arith.index_cast %92 : i32 to index
        %94 = arith.addi %4, %93 : index
        %95 = llvm.extractvalue %81[0] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %96 = llvm.extractvalue %81[1] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %97 = vector.from_elements %95, %96 : vector<2xf32>
        %98 = affine.apply #map1()[%94]
        vector.store %97, %arg2[%90, %98] : memref<64x128xf32>, vector<2xf32>
        %99 = llvm.extractvalue %81[4] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %100 = llvm.extractvalue %81[5] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %101 = vector.from_elements %99, %100 : vector<2xf32>
        %102 = affine.apply #map2()[%94]
        vector.store %101, %arg2[%90, %102] : memref<64x128xf32>, vector<2xf32>
        %103 = llvm.extractvalue %81[8] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %104 = llvm.extractvalue %81[9] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %105 = vector.from_elements %103, %104 : vector<2xf32>
        %106 = affine.apply #map3()[%94]
        vector.store %105, %arg2[%90, %106] : memref<64x128xf32>, vector<2xf32>
        %107 = llvm.extractvalue %81[12] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %108 = llvm.extractvalue %81[13] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %109 = vector.from_elements %107, %108 : vector<2xf32>
        %110 = affine.apply #map4()[%94]
        vector.store %109, %arg2[%90, %110] : memref<64x128xf32>, vector<2xf32>
        %111 = llvm.extractvalue %81[16] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %112 = llvm.extractvalue %81[17] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %113 = vector.from_elements %111, %112 : vector<2xf32>
        %114 = affine.apply #map5()[%94]
        vector.store %113, %arg2[%90, %114] : memref<64x128xf32>, vector<2xf32>
        %115 = llvm.extractvalue %81[20] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %116 = llvm.extractvalue %81[21] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %117 = vector.from_elements %115, %116 : vector<2xf32>
        %118 = affine.apply #map6()[%94]
        vector.store %117, %arg2[%90, %118] : memref<64x128xf32>, vector<2xf32>
        %119 = llvm.extractvalue %81[24] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %120 = llvm.extractvalue %81[25] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %121 = vector.from_elements %119, %120 : vector<2xf32>
        %122 = affine.apply #map7()[%94]
        vector.store %121, %arg2[%90, %122] : memref<64x128xf32>, vector<2xf32>
        %123 = llvm.extractvalue %81[28] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %124 = llvm.extractvalue %81[29] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %125 = vector.from_elements %123, %124 : vector<2xf32>
        %126 = affine.apply #map8()[%94]
        vector.store %125, %arg2[%90, %126] : memref<64x128xf32>, vector<2xf32>
        %c8 = arith.constant 8 : index
        %127 = arith.addi %90, %c8 : index
        %128 = llvm.extractvalue %81[2] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %129 = llvm.extractvalue %81[3] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %130 = vector.from_elements %128, %129 : vector<2xf32>
        %131 = affine.apply #map1()[%94]
        vector.store %130, %arg2[%127, %131] : memref<64x128xf32>, vector<2xf32>
        %132 = llvm.extractvalue %81[6] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %133 = llvm.extractvalue %81[7] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %134 = vector.from_elements %132, %133 : vector<2xf32>
        %135 = affine.apply #map2()[%94]
        vector.store %134, %arg2[%127, %135] : memref<64x128xf32>, vector<2xf32>
        %136 = llvm.extractvalue %81[10] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %137 = llvm.extractvalue %81[11] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %138 = vector.from_elements %136, %137 : vector<2xf32>
        %139 = affine.apply #map3()[%94]
        vector.store %138, %arg2[%127, %139] : memref<64x128xf32>, vector<2xf32>
        %140 = llvm.extractvalue %81[14] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %141 = llvm.extractvalue %81[15] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %142 = vector.from_elements %140, %141 : vector<2xf32>
        %143 = affine.apply #map4()[%94]
        vector.store %142, %arg2[%127, %143] : memref<64x128xf32>, vector<2xf32>
        %144 = llvm.extractvalue %81[18] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %145 = llvm.extractvalue %81[19] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %146 = vector.from_elements %144, %145 : vector<2xf32>
        %147 = affine.apply #map5()[%94]
        vector.store %146, %arg2[%127, %147] : memref<64x128xf32>, vector<2xf32>
        %148 = llvm.extractvalue %81[22] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %149 = llvm.extractvalue %81[23] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %150 = vector.from_elements %148, %149 : vector<2xf32>
        %151 = affine.apply #map6()[%94]
        vector.store %150, %arg2[%127, %151] : memref<64x128xf32>, vector<2xf32>
        %152 = llvm.extractvalue %81[26] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %153 = llvm.extractvalue %81[27] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %154 = vector.from_elements %152, %153 : vector<2xf32>
        %155 = affine.apply #map7()[%94]
        vector.store %154, %arg2[%127, %155] : memref<64x128xf32>, vector<2xf32>
        %156 = llvm.extractvalue %81[30] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %157 = llvm.extractvalue %81[31] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %158 = vector.from_elements %156, %157 : vector<2xf32>
        %159 = affine.apply #map8()[%94]
        vector.store %158, %arg2[%127, %159] : memref<64x128xf32>, vector<2xf32>
      } else {
        %c4_i32_5 = arith.constant 4 : i32
        %11 = arith.cmpi eq, %7, %c4_i32_5 : i32
        scf.if %11 {
          %12 = nvvm.elect.sync -> i1
          scf.if %12 {
            %c0_i32_6 = arith.constant 0 : i32
            %c1_i32 = arith.constant 1 : i32
            %c0 = arith.constant 0 : index
            %13 = arith.index_cast %c0 : index to i32
            %14 = arith.index_cast %4 : index to i32
            %c0_i32_7 = arith.constant 0 : i32
            %c3_i32 = arith.constant 3 : i32
            %c1_i32_8 = arith.constant 1 : i32
            %15:2 = scf.for %arg15 = %c0_i32_7 to %c3_i32 step %c1_i32_8 iter_args(%arg16 = %c0_i32_6, %arg17 = %c1_i32) -> (i32, i32)  : i32 {
              %c8_i32 = arith.constant 8 : i32
              %16 = arith.muli %arg16, %c8_i32 : i32
              %17 = arith.addi %16, %8 : i32
              %c32768_i32 = arith.constant 32768 : i32
              %18 = arith.addi %17, %c32768_i32 : i32
              %19 = llvm.inttoptr %18 : i32 to !llvm.ptr<3>
              %c8_i32_9 = arith.constant 8 : i32
              %20 = arith.muli %arg16, %c8_i32_9 : i32
              %21 = arith.addi %20, %8 : i32
              %c32784_i32 = arith.constant 32784 : i32
              %22 = arith.addi %21, %c32784_i32 : i32
              %23 = llvm.inttoptr %22 : i32 to !llvm.ptr<3>
              %c10000000_i32 = arith.constant 10000000 : i32
              nvvm.mbarrier.try_wait.parity %23, %arg17, %c10000000_i32 : !llvm.ptr<3>, i32, i32
              %c16384_i32 = arith.constant 16384 : i32
              nvvm.mbarrier.arrive.expect_tx %19, %c16384_i32 : !llvm.ptr<3>, i32
              %c64_i32 = arith.constant 64 : i32
              %24 = arith.muli %arg15, %c64_i32 : i32
              %c16384_i32_10 = arith.constant 16384 : i32
              %25 = arith.muli %arg16, %c16384_i32_10 : i32
              %26 = arith.addi %25, %8 : i32
              %27 = llvm.inttoptr %26 : i32 to !llvm.ptr<3>
              %28 = llvm.addrspacecast %27 : !llvm.ptr<3> to !llvm.ptr<7>
              nvvm.cp.async.bulk.tensor.shared.cluster.global %28, %1, %19, box[%24, %13] : !llvm.ptr<7>, !llvm.ptr
              %c16384_i32_11 = arith.constant 16384 : i32
              %29 = arith.muli %arg16, %c16384_i32_11 : i32
              %30 = arith.addi %29, %8 : i32
              %c8192_i32 = arith.constant 8192 : i32
              %31 = arith.addi %30, %c8192_i32 : i32
              %32 = llvm.inttoptr %31 : i32 to !llvm.ptr<3>
              %33 = llvm.addrspacecast %32 : !llvm.ptr<3> to !llvm.ptr<7>
              nvvm.cp.async.bulk.tensor.shared.cluster.global %33, %3, %19, box[%14, %24] : !llvm.ptr<7>, !llvm.ptr
              %c1_i32_12 = arith.constant 1 : i32
              %34 = arith.addi %arg16, %c1_i32_12 : i32
              %c2_i32 = arith.constant 2 : i32
              %35 = arith.cmpi eq, %34, %c2_i32 : i32
              %c0_i32_13 = arith.constant 0 : i32
              %36 = arith.select %35, %c0_i32_13, %34 : i32
              %37 = arith.extui %35 : i1 to i32
              %38 = arith.xori %arg17, %37 : i32
              scf.yield %36, %38 : i32, i32
            }
          }
        }
      }
      gpu.terminator
    }
    return
  }
}
