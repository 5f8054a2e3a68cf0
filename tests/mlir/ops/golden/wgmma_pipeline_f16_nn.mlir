#map = affine_map<(d0) -> (d0 * 64)>
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
      %subview = memref.subview %arg1[0, %4] [192, 64] [1, 1] : memref<192x128xf16> to memref<192x64xf16, strided<[128, 1], offset: ?>>
      %subview_4 = memref.subview %arg2[0, %4] [64, 64] [1, 1] : memref<64x128xf32> to memref<64x64xf32, strided<[128, 1], offset: ?>>
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
      %c0_i32_5 = arith.constant 0 : i32
      %9 = arith.cmpi eq, %5, %c0_i32_5 : i32
      scf.if %9 {
        %c0_i32_6 = arith.constant 0 : i32
        %c8_i32 = arith.constant 8 : i32
        %11 = arith.muli %c0_i32_6, %c8_i32 : i32
        %12 = arith.addi %11, %8 : i32
        %c32768_i32 = arith.constant 32768 : i32
        %13 = arith.addi %12, %c32768_i32 : i32
        %14 = llvm.inttoptr %13 : i32 to !llvm.ptr<3>
        %c1_i32 = arith.constant 1 : i32
        nvvm.mbarrier.init %14, %c1_i32 : !llvm.ptr<3>, i32
        %c0_i32_7 = arith.constant 0 : i32
        %c8_i32_8 = arith.constant 8 : i32
        %15 = arith.muli %c0_i32_7, %c8_i32_8 : i32
        %16 = arith.addi %15, %8 : i32
        %c32784_i32 = arith.constant 32784 : i32
        %17 = arith.addi %16, %c32784_i32 : i32
        %18 = llvm.inttoptr %17 : i32 to !llvm.ptr<3>
        %c1_i32_9 = arith.constant 1 : i32
        nvvm.mbarrier.init %18, %c1_i32_9 : !llvm.ptr<3>, i32
        %c1_i32_10 = arith.constant 1 : i32
        %c8_i32_11 = arith.constant 8 : i32
        %19 = arith.muli %c1_i32_10, %c8_i32_11 : i32
        %20 = arith.addi %19, %8 : i32
        %c32768_i32_12 = arith.constant 32768 : i32
        %21 = arith.addi %20, %c32768_i32_12 : i32
        %22 = llvm.inttoptr %21 : i32 to !llvm.ptr<3>
        %c1_i32_13 = arith.constant 1 : i32
        nvvm.mbarrier.init %22, %c1_i32_13 : !llvm.ptr<3>, i32
        %c1_i32_14 = arith.constant 1 : i32
        %c8_i32_15 = arith.constant 8 : i32
        %23 = arith.muli %c1_i32_14, %c8_i32_15 : i32
        %24 = arith.addi %23, %8 : i32
        %c32784_i32_16 = arith.constant 32784 : i32
        %25 = arith.addi %24, %c32784_i32_16 : i32
        %26 = llvm.inttoptr %25 : i32 to !llvm.ptr<3>
        %c1_i32_17 = arith.constant 1 : i32
        nvvm.mbarrier.init %26, %c1_i32_17 : !llvm.ptr<3>, i32
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
        %c0_i32_6 = arith.constant 0 : i32
        %c0_i32_7 = arith.constant 0 : i32
        %13 = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c8_i32 = arith.constant 8 : i32
        %14 = arith.muli %c0_i32_6, %c8_i32 : i32
        %15 = arith.addi %14, %8 : i32
        %c32768_i32 = arith.constant 32768 : i32
        %16 = arith.addi %15, %c32768_i32 : i32
        %17 = llvm.inttoptr %16 : i32 to !llvm.ptr<3>
        %c10000000_i32 = arith.constant 10000000 : i32
        nvvm.mbarrier.try_wait.parity %17, %c0_i32_7, %c10000000_i32 : !llvm.ptr<3>, i32, i32
        %c8192_i32 = arith.constant 8192 : i32
        %18 = arith.muli %11, %c8192_i32 : i32
        %c16384_i32 = arith.constant 16384 : i32
        %19 = arith.muli %c0_i32_6, %c16384_i32 : i32
        %20 = arith.addi %19, %8 : i32
        %21 = arith.addi %20, %18 : i32
        %c4_i32_8 = arith.constant 4 : i32
        %22 = arith.shrui %21, %c4_i32_8 : i32
        %c16383_i32 = arith.constant 16383 : i32
        %23 = arith.andi %22, %c16383_i32 : i32
        %24 = arith.extui %23 : i32 to i64
        %c4611686293305360384_i64 = arith.constant 4611686293305360384 : i64
        %25 = arith.ori %24, %c4611686293305360384_i64 : i64
        %c16384_i32_9 = arith.constant 16384 : i32
        %26 = arith.muli %c0_i32_6, %c16384_i32_9 : i32
        %27 = arith.addi %26, %8 : i32
        %c8192_i32_10 = arith.constant 8192 : i32
        %28 = arith.addi %27, %c8192_i32_10 : i32
        %c4_i32_11 = arith.constant 4 : i32
        %29 = arith.shrui %28, %c4_i32_11 : i32
        %c16383_i32_12 = arith.constant 16383 : i32
        %30 = arith.andi %29, %c16383_i32_12 : i32
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
        %43 = arith.addi %c0_i32_6, %c1_i32 : i32
        %c2_i32_13 = arith.constant 2 : i32
        %44 = arith.cmpi eq, %43, %c2_i32_13 : i32
        %c0_i32_14 = arith.constant 0 : i32
        %45 = arith.select %44, %c0_i32_14, %43 : i32
        %46 = arith.extui %44 : i1 to i32
        %47 = arith.xori %c0_i32_7, %46 : i32
        %c1_i32_15 = arith.constant 1 : i32
        %c3_i32 = arith.constant 3 : i32
        %c1_i32_16 = arith.constant 1 : i32
        %48:4 = scf.for %arg15 = %c1_i32_15 to %c3_i32 step %c1_i32_16 iter_args(%arg16 = %45, %arg17 = %47, %arg18 = %c0_i32_6, %arg19 = %42) -> (i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>)  : i32 {
          %c8_i32_30 = arith.constant 8 : i32
          %125 = arith.muli %arg16, %c8_i32_30 : i32
          %126 = arith.addi %125, %8 : i32
          %c32768_i32_31 = arith.constant 32768 : i32
          %127 = arith.addi %126, %c32768_i32_31 : i32
          %128 = llvm.inttoptr %127 : i32 to !llvm.ptr<3>
          %c10000000_i32_32 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %128, %arg17, %c10000000_i32_32 : !llvm.ptr<3>, i32, i32
          %c8192_i32_33 = arith.constant 8192 : i32
          %129 = arith.muli %11, %c8192_i32_33 : i32
          %c16384_i32_34 = arith.constant 16384 : i32
          %130 = arith.muli %arg16, %c16384_i32_34 : i32
          %131 = arith.addi %130, %8 : i32
          %132 = arith.addi %131, %129 : i32
          %c4_i32_35 = arith.constant 4 : i32
          %133 = arith.shrui %132, %c4_i32_35 : i32
          %c16383_i32_36 = arith.constant 16383 : i32
          %134 = arith.andi %133, %c16383_i32_36 : i32
          %135 = arith.extui %134 : i32 to i64
          %c4611686293305360384_i64_37 = arith.constant 4611686293305360384 : i64
          %136 = arith.ori %135, %c4611686293305360384_i64_37 : i64
          %c16384_i32_38 = arith.constant 16384 : i32
          %137 = arith.muli %arg16, %c16384_i32_38 : i32
          %138 = arith.addi %137, %8 : i32
          %c8192_i32_39 = arith.constant 8192 : i32
          %139 = arith.addi %138, %c8192_i32_39 : i32
          %c4_i32_40 = arith.constant 4 : i32
          %140 = arith.shrui %139, %c4_i32_40 : i32
          %c16383_i32_41 = arith.constant 16383 : i32
          %141 = arith.andi %140, %c16383_i32_41 : i32
          %142 = arith.extui %141 : i32 to i64
          %c4611686293338849280_i64_42 = arith.constant 4611686293338849280 : i64
          %143 = arith.ori %142, %c4611686293338849280_i64_42 : i64
          nvvm.wgmma.fence.aligned
          %144 = nvvm.wgmma.mma_async %136, %143, %arg19, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c2_i64_43 = arith.constant 2 : i64
          %145 = arith.addi %136, %c2_i64_43 : i64
          %c128_i64_44 = arith.constant 128 : i64
          %146 = arith.addi %143, %c128_i64_44 : i64
          %147 = nvvm.wgmma.mma_async %145, %146, %144, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c4_i64_45 = arith.constant 4 : i64
          %148 = arith.addi %136, %c4_i64_45 : i64
          %c256_i64_46 = arith.constant 256 : i64
          %149 = arith.addi %143, %c256_i64_46 : i64
          %150 = nvvm.wgmma.mma_async %148, %149, %147, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c6_i64_47 = arith.constant 6 : i64
          %151 = arith.addi %136, %c6_i64_47 : i64
          %c384_i64_48 = arith.constant 384 : i64
          %152 = arith.addi %143, %c384_i64_48 : i64
          %153 = nvvm.wgmma.mma_async %151, %152, %150, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          nvvm.wgmma.commit.group.sync.aligned
          nvvm.wgmma.wait.group.sync.aligned 1
          %c1_i32_49 = arith.constant 1 : i32
          %154 = arith.cmpi ult, %12, %c1_i32_49 : i32
          scf.if %154 {
            %c8_i32_53 = arith.constant 8 : i32
            %160 = arith.muli %arg18, %c8_i32_53 : i32
            %161 = arith.addi %160, %8 : i32
            %c32784_i32 = arith.constant 32784 : i32
            %162 = arith.addi %161, %c32784_i32 : i32
            %163 = llvm.inttoptr %162 : i32 to !llvm.ptr<3>
            %164 = nvvm.mbarrier.arrive %163 : !llvm.ptr<3> -> i64
          }
          %c1_i32_50 = arith.constant 1 : i32
          %155 = arith.addi %arg16, %c1_i32_50 : i32
          %c2_i32_51 = arith.constant 2 : i32
          %156 = arith.cmpi eq, %155, %c2_i32_51 : i32
          %c0_i32_52 = arith.constant 0 : i32
          %157 = arith.select %156, %c0_i32_52, %155 : i32
          %158 = arith.extui %156 : i1 to i32
          %159 = arith.xori %arg17, %158 : i32
          scf.yield %157, %159, %arg16, %153 : i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        }
        nvvm.wgmma.wait.group.sync.aligned 0
        %c0 = arith.constant 0 : index
        %c5_i32_17 = arith.constant 5 : i32
        %49 = arith.shrui %12, %c5_i32_17 : i32
        %c31_i32_18 = arith.constant 31 : i32
        %50 = arith.andi %12, %c31_i32_18 : i32
        %c64_i32 = arith.constant 64 : i32
        %51 = arith.muli %11, %c64_i32 : i32
        %c16_i32 = arith.constant 16 : i32
        %52 = arith.muli %49, %c16_i32 : i32
        %53 = arith.addi %51, %52 : i32
        %c2_i32_19 = arith.constant 2 : i32
        %54 = arith.shrui %50, %c2_i32_19 : i32
        %55 = arith.addi %53, %54 : i32
        %56 = arith.index_cast %55 : i32 to index
        %57 = arith.addi %c0, %56 : index
        %c3_i32_20 = arith.constant 3 : i32
        %58 = arith.andi %50, %c3_i32_20 : i32
        %c2_i32_21 = arith.constant 2 : i32
        %59 = arith.muli %58, %c2_i32_21 : i32
        %60 = arith.index_cast %59 : i32 to index
        %61 = arith.addi %4, %60 : index
        %62 = llvm.extractvalue %48#3[0] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %63 = llvm.extractvalue %48#3[1] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %64 = vector.from_elements %62, %63 : vector<2xf32>
        vector.store %64, %arg2[%57, %61] : memref<64x128xf32>, vector<2xf32>
        %65 = llvm.extractvalue %48#3[4] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %66 = llvm.extractvalue %48#3[5] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %67 = vector.from_elements %65, %66 : vector<2xf32>
        %c8 = arith.constant 8 : index
        %68 = arith.addi %61, %c8 : index
        vector.store %67, %arg2[%57, %68] : memref<64x128xf32>, vector<2xf32>
        %69 = llvm.extractvalue %48#3[8] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %70 = llvm.extractvalue %48#3[9] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %71 = vector.from_elements %69, %70 : vector<2xf32>
        %c16 = arith.constant 16 : index
        %72 = arith.addi %61, %c16 : index
        vector.store %71, %arg2[%57, %72] : memref<64x128xf32>, vector<2xf32>
        %73 = llvm.extractvalue %48#3[12] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %74 = llvm.extractvalue %48#3[13] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %75 = vector.from_elements %73, %74 : vector<2xf32>
        %c24 = arith.constant 24 : index
        %76 = arith.addi %61, %c24 : index
        vector.store %75, %arg2[%57, %76] : memref<64x128xf32>, vector<2xf32>
        %77 = llvm.extractvalue %48#3[16] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %78 = llvm.extractvalue %48#3[17] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %79 = vector.from_elements %77, %78 : vector<2xf32>
        %c32 = arith.constant 32 : index
        %80 = arith.addi %61, %c32 : index
        vector.store %79, %arg2[%57, %80] : memref<64x128xf32>, vector<2xf32>
        %81 = llvm.extractvalue %48#3[20] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %82 = llvm.extractvalue %48#3[21] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %83 = vector.from_elements %81, %82 : vector<2xf32>
        %c40 = arith.constant 40 : index
        %84 = arith.addi %61, %c40 : index
        vector.store %83, %arg2[%57, %84] : memref<64x128xf32>, vector<2xf32>
        %85 = llvm.extractvalue %48#3[24] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %86 = llvm.extractvalue %48#3[25] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %87 = vector.from_elements %85, %86 : vector<2xf32>
        %c48 = arith.constant 48 : index
        %88 = arith.addi %61, %c48 : index
        vector.store %87, %arg2[%57, %88] : memref<64x128xf32>, vector<2xf32>
        %89 = llvm.extractvalue %48#3[28] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %90 = llvm.extractvalue %48#3[29] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %91 = vector.from_elements %89, %90 : vector<2xf32>
        %c56 = arith.constant 56 : index
        %92 = arith.addi %61, %c56 : index
        vector.store %91, %arg2[%57, %92] : memref<64x128xf32>, vector<2xf32>
        %c8_22 = arith.constant 8 : index
        %93 = arith.addi %57, %c8_22 : index
        %94 = llvm.extractvalue %48#3[2] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %95 = llvm.extractvalue %48#3[3] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %96 = vector.from_elements %94, %95 : vector<2xf32>
        vector.store %96, %arg2[%93, %61] : memref<64x128xf32>, vector<2xf32>
        %97 = llvm.extractvalue %48#3[6] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %98 = llvm.extractvalue %48#3[7] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %99 = vector.from_elements %97, %98 : vector<2xf32>
        %c8_23 = arith.constant 8 : index
        %100 = arith.addi %61, %c8_23 : index
        vector.store %99, %arg2[%93, %100] : memref<64x128xf32>, vector<2xf32>
        %101 = llvm.extractvalue %48#3[10] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %102 = llvm.extractvalue %48#3[11] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %103 = vector.from_elements %101, %102 : vector<2xf32>
        %c16_24 = arith.constant 16 : index
        %104 = arith.addi %61, %c16_24 : index
        vector.store %103, %arg2[%93, %104] : memref<64x128xf32>, vector<2xf32>
        %105 = llvm.extractvalue %48#3[14] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %106 = llvm.extractvalue %48#3[15] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %107 = vector.from_elements %105, %106 : vector<2xf32>
        %c24_25 = arith.constant 24 : index
        %108 = arith.addi %61, %c24_25 : index
        vector.store %107, %arg2[%93, %108] : memref<64x128xf32>, vector<2xf32>
        %109 = llvm.extractvalue %48#3[18] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %110 = llvm.extractvalue %48#3[19] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %111 = vector.from_elements %109, %110 : vector<2xf32>
        %c32_26 = arith.constant 32 : index
        %112 = arith.addi %61, %c32_26 : index
        vector.store %111, %arg2[%93, %112] : memref<64x128xf32>, vector<2xf32>
        %113 = llvm.extractvalue %48#3[22] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %114 = llvm.extractvalue %48#3[23] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %115 = vector.from_elements %113, %114 : vector<2xf32>
        %c40_27 = arith.constant 40 : index
        %116 = arith.addi %61, %c40_27 : index
        vector.store %115, %arg2[%93, %116] : memref<64x128xf32>, vector<2xf32>
        %117 = llvm.extractvalue %48#3[26] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %118 = llvm.extractvalue %48#3[27] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %119 = vector.from_elements %117, %118 : vector<2xf32>
        %c48_28 = arith.constant 48 : index
        %120 = arith.addi %61, %c48_28 : index
        vector.store %119, %arg2[%93, %120] : memref<64x128xf32>, vector<2xf32>
        %121 = llvm.extractvalue %48#3[30] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %122 = llvm.extractvalue %48#3[31] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %123 = vector.from_elements %121, %122 : vector<2xf32>
        %c56_29 = arith.constant 56 : index
        %124 = arith.addi %61, %c56_29 : index
        vector.store %123, %arg2[%93, %124] : memref<64x128xf32>, vector<2xf32>
      } else {
        %c4_i32_6 = arith.constant 4 : i32
        %11 = arith.cmpi eq, %7, %c4_i32_6 : i32
        scf.if %11 {
          %12 = nvvm.elect.sync -> i1
          scf.if %12 {
            %c0_i32_7 = arith.constant 0 : i32
            %c1_i32 = arith.constant 1 : i32
            %c0 = arith.constant 0 : index
            %13 = arith.index_cast %c0 : index to i32
            %14 = arith.index_cast %4 : index to i32
            %c0_i32_8 = arith.constant 0 : i32
            %c3_i32 = arith.constant 3 : i32
            %c1_i32_9 = arith.constant 1 : i32
            %15:2 = scf.for %arg15 = %c0_i32_8 to %c3_i32 step %c1_i32_9 iter_args(%arg16 = %c0_i32_7, %arg17 = %c1_i32) -> (i32, i32)  : i32 {
              %c8_i32 = arith.constant 8 : i32
              %16 = arith.muli %arg16, %c8_i32 : i32
              %17 = arith.addi %16, %8 : i32
              %c32768_i32 = arith.constant 32768 : i32
              %18 = arith.addi %17, %c32768_i32 : i32
              %19 = llvm.inttoptr %18 : i32 to !llvm.ptr<3>
              %c8_i32_10 = arith.constant 8 : i32
              %20 = arith.muli %arg16, %c8_i32_10 : i32
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
              %c16384_i32_11 = arith.constant 16384 : i32
              %25 = arith.muli %arg16, %c16384_i32_11 : i32
              %26 = arith.addi %25, %8 : i32
              %27 = llvm.inttoptr %26 : i32 to !llvm.ptr<3>
              %28 = llvm.addrspacecast %27 : !llvm.ptr<3> to !llvm.ptr<7>
              nvvm.cp.async.bulk.tensor.shared.cluster.global %28, %1, %19, box[%24, %13] : !llvm.ptr<7>, !llvm.ptr
              %c16384_i32_12 = arith.constant 16384 : i32
              %29 = arith.muli %arg16, %c16384_i32_12 : i32
              %30 = arith.addi %29, %8 : i32
              %c8192_i32 = arith.constant 8192 : i32
              %31 = arith.addi %30, %c8192_i32 : i32
              %32 = llvm.inttoptr %31 : i32 to !llvm.ptr<3>
              %33 = llvm.addrspacecast %32 : !llvm.ptr<3> to !llvm.ptr<7>
              nvvm.cp.async.bulk.tensor.shared.cluster.global %33, %3, %19, box[%14, %24] : !llvm.ptr<7>, !llvm.ptr
              %c1_i32_13 = arith.constant 1 : i32
              %34 = arith.addi %arg16, %c1_i32_13 : i32
              %c2_i32 = arith.constant 2 : i32
              %35 = arith.cmpi eq, %34, %c2_i32 : i32
              %c0_i32_14 = arith.constant 0 : i32
              %36 = arith.select %35, %c0_i32_14, %34 : i32
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
