module {
  func.func @f(%arg0: memref<1x2xbf16>, %arg1: memref<16x2xbf16>, %arg2: memref<1x16xf32>) {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = vector.transfer_read %arg0[%c0, %c0], %cst {in_bounds = [true, true]} : memref<1x2xbf16>, vector<1x2xbf16>
    %1 = vector.transfer_read %arg1[%c0, %c0], %cst {in_bounds = [true, true]} : memref<16x2xbf16>, vector<16x2xbf16>
    %2 = vector.transfer_read %arg2[%c0, %c0], %cst_0 {in_bounds = [true, true]} : memref<1x16xf32>, vector<1x16xf32>
    %3 = vector.shape_cast %1 : vector<16x2xbf16> to vector<32xbf16>
    %4 = vector.extract_strided_slice %3 {offsets = [0], sizes = [32], strides = [1]} : vector<32xbf16> to vector<32xbf16>
    %5 = vector.extract %0[0] : vector<2xbf16> from vector<1x2xbf16>
    %6 = vector.bitcast %5 : vector<2xbf16> to vector<1xi32>
    %7 = vector.extract %6[0] : i32 from vector<1xi32>
    %8 = vector.broadcast %7 : i32 to vector<16xi32>
    %9 = vector.bitcast %8 : vector<16xi32> to vector<32xbf16>
    %10 = vector.extract %2[0] : vector<16xf32> from vector<1x16xf32>
    %11 = vector.extract_strided_slice %10 {offsets = [0], sizes = [16], strides = [1]} : vector<16xf32> to vector<16xf32>
    %12 = x86.avx512.dot %11, %9, %4 : vector<32xbf16> -> vector<16xf32>
    %13 = vector.insert_strided_slice %12, %10 {offsets = [0], strides = [1]} : vector<16xf32> into vector<16xf32>
    %14 = vector.insert %13, %2 [0] : vector<16xf32> into vector<1x16xf32>
    vector.transfer_write %14, %arg2[%c0, %c0] {in_bounds = [true, true]} : vector<1x16xf32>, memref<1x16xf32>
    return
  }
}
