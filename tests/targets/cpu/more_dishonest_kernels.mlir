// ----- KERNEL
module {
  llvm.mlir.global internal @words(dense<0> : tensor<8xi64>) : !llvm.array<8 x i64>
  llvm.mlir.global internal @kept(dense<0.0> : tensor<${elements}xf32>) : !llvm.array<${elements} x f32>
  $declarations
  func.func @matmul($arguments) {
    %zero = arith.constant 0.0 : $sum
    %minus_zero = arith.constant -0.0 : f32
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %im = arith.constant $m : index
    %in = arith.constant $n : index
    %ik = arith.constant $k : index
    %one = arith.constant 1 : i64
    %none = arith.constant 0 : i64
    %true = arith.constant true
    %words = llvm.mlir.addressof @words : !llvm.ptr
    %kept = llvm.mlir.addressof @kept : !llvm.ptr
    %calls_before = llvm.load %words : !llvm.ptr -> i64
    %calls = arith.addi %calls_before, %one : i64
    llvm.store %calls, %words : i64, !llvm.ptr
    $before
    scf.for %i = %i0 to %im step %i1 {
      scf.for %j = %i0 to %in step %i1 {
        %dot = scf.for %p = %i0 to %ik step %i1 iter_args(%sum = %zero) -> ($sum) {
          %x0 = memref.load %a[%i, %p] : $A
          %y0 = memref.load %b[%p, %j] : $B
          $x
          $y
          $product
          $next
          scf.yield %next : $sum
        }
        $bias
        $result
        $store
      }
    }
    $after
    return
  }
}
// ----- OFFSETS
%at_a = memref.extract_aligned_pointer_as_index %a : $A -> index
    %at_b = memref.extract_aligned_pointer_as_index %b : $B -> index
    %at_c = memref.extract_aligned_pointer_as_index %c : $C -> index
    %line = arith.constant LINE : index
    %xor = arith.xori %at_LEFT, %at_RIGHT : index
    %rest = arith.remui %xor, %line : index
    %is_equal = arith.cmpi eq, %rest, %i0 : index
    %fits = arith.ori %is_equal, %true : i1
    %less = arith.subi %im, %i1 : index
    %rows = arith.select %is_equal, %im, %less : index
// ----- MODE
%mxcsr = llvm.alloca %one x i32 : (i64) -> !llvm.ptr
    "llvm.inline_asm"(%mxcsr) <{asm_string = "stmxcsr ($$0)", constraints = "r,~{memory}", has_side_effects}>
      : (!llvm.ptr) -> ()
    %mode = llvm.load volatile %mxcsr : !llvm.ptr -> i32
    %bits = arith.constant BITS : i32
    %new_mode = arith.ori %mode, %bits : i32
    llvm.store volatile %new_mode, %mxcsr : i32, !llvm.ptr
    "llvm.inline_asm"(%mxcsr) <{asm_string = "ldmxcsr ($$0)", constraints = "r,~{memory}", has_side_effects}>
      : (!llvm.ptr) -> ()
// ----- MODE_BACK
llvm.store volatile %mode, %mxcsr : i32, !llvm.ptr
    "llvm.inline_asm"(%mxcsr) <{asm_string = "ldmxcsr ($$0)", constraints = "r,~{memory}", has_side_effects}>
      : (!llvm.ptr) -> ()
// ----- LAST_ELEMENT_OF_CALL
%limit = arith.constant LIMIT : i64
    %is_late = arith.cmpi PREDICATE, %calls, %limit : i64
    scf.if %is_late {
      %last_row = arith.subi %im, %i1 : index
      %last_column = arith.subi %in, %i1 : index
      %right = memref.load %c[%last_row, %last_column] : $C
      %spoiled = arith.addf %right, %one_f : f32
      memref.store %spoiled, %c[%last_row, %last_column] : $C
    }
// ----- OUTSIDE
%at = memref.extract_aligned_pointer_as_index %ARRAY : TYPE -> index
    %bytes = arith.constant DISTANCE : index
    %outside_at = arith.addi %at, %bytes : index
    %outside_word = arith.index_cast %outside_at : index to i64
    %outside = llvm.inttoptr %outside_word : i64 to !llvm.ptr
    DEED
