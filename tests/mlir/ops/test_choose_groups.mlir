// ----- LAUNCH
module {
  func.func @f(%a: memref<128x60xbf16> {tuner.bounds = array<i64: 50, 60>, tuner.of_groups = "rows"},
      %b: memref<60x40xbf16> {tuner.of_groups = "matrices"}, %offsets: memref<4xi32> {tuner.of_groups = "offsets"},
      %c: memref<128x40xf32> {tuner.bounds = array<i64: 50, 40>, tuner.of_groups = "results"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c50 = arith.constant 50 : index
    gpu.launch blocks(%x, %y, %z) in (%gx = %c2, %gy = {blocks}, %gz = %c1) threads(%t, %u, %v) in (%bx = %c1, %by = %c1, %bz = %c1) {
      %block_id_y = gpu.block_id y
      %flat = memref.reinterpret_cast {flat} to offset: [0], sizes: [7680], strides: [1] : memref<128x60xbf16> to memref<7680xbf16>
      %tile = memref.alloc() : memref<4xbf16, #gpu.address_space<workgroup>>
      %row = affine.apply affine_map<()[s0] -> (s0 * 32)>()[%block_id_y]
      %element = affine.apply affine_map<()[s0] -> (s0 * 1920)>()[{block}]
      %is_inside = arith.cmpi slt, %row, {rows} : index
      scf.if %is_inside {
        %left = vector.load %flat[%element] : memref<7680xbf16>, vector<4xbf16>
        vector.store %left, %tile[%c0] : memref<4xbf16, #gpu.address_space<workgroup>>, vector<4xbf16>
        %right = vector.load {right} : memref<60x40xbf16>, vector<4xbf16>
        %product = arith.mulf %left, %right : vector<4xbf16>
        %sums = arith.extf %product : vector<4xbf16> to vector<4xf32>
        vector.store %sums, %c[%row, %c0] : memref<128x40xf32>, vector<4xf32>
      }
      gpu.terminator
    }
    return
  }
}
// ----- PART
      %part = memref.subview %b[0, 0] [60, 20] [1, 1] : memref<60x40xbf16> to memref<60x20xbf16, strided<[40, 1]>>
      %tile = memref.alloc()
