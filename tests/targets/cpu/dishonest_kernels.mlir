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
