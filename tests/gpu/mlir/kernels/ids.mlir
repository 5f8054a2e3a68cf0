// Every thread writes its ids and the dimensions to its own row: b[thread of the grid, 0..13].
func.func @ids(%b: memref<288x14xi32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c2, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c6, %sy = %c4, %sz = %c2) {
    %block_row = arith.muli %by, %gx : index
    %block = arith.addi %block_row, %bx : index
    %plane = arith.muli %tz, %sy : index
    %row_of_plane = arith.addi %plane, %ty : index
    %row_start = arith.muli %row_of_plane, %sx : index
    %thread = arith.addi %row_start, %tx : index
    %c48 = arith.constant 48 : index
    %first = arith.muli %block, %c48 : index
    %row = arith.addi %first, %thread : index
    %lane = gpu.lane_id
    %warp = gpu.subgroup_id : index
    %column0 = arith.constant 0 : index
    %column5 = arith.constant 5 : index
    %column7 = arith.constant 7 : index
    %column8 = arith.constant 8 : index
    %column9 = arith.constant 9 : index
    %column10 = arith.constant 10 : index
    %column11 = arith.constant 11 : index
    %column12 = arith.constant 12 : index
    %column13 = arith.constant 13 : index
    %bx_ = arith.index_cast %bx : index to i32
    %by_ = arith.index_cast %by : index to i32
    %bz_ = arith.index_cast %bz : index to i32
    %tx_ = arith.index_cast %tx : index to i32
    %ty_ = arith.index_cast %ty : index to i32
    %tz_ = arith.index_cast %tz : index to i32
    %gx_ = arith.index_cast %gx : index to i32
    %gy_ = arith.index_cast %gy : index to i32
    %gz_ = arith.index_cast %gz : index to i32
    %sx_ = arith.index_cast %sx : index to i32
    %sy_ = arith.index_cast %sy : index to i32
    %sz_ = arith.index_cast %sz : index to i32
    %lane_ = arith.index_cast %lane : index to i32
    %warp_ = arith.index_cast %warp : index to i32
    memref.store %bx_, %b[%row, %column0] : memref<288x14xi32>
    memref.store %by_, %b[%row, %c1] : memref<288x14xi32>
    memref.store %bz_, %b[%row, %c2] : memref<288x14xi32>
    memref.store %tx_, %b[%row, %c3] : memref<288x14xi32>
    memref.store %ty_, %b[%row, %c4] : memref<288x14xi32>
    memref.store %tz_, %b[%row, %column5] : memref<288x14xi32>
    memref.store %gx_, %b[%row, %c6] : memref<288x14xi32>
    memref.store %gy_, %b[%row, %column7] : memref<288x14xi32>
    memref.store %gz_, %b[%row, %column8] : memref<288x14xi32>
    memref.store %sx_, %b[%row, %column9] : memref<288x14xi32>
    memref.store %sy_, %b[%row, %column10] : memref<288x14xi32>
    memref.store %sz_, %b[%row, %column11] : memref<288x14xi32>
    memref.store %lane_, %b[%row, %column12] : memref<288x14xi32>
    memref.store %warp_, %b[%row, %column13] : memref<288x14xi32>
    gpu.terminator
  }
  return
}
