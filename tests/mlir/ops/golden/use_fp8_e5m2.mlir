module {
  func.func @f(%arg0: vector<4x4xi8>, %arg1: vector<2x4xi8>, %arg2: vector<2x2xf32>) -> vector<2x2xf32> {
    %0 = vector.bitcast %arg0 : vector<4x4xi8> to vector<4x1xi32>
    %1 = vector.extract %0[0, 0] : i32 from vector<4x1xi32>
    %2 = vector.extract %0[1, 0] : i32 from vector<4x1xi32>
    %3 = vector.extract %0[2, 0] : i32 from vector<4x1xi32>
    %4 = vector.extract %0[3, 0] : i32 from vector<4x1xi32>
    %5 = vector.bitcast %arg1 : vector<2x4xi8> to vector<2x1xi32>
    %6 = vector.extract %5[0, 0] : i32 from vector<2x1xi32>
    %7 = vector.extract %5[1, 0] : i32 from vector<2x1xi32>
    %8 = vector.extract %arg2[0, 0] : f32 from vector<2x2xf32>
    %9 = vector.extract %arg2[0, 1] : f32 from vector<2x2xf32>
    %10 = vector.extract %arg2[1, 0] : f32 from vector<2x2xf32>
    %11 = vector.extract %arg2[1, 1] : f32 from vector<2x2xf32>
    %12 = llvm.inline_asm asm_dialect = att "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f" %1, %2, %3, %4, %6, %7, %8, %9, %10, %11 : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    %13 = llvm.extractvalue %12[0] : !llvm.struct<(f32, f32, f32, f32)> 
    %14 = llvm.extractvalue %12[1] : !llvm.struct<(f32, f32, f32, f32)> 
    %15 = llvm.extractvalue %12[2] : !llvm.struct<(f32, f32, f32, f32)> 
    %16 = llvm.extractvalue %12[3] : !llvm.struct<(f32, f32, f32, f32)> 
    %17 = vector.from_elements %13, %14, %15, %16 : vector<2x2xf32>
    return %17 : vector<2x2xf32>
  }
}
