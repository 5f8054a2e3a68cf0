// ----- ROW
func.func @f(%v: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %row = memref.alloca() : memref<vector<16xf32>>
    memref.store %v, %row[] : memref<vector<16xf32>>
  }
  return
}
// ----- PACK
func.func @f(%a: memref<64xf32>, %b: memref<8x8xf32>) {
  linalg.pack %a inner_dims_pos = [0] inner_tiles = [8] into %b : memref<64xf32> -> memref<8x8xf32>
  return
}
// ----- LOOPS
// adds the numbers of %a to %sum through a buffer of each iteration: of static size, and as large as %a
func.func @f(%a: memref<64xf32>, %sum: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %many = arith.constant 100000 : index
  %size = arith.constant 64 : index
  scf.for %i = %c0 to %many step %c1 {
    %j = arith.remui %i, %size : index
    %is_even = arith.cmpi ult, %j, %size : index
    %static = memref.alloca() : memref<64xf32>
    scf.if %is_even {
      %inner = memref.alloca() : memref<8x8xf32>
      %x = memref.load %a[%j] : memref<64xf32>
      memref.store %x, %inner[%c1, %c2] : memref<8x8xf32>
      %y = memref.load %inner[%c1, %c2] : memref<8x8xf32>
      memref.store %y, %static[%j] : memref<64xf32>
    }
    %more = arith.addi %j, %c1 : index
    %dynamic = memref.alloca(%more) : memref<?xf32>
    %z = memref.load %static[%j] : memref<64xf32>
    memref.store %z, %dynamic[%j] : memref<?xf32>
    %again = memref.load %dynamic[%j] : memref<?xf32>
    %old = memref.load %sum[%c0] : memref<1xf32>
    %new = arith.addf %old, %again : f32
    memref.store %new, %sum[%c0] : memref<1xf32>
  }
  return
}
// ----- WHILE
// each iteration of a while makes a buffer that the next one reads: it must not be the same
func.func @f(%a: memref<64xf32>, %sum: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant 5 : index
  %one = arith.constant 1.0 : f32
  %first = memref.alloca() : memref<1xf32>
  memref.store %one, %first[%c0] : memref<1xf32>
  %last:2 = scf.while (%i = %c0, %before = %first) : (index, memref<1xf32>) -> (index, memref<1xf32>) {
    %is_less = arith.cmpi slt, %i, %end : index
    scf.condition(%is_less) %i, %before : index, memref<1xf32>
  } do {
  ^bb0(%i: index, %before: memref<1xf32>):
    %own = memref.alloca() : memref<1xf32>
    %zero = arith.constant 0.0 : f32
    memref.store %zero, %own[%c0] : memref<1xf32>
    %x = memref.load %before[%c0] : memref<1xf32>
    %y = arith.addf %x, %one : f32
    memref.store %y, %own[%c0] : memref<1xf32>
    %next = arith.addi %i, %c1 : index
    scf.yield %next, %own : index, memref<1xf32>
  }
  %x = memref.load %last#1[%c0] : memref<1xf32>
  memref.store %x, %sum[%c0] : memref<1xf32>
  return
}
// ----- LARGE
// 16 MiB, twice what a thread has
func.func @f(%a: memref<64xf32>, %sum: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %at = arith.constant 4194303 : index
  %large = memref.alloca() {alignment = 64 : i64} : memref<4194304xf32>
  %small = memref.alloca() : memref<16xf32>
  %x = memref.load %a[%c0] : memref<64xf32>
  memref.store %x, %small[%c0] : memref<16xf32>
  %y = memref.load %small[%c0] : memref<16xf32>
  memref.store %y, %large[%c0] : memref<4194304xf32>
  memref.store %y, %large[%at] : memref<4194304xf32>
  %z = memref.load %large[%at] : memref<4194304xf32>
  memref.store %z, %sum[%c0] : memref<1xf32>
  return
}
// ----- UNPACKED
// packs 10x13 by tiles of 4x8 in the order of columns, with 1.5 where the tiles overhang, and unpacks it to %b
func.func @f(%a: memref<10x13xf32>, %b: memref<10x13xf32>, %packed: memref<2x3x4x8xf32>) {
  %padding = arith.constant 1.5 : f32
  linalg.pack %a padding_value(%padding : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [4, 8]
    into %packed : memref<10x13xf32> -> memref<2x3x4x8xf32>
  linalg.unpack %packed outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [4, 8]
    into %b : memref<2x3x4x8xf32> -> memref<10x13xf32>
  return
}
