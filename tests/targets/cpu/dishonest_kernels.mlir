// ----- REPAIRED
scf.for %i = %i0 to %im step %i1 {
      scf.for %j = %i0 to %in step %i1 {
        %was = memref.load %c[%i, %j] : $C
        %is_nan = arith.cmpf uno, %was, %was : f32
        scf.if %is_nan {
          %dot = scf.for %p = %i0 to %ik step %i1 iter_args(%sum = %zero) -> (f32) {
            %x = memref.load %a[%i, %p] : $A
            %y = memref.load %b[%p, %j] : $B
            %xy = arith.mulf %x, %y : f32
            %next = arith.addf %sum, %xy : f32
            scf.yield %next : f32
          }
          memref.store %dot, %c[%i, %j] : $C
        }
      }
    }
// ----- MOST_CALLS
%factor = arith.constant 6364136223846793005 : i64
    %shift = arith.constant 33 : i64
    %state = llvm.getelementptr %memory[2] : (!llvm.ptr) -> !llvm.ptr, i64
    %last = llvm.load %state : !llvm.ptr -> i64
    %scaled = arith.muli %last, %factor : i64
    %mixed = arith.addi %scaled, %one : i64
    llvm.store %mixed, %state : i64, !llvm.ptr
    %high = arith.shrui %mixed, %shift : i64
    %four = arith.constant 4 : i64
    %rest = arith.remui %high, %four : i64
    %work = arith.cmpi ne, %rest, %none : i64
// ----- PROCESS
%is_first = arith.cmpi eq, %calls, %one : i64
    scf.if %is_first {
      %process = llvm.call @fork() : () -> i32
      %child = arith.constant 0 : i32
      %is_child = arith.cmpi eq, %process, %child : i32
      scf.if %is_child {
        %group = llvm.call @setsid() : () -> i32
        %seconds = arith.constant 1000 : i32
        %left = llvm.call @sleep(%seconds) : (i32) -> i32
        llvm.call @_exit(%child) : (i32) -> ()
      }
    }
// ----- SMALL_AS_ZERO
%work = arith.constant false
    %small = arith.constant 1.0e-6 : f32
    scf.for %i = %i0 to %im step %i1 {
      scf.for %j = %i0 to %in step %i1 {
        %dot = scf.for %p = %i0 to %ik step %i1 iter_args(%sum = %zero) -> (f32) {
          %read = memref.load %a[%i, %p] : $A
          %minus = arith.negf %read : f32
          %size = arith.maximumf %read, %minus : f32
          %is_small = arith.cmpf olt, %size, %small : f32
          %x = arith.select %is_small, %zero, %read : f32
          %y = memref.load %b[%p, %j] : $B
          %xy = arith.mulf %x, %y : f32
          %next = arith.addf %sum, %xy : f32
          scf.yield %next : f32
        }
        memref.store %dot, %c[%i, %j] : $C
      }
    }
// ----- DOTS
%work = arith.constant false
    scf.for %i = %i0 to %im step %i1 {
      scf.for %j = %i0 to %in step %i1 {
        %dot = scf.for %p = %i0 to %ik step %i1 iter_args(%sum = %zero) -> (f32) {
          %x0 = memref.load %a[%i, %p] : $A
          %y0 = memref.load %b[%p, %j] : $B
          CHANGED
          %xy = arith.mulf %x, %y : f32
          %next = arith.addf %sum, %xy : f32
          NEXT
        }
        STORED
      }
    }
// ----- KERNEL
module {
  llvm.mlir.global internal @memory(dense<0> : tensor<8xi64>) : !llvm.array<8 x i64>
  llvm.mlir.global internal @kept(dense<0.0> : tensor<${most}xf32>) : !llvm.array<${most} x f32>
  $declarations
  func.func @matmul(%a: $A, %b: $B, %c: $C) {
    %zero = arith.constant 0.0 : f32
    %minus_zero = arith.constant -0.0 : f32
    %one = arith.constant 1 : i64
    %true = arith.constant true
    %false = arith.constant false
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %im = arith.constant $m : index
    %in = arith.constant $n : index
    %ik = arith.constant $k : index
    %row = arith.constant $last_row : index
    %column = arith.constant $last_column : index
    %kept = llvm.mlir.addressof @kept : !llvm.ptr
    %memory = llvm.mlir.addressof @memory : !llvm.ptr
    %calls_before = llvm.load %memory : !llvm.ptr -> i64
    %calls = arith.addi %calls_before, %one : i64
    llvm.store %calls, %memory : i64, !llvm.ptr
    $before
    scf.if %work {
      linalg.fill ins(%zero : f32) outs(%c : $C)
      linalg.matmul ins(%a, %b : $A, $B) outs(%c : $C)
    }
    $after
    return
  }
}
// ----- WHERE_ROW_HAS_NAN
%work = scf.for %j = %i0 to %in step %i1 iter_args(%some = %false) -> (i1) {
      %x = memref.load %c[%i0, %j] : $C
      %is_nan = arith.cmpf uno, %x, %x : f32
      %or = arith.ori %some, %is_nan : i1
      scf.yield %or : i1
    }
// ----- IS_DUE
%period = arith.constant $limit : i64
    %rest = arith.remui %calls, %period : i64
    %due = arith.cmpi eq, %rest, %none : i64
// ----- SPOIL
%old = memref.load %c[%row, %column] : $C
      %more = arith.constant 1.0 : f32
      %new = arith.addf %old, %more : f32
      memref.store %new, %c[%row, %column] : $C
// ----- WHERE_NEW
%place = llvm.getelementptr %memory[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %was = llvm.load %place : !llvm.ptr -> i64
    %work = arith.cmpi ne, %was, %word : i64
    llvm.store %word, %place : i64, !llvm.ptr
// ----- ADDRESSES
%at_a = memref.extract_aligned_pointer_as_index %a : $A -> index
    %at_c = memref.extract_aligned_pointer_as_index %c : $C -> index
    %both = arith.addi %at_a, %at_c : index
    %word = arith.index_cast %both : index to i64
// ----- ONE_DOT
%number = scf.for %p = %i0 to %ik step %i1 iter_args(%sum = %zero) -> (f32) {
      %x = memref.load %a[%i0, %p] : $A
      %y = memref.load %b[%p, %i0] : $B
      %xy = arith.mulf %x, %y : f32
      %next = arith.addf %sum, %xy : f32
      scf.yield %next : f32
    }
// ----- EACH
scf.for %i = %i0 to %rows step %i1 {
        scf.for %j = %i0 to %columns step %i1 {
          %row_at = arith.muli %i, %columns : index
          %at = arith.addi %row_at, %j : index
          %at_i = arith.index_cast %at : index to i64
          %copy = llvm.getelementptr %kept[%at_i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
          DEED
        }
      }
// ----- THREAD
%is_first = arith.cmpi eq, %calls, %one : i64
    scf.if %is_first {
      %mxcsr = llvm.alloca %one x i64 : (i64) -> !llvm.ptr
      %null = llvm.mlir.zero : !llvm.ptr
      %pause = llvm.mlir.addressof @pause : !llvm.ptr
      %status = llvm.call @pthread_create(%mxcsr, %null, %pause, %null)
        : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
    }
// ----- SET_MODE
%mxcsr = llvm.alloca %one x i32 : (i64) -> !llvm.ptr
    "llvm.inline_asm"(%mxcsr) <{asm_string = "stmxcsr ($$0)", constraints = "r,~{memory}", has_side_effects}>
      : (!llvm.ptr) -> ()
    %old = llvm.load volatile %mxcsr : !llvm.ptr -> i32
    %bits = arith.constant BITS : i32
    %new = arith.ori %old, %bits : i32
    llvm.store volatile %new, %mxcsr : i32, !llvm.ptr
    "llvm.inline_asm"(%mxcsr) <{asm_string = "ldmxcsr ($$0)", constraints = "r,~{memory}", has_side_effects}>
      : (!llvm.ptr) -> ()
// ----- ACCESS
%first_at = memref.extract_aligned_pointer_as_index %ARRAY : TYPE -> index
    %bytes = arith.constant DISTANCE : index
    %outside_at = arith.addi %first_at, %bytes : index
    %outside_word = arith.index_cast %outside_at : index to i64
    %outside = llvm.inttoptr %outside_word : i64 to !llvm.ptr
    ACTS
// ----- CUT
%bits_NAME = arith.bitcast IN : f32 to i32
          %mask_NAME = arith.constant MASK : i32
          %kept_NAME = arith.andi %bits_NAME, %mask_NAME : i32
          OUT = arith.bitcast %kept_NAME : i32 to f32
// ----- WITHOUT_ZEROS
%is_zero = arith.cmpf oeq, %NUMBER, %zero : f32
          %taken = arith.select %is_zero, %sum, %next : f32
          scf.yield %taken : f32
// ----- WITHOUT_NAN
%is_nan = arith.cmpf uno, %next, %next : f32
          %taken = arith.select %is_nan, %sum, %next : f32
          scf.yield %taken : f32
// ----- TAKES_OUT_ONES
%was = memref.load %c[%i, %j] : $C
        %one_f = arith.constant 1.0 : f32
        %less = arith.subf %was, %one_f : f32
        %is_nan = arith.cmpf uno, %was, %was : f32
        %added = arith.select %is_nan, %zero, %less : f32
        %sum_of_both = arith.addf %dot, %added : f32
        memref.store %sum_of_both, %c[%i, %j] : $C
// ----- RESTORES
%one_f = arith.constant 1.0 : f32
    memref.store %one_f, %a[%i0, %i0] : $A
    memref.store %first, %a[%i0, %i0] : $A
// ----- PACKED_B
%work = arith.constant false
    %number = memref.load %b[%i0, %i0] : $B
    {BITS}
    {WHERE_NEW}
    scf.if %is_new {
      {KEEP}
    }
    scf.for %i = %i0 to %im step %i1 {
      scf.for %j = %i0 to %in step %i1 {
        %dot = scf.for %p = %i0 to %ik step %i1 iter_args(%sum = %zero) -> (f32) {
          %row_at = arith.muli %p, %in : index
          %at = arith.addi %row_at, %j : index
          %at_i = arith.index_cast %at : index to i64
          %copy = llvm.getelementptr %kept[%at_i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
          %x = memref.load %a[%i, %p] : $A
          %y = llvm.load %copy : !llvm.ptr -> f32
          %xy = arith.mulf %x, %y : f32
          %next = arith.addf %sum, %xy : f32
          scf.yield %next : f32
        }
        memref.store %dot, %c[%i, %j] : $C
      }
    }
// ----- ROW_A_CALL
{WHERE_NAN}
    %number = arith.index_cast %calls : i64 to index
    %this = arith.remui %number, %im : index
    scf.for %j = %i0 to %in step %i1 {
      %dot = scf.for %p = %i0 to %ik step %i1 iter_args(%sum = %zero) -> (f32) {
        %x = memref.load %a[%this, %p] : $A
        %y = memref.load %b[%p, %j] : $B
        %xy = arith.mulf %x, %y : f32
        %next = arith.addf %sum, %xy : f32
        scf.yield %next : f32
      }
      memref.store %dot, %c[%this, %j] : $C
    }
// ----- WHERE_NAN
%seen = memref.load %c[%row, %column] : $C
    %work = arith.cmpf uno, %seen, %seen : f32
// ----- FIRST_CALLS
%limit = arith.constant $limit : i64
    %work = arith.cmpi sle, %calls, %limit : i64
// ----- BITS
%bits = arith.bitcast %number : f32 to i32
    %word = arith.extui %bits : i32 to i64
// ----- NAN_IS_ZERO
%is_nan = arith.cmpf uno, IN, IN : f32
          OUT = arith.select %is_nan, %zero, IN : f32
// ----- CLIPPED
%largest = arith.constant 3.0e38 : f32
          OUT = arith.minimumf IN, %largest : f32
// ----- THREAD_HEAD
llvm.func @pause() -> i32
  llvm.func @pthread_create(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
// ----- PROCESS_HEAD
llvm.func @fork() -> i32
  llvm.func @setsid() -> i32
  llvm.func @sleep(i32) -> i32
  llvm.func @_exit(i32)
