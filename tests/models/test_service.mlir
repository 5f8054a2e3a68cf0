// ----- HOST_READS
func.func @main(%a: memref<4xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%old = %zero) -> f32 {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
      %x = memref.load %a[%tx] : memref<4xf32>
      %y = arith.addf %x, %x : f32
      memref.store %y, %a[%tx] : memref<4xf32>
      gpu.terminator
    }
    %v = memref.load %a[%c0] : memref<4xf32>
    %new = arith.addf %old, %v : f32
    scf.yield %new : f32
  }
  return %sum : f32
}
// ----- ARITHMETIC
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = arith.addf %x, %x : tensor<8x16xf32>
  %z = arith.mulf %y, %y : tensor<8x16xf32>
  %w = arith.addf %z, %y : tensor<8x16xf32>
  return %w : tensor<8x16xf32>
}
// ----- ADDITION
%TO = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]}
  ins(%FIRST, %one : tensor<8x16xf32>, tensor<8x16xf32>) outs(%empty : tensor<8x16xf32>) {
^bb0(%x: f32, %y: f32, %z: f32):
  %s = arith.addf %x, %y : f32
  linalg.yield %s : f32
} -> tensor<8x16xf32>
// ----- IN_LOOP
// The memory of an iteration that an assertion ends.
func.func @main(%n: index) -> memref<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %limit = arith.constant 5 : index
  %made = memref.alloc() : memref<4xf32>
  scf.for %i = %zero to %n step %one {
    %memory = memref.alloc(%n) : memref<?xf32>
    %is_less = arith.cmpi slt, %i, %limit : index
    cf.assert %is_less, "too many"
    %x = arith.constant 1.0 : f32
    memref.store %x, %memory[%i] : memref<?xf32>
    memref.dealloc %memory : memref<?xf32>
  }
  %full = arith.constant 1.0 : f32
  linalg.fill ins(%full : f32) outs(%made : memref<4xf32>)
  return %made : memref<4xf32>
}
// ----- IN_ANOTHER
// A function that branches is not inlined in a loop.
func.func private @require(%i: index) {
  %limit = arith.constant 5 : index
  %is_less = arith.cmpi slt, %i, %limit : index
  cf.cond_br %is_less, ^fine, ^wrong
^wrong:
  cf.assert %is_less, "too many"
  cf.br ^fine
^fine:
  return
}
func.func @main(%n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    func.call @require(%i) : (index) -> ()
  }
  return
}
// ----- LOOKUP
#rows = affine_map<(i, j) -> (i)>
#whole = affine_map<(i, j) -> (i, j)>
func.func @lookup(%rows: tensor<64xi64>, %table: tensor<9x256xf32>MORE)
    -> (tensor<64x256xf32>, tensor<64x256xi64>) {
  %zero = arith.constant 0.0 : f32
  %number = arith.constant 84 : i64
  %empty = tensor.empty() : tensor<64x256xf32>
  %found = linalg.generic {indexing_maps = [#rows, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%rows : tensor<64xi64>) outs(%empty : tensor<64x256xf32>) {
  ^bb0(%row: i64, %out: f32):
    %i = arith.index_cast %row : i64 to index
    %j = linalg.index 1 : index
    %x = tensor.extract %table[%i, %j] : tensor<9x256xf32>
    linalg.yield %x : f32
  } -> tensor<64x256xf32>
  %square = tensor.empty() : tensor<256x256xf32>
  %ones = arith.constant dense<1.0> : tensor<256x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x256xf32>)
    -> tensor<64x256xf32>
  %sums = linalg.matmul ins(%found, %ones : tensor<64x256xf32>, tensor<256x256xf32>)
    outs(%zeros : tensor<64x256xf32>) -> tensor<64x256xf32>
  %empty_i = tensor.empty() : tensor<64x256xi64>
  %parts = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%found : tensor<64x256xf32>) outs(%empty_i : tensor<64x256xi64>) {
  ^bb0(%x: f32, %out: i64):
    %whole = arith.fptosi %x : f32 to i64
    %part = arith.divsi %number, %whole : i64
    linalg.yield %part : i64
  } -> tensor<64x256xi64>
  return %sums, %parts : tensor<64x256xf32>, tensor<64x256xi64>
}
// ----- FILL
func.func @main(%a: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = arith.constant 1.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    memref.store %x, %a[%i] : memref<8xf32>
  }
  return
}
// ----- READ
func.func @main(%a: memref<?xf32>, %b: memref<?xf32>) {
  %c7 = arith.constant 7 : index
  %x = memref.load %b[%c7] : memref<?xf32>
  memref.store %x, %a[%c7] : memref<?xf32>
  return
}
// ----- ASSERT
func.func @main(%a: memref<8xf32>, %n: index) {
  %c8 = arith.constant 8 : index
  %fits = arith.cmpi sle, %n, %c8 : index
  cf.assert %fits, "n is too large"
  return
}
// ----- STATIC
%y = tensor.extract_slice %x[0] [4] [1] : tensor<9xf32> to tensor<4xf32>

%y = tensor.insert_slice %x into %z[5] [4] [1] : tensor<4xf32> into tensor<9xf32>

%y = tensor.expand_shape %x [[0, 1]] output_shape [3, 3] : tensor<9xf32> into tensor<3x3xf32>
// ----- BY_VALUES
%y = tensor.extract_slice %x[%i] [4] [1] : tensor<9xf32> to tensor<4xf32>

%y = tensor.insert_slice %x into %z[%i]
 [4] [1] : tensor<4xf32> into tensor<9xf32>

%y = tensor.extract %x[%i] : tensor<9xf32>

%y = "tensor.extract_slice"(%x, %i) : (tensor<9xf32>, index) -> tensor<4xf32>
