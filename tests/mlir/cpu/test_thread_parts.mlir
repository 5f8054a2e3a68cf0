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
// ----- HALVES

  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %v = memref.load %x[%i, %j] : memref<8x4xf32>
      %w = arith.mulf %v, %half : f32
      memref.store %w, %y[%i, %j] : memref<8x4xf32>
    }
  }
// ----- sum_over_the_divided_loop

  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    %s = memref.load %y[%c0, %c0] : memref<8x4xf32>
    %w = arith.addf %s, %v : f32
    memref.store %w, %y[%c0, %c0] : memref<8x4xf32>
  }
// ----- sum_in_a_register

  %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f32 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    %w = arith.addf %s, %v : f32
    scf.yield %w : f32
  }
  memref.store %sum, %y[%c0, %c0] : memref<8x4xf32>
// ----- sum_in_a_buffer_of_the_function

  %buffer = memref.alloca() : memref<1xf32>
  memref.store %zero, %buffer[%c0] : memref<1xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    %s = memref.load %buffer[%c0] : memref<1xf32>
    %w = arith.addf %s, %v : f32
    memref.store %w, %buffer[%c0] : memref<1xf32>
    memref.store %w, %y[%i, %c0] : memref<8x4xf32>
  }
// ----- vectors_as_elements_of_a_buffer

  %buffer = memref.alloca() : memref<vector<2x4xf32>>
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    %u = vector.broadcast %v : f32 to vector<2x4xf32>
    memref.store %u, %buffer[] : memref<vector<2x4xf32>>
    memref.store %v, %y[%i, %c0] : memref<8x4xf32>
  }
// ----- writes_of_the_next_row

  scf.for %i = %c0 to %c7 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    memref.store %v, %y[%i, %c0] : memref<8x4xf32>
    %n = arith.addi %i, %c1 : index
    memref.store %v, %y[%n, %c0] : memref<8x4xf32>
  }
// ----- reads_of_what_other_threads_write

  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    memref.store %v, %y[%i, %c0] : memref<8x4xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %back = arith.subi %c7, %i : index
    %v = memref.load %y[%back, %c0] : memref<8x4xf32>
    memref.store %v, %y[%i, %c1] : memref<8x4xf32>
  }
// ----- places_from_memory

  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<8x4xf32>
    %k = arith.fptosi %v : f32 to i64
    %at = arith.index_cast %k : i64 to index
    memref.store %v, %y[%at, %c0] : memref<8x4xf32>
  }
// ----- view_of_the_output

  %view = memref.collapse_shape %y [[0, 1]] : memref<8x4xf32> into memref<32xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %half, %view[%i] : memref<32xf32>
  }
// ----- instruction_that_may_do_anything

  scf.for %i = %c0 to %c8 step %c1 {
    %now = llvm.call_intrinsic "llvm.x86.rdtsc"() : () -> i64
    memref.store %half, %y[%i, %c0] : memref<8x4xf32>
  }
// ----- assertion

  %true = arith.constant true
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %half, %y[%i, %c0] : memref<8x4xf32>
  }
  cf.assert %true, "never"
// ----- small_part_of_the_work

  scf.for %i = %c0 to %c2 step %c1 {
    memref.store %half, %y[%i, %c0] : memref<8x4xf32>
  }
  %v = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f32 {
    %a = memref.load %x[%i, %c1] : memref<8x4xf32>
    %b = arith.addf %a, %s : f32
    scf.yield %b : f32
  }
  memref.store %v, %y[%c7, %c1] : memref<8x4xf32>
