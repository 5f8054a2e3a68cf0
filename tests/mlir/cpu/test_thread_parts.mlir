// ----- HEAD

  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
// ----- RAGGED

  %c6 = arith.constant 6 : index
  scf.for %i = %c0 to %c6 step %c3 {
    scf.for %r = %c0 to %c3 step %c1 {
      %row = arith.addi %i, %r : index
      %v = vector.load %x[%row, %c0] : memref<8x4xf32>, vector<4xf32>
      vector.store %v, %y[%row, %c0] : memref<8x4xf32>, vector<4xf32>
    }
  }
  %a = vector.load %x[%c6, %c0] : memref<8x4xf32>, vector<4xf32>
  vector.store %a, %y[%c6, %c0] : memref<8x4xf32>, vector<4xf32>
  %b = vector.load %x[%c7, %c0] : memref<8x4xf32>, vector<4xf32>
  vector.store %b, %y[%c7, %c0] : memref<8x4xf32>, vector<4xf32>
// ----- SCRATCH

  %buffer = memref.alloca() : memref<4xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      memref.store %half, %buffer[%j] : memref<4xf32>
    }
    scf.for %j = %c0 to %c4 step %c1 {
      %s = memref.load %buffer[%j] : memref<4xf32>
      %v = memref.load %x[%i, %j] : memref<8x4xf32>
      %w = arith.addf %s, %v : f32
      memref.store %w, %y[%i, %j] : memref<8x4xf32>
    }
  }
// ----- SHARED_ROW

  %buffer = memref.alloca() : memref<4xf32>
  scf.for %j = %c0 to %c4 step %c1 {
    memref.store %half, %buffer[%j] : memref<4xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %s = memref.load %buffer[%j] : memref<4xf32>
      %v = memref.load %x[%i, %j] : memref<8x4xf32>
      %w = arith.addf %s, %v : f32
      memref.store %w, %y[%i, %j] : memref<8x4xf32>
    }
  }
// ----- FILLED

  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      memref.store %zero, %y[%i, %j] : memref<8x4xf32>
    }
  }
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %v = memref.load %x[%i, %j] : memref<8x4xf32>
      %s = memref.load %y[%i, %j] : memref<8x4xf32>
      %w = arith.addf %s, %v : f32
      memref.store %w, %y[%i, %j] : memref<8x4xf32>
    }
  }
