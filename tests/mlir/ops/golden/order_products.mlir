module {
  func.func @f(%arg0: memref<4x64xf32, #gpu.address_space<workgroup>>, %arg1: memref<4x64xf32, #gpu.address_space<workgroup>>, %arg2: memref<16x64xf32>, %arg3: vector<2x2xf32>, %arg4: index, %arg5: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %0 = scf.for %arg6 = %c0 to %c64 step %c1 iter_args(%arg7 = %arg3) -> (vector<2x2xf32>) {
      %9 = vector.extract %arg7[0] : vector<2xf32> from vector<2x2xf32>
      %10 = vector.extract %9[0] : f32 from vector<2xf32>
      %11 = vector.extract %9[1] : f32 from vector<2xf32>
      %12 = vector.extract %arg7[1] : vector<2xf32> from vector<2x2xf32>
      %13 = vector.extract %12[0] : f32 from vector<2xf32>
      %14 = vector.extract %12[1] : f32 from vector<2xf32>
      %15 = vector.load %arg0[%c0, %arg4] : memref<4x64xf32, #gpu.address_space<workgroup>>, vector<2xf32>
      %16 = vector.load %arg1[%c0, %arg4] : memref<4x64xf32, #gpu.address_space<workgroup>>, vector<2xf32>
      %17 = vector.extract %16[0] : f32 from vector<2xf32>
      %18 = vector.extract %16[1] : f32 from vector<2xf32>
      %19 = vector.extract %15[0] : f32 from vector<2xf32>
      %20 = vector.broadcast %19 : f32 to vector<2xf32>
      %21 = vector.extract %15[1] : f32 from vector<2xf32>
      %22 = math.fma %19, %17, %10 : f32
      %23 = math.fma %19, %18, %11 : f32
      %24 = math.fma %21, %18, %14 : f32
      %25 = math.fma %21, %17, %13 : f32
      %26 = vector.from_elements %22, %23 : vector<2xf32>
      %27 = vector.broadcast %21 : f32 to vector<2xf32>
      %28 = vector.from_elements %25, %24 : vector<2xf32>
      %29 = vector.broadcast %26 : vector<2xf32> to vector<2x2xf32>
      %30 = vector.insert %28, %29 [1] : vector<2xf32> into vector<2x2xf32>
      scf.yield %30 : vector<2x2xf32>
    }
    %1 = vector.extract %0[0] : vector<2xf32> from vector<2x2xf32>
    %2 = nvvm.read.ptx.sreg.lanemask.eq : i32
    %3 = nvvm.read.ptx.sreg.lanemask.lt : i32
    %4 = arith.andi %2, %3 : i32
    %5 = vector.broadcast %4 : i32 to vector<2xi32>
    %6 = arith.bitcast %1 : vector<2xf32> to vector<2xi32>
    %7 = arith.xori %6, %5 : vector<2xi32>
    %8 = arith.bitcast %7 : vector<2xi32> to vector<2xf32>
    vector.store %8, %arg2[%arg4, %arg5] : memref<16x64xf32>, vector<2xf32>
    return
  }
}
