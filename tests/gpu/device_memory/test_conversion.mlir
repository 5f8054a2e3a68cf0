// M is memref<4x4xf32>; LAUNCH ... END is a kernel with one thread for each element of M; DOUBLED(%x, %y) is a
// kernel that writes twice %x to %y. Lines such as "// arguments: ..." say what @main takes, returns, and calls.
// ----- FRAME
module attributes {gpu.container_module} {
  memref.global constant @table : memref<4x4xf32> = dense<3.0>
  memref.global @state : memref<4x4xf32> = dense<1.0>
  EXTRA
  func.func @main(ARGUMENTS) RESULTS {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %one = arith.constant 1.0 : f32
    BODY
  }
}
// ----- LAUNCH
gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
    threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
// ----- DOUBLED
LAUNCH
  %once = memref.load SOURCE[%bx, %tx] : M
  %twice = arith.addf %once, %once : f32
  memref.store %twice, TARGET[%bx, %tx] : M
END
// ----- CALLEE
func.func private @add(%x: M) {
  %c1 = arith.constant 1 : index
  %g = memref.get_global @state : M
  %v = memref.load %x[%c1, %c1] : M
  memref.store %v, %g[%c1, %c1] : M
  return
}
// ----- INNER
func.func @inner(%a: M) { return }
// ----- MAKE
func.func private @make() -> M
// ----- arguments
// Go in and out once.
DOUBLED(%a, %b)
DOUBLED(%b, %a)
DOUBLED(%a, %b)
// ----- scratch
// A buffer that only kernels touch has no host memory.
%t = memref.alloc() : M
DOUBLED(%a, %t)
DOUBLED(%t, %b)
memref.dealloc %t : M
// ----- global
// A constant is uploaded once for many kernels.
%g = memref.get_global @table : M
DOUBLED(%g, %a)
%h = memref.get_global @table : M
DOUBLED(%h, %b)
DOUBLED(%g, %b)
// ----- written_global
// The next call reads it: @main leaves in %b what the one before put there.
%g = memref.get_global @state : M
memref.copy %g, %b : M to M
DOUBLED(%a, %g)
// ----- results
// Are host memory.
// results: M, M, M
%t = memref.alloc() : M
DOUBLED(%a, %t)
return %t, %t, %a : M, M, M
// ----- copies
// Go the direct way between all memories; no kernel takes %h, which stays on the host.
%t = memref.alloc() : M
%h = memref.alloc() : M
memref.copy %a, %t : M to M
DOUBLED(%t, %b)
memref.copy %b, %t : M to M
DOUBLED(%t, %b)
memref.copy %t, %h : M to M
memref.copy %h, %a : M to M
// ----- parts
// Of buffers are copied as they are.
%left = memref.subview %b[0, 0] [4, 2] [1, 1] : M to memref<4x2xf32, strided<[4, 1]>>
%right = memref.subview %b[0, 2] [4, 2] [1, 1] : M to memref<4x2xf32, strided<[4, 1], offset: 2>>
DOUBLED(%a, %b)
memref.copy %left, %right : memref<4x2xf32, strided<[4, 1]>> to memref<4x2xf32, strided<[4, 1], offset: 2>>
DOUBLED(%b, %a)
// ----- strided
// Rows that are not adjacent go through memory where they are.
// arguments: %a: memref<?x4xf32, strided<[?, 1], offset: ?>>
LAUNCH
  %x = memref.load %a[%bx, %tx] : memref<?x4xf32, strided<[?, 1], offset: ?>>
  %y = arith.addf %x, %one : f32
  memref.store %y, %a[%bx, %tx] : memref<?x4xf32, strided<[?, 1], offset: ?>>
END
// ----- loop
// Copies before and after it.
scf.for %i = %c0 to %c4 step %c1 { DOUBLED(%a, %b) DOUBLED(%b, %a) }
// ----- host_in_loop
// Host code in a loop sees each iteration.
scf.for %i = %c0 to %c4 step %c1 {
  DOUBLED(%a, %b)
  %x = memref.load %b[%i, %i] : M
  memref.store %x, %a[%i, %c0] : M
}
// ----- swap
// Two buffers that a loop swaps stay on the device.
%r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %a, %y = %b) -> (M, M) {
  DOUBLED(%x, %y)
  scf.yield %y, %x : M, M
}
// ----- numbered
// A loop carries a buffer next to a number.
%r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %a, %k = %c0) -> (M, index) {
  DOUBLED(%x, %b)
  scf.yield %b, %i : M, index
}
// ----- turns
// A while loop hands on a buffer in another place.
%r:2 = scf.while (%x = %a, %k = %c0) : (M, index) -> (index, M) {
  %go = arith.cmpi slt, %k, %c4 : index
  scf.condition(%go) %k, %x : index, M
} do {
^bb0(%k: index, %x: M):
  DOUBLED(%x, %b)
  %next = arith.addi %k, %c1 : index
  scf.yield %b, %next : M, index
}
// ----- chosen
// A branch yields one of two buffers.
// arguments: %a: M, %b: M, %flag: i1
%r = scf.if %flag -> M { scf.yield %a : M } else { scf.yield %b : M }
DOUBLED(%b, %r)
// ----- while
// Tests on the host what kernels write.
// arguments: %a: M, %limit: f32
scf.while : () -> () {
  %x = memref.load %a[%c0, %c0] : M
  %go = arith.cmpf olt, %x, %limit : f32
  scf.condition(%go)
} do {
  DOUBLED(%a, %a)
  scf.yield
}
// ----- branch_or_host
// arguments: %a: M, %b: M, %flag: i1
DOUBLED(%b, %a)
scf.if %flag { DOUBLED(%a, %b) } else { memref.store %one, %b[%c0, %c0] : M }
DOUBLED(%b, %a)
// ----- host_branch
// arguments: %a: M, %b: M, %flag: i1
DOUBLED(%b, %a)
scf.if %flag { memref.store %one, %b[%c0, %c0] : M }
DOUBLED(%b, %a)
// ----- branch
// arguments: %a: M, %b: M, %flag: i1
DOUBLED(%b, %a)
scf.if %flag { DOUBLED(%a, %b) }
DOUBLED(%b, %a)
// ----- freed_in_branch
// A buffer that is freed in a branch is freed once.
// arguments: %a: M, %b: M, %flag: i1
%t = memref.alloc() : M
DOUBLED(%a, %t)
%x = memref.load %t[%c0, %c1] : M memref.store %x, %b[%c0, %c0] : M
scf.if %flag { memref.dealloc %t : M } else { memref.dealloc %t : M }
// ----- dynamic
// Sizes may be known at run time only.
// arguments: %a: M
%n = memref.dim %a, %c0 : M
%t = memref.alloc(%n) : M
DOUBLED(%a, %t)
DOUBLED(%t, %a)
// ----- numbers
// Stay operands of kernels.
// arguments: %a: M, %s: f32
LAUNCH
  memref.store %s, %a[%bx, %tx] : M
END
// ----- fill
// On the host needs nothing from the device.
DOUBLED(%a, %b)
linalg.fill ins(%one : f32) outs(%b : M)
// ----- called
// Functions that are called see host memory and globals.
// extra: CALLEE
%g = memref.get_global @state : M
DOUBLED(%a, %g)
DOUBLED(%g, %b)
func.call @add(%b) : (M) -> ()
DOUBLED(%g, %b)
// ----- device_arguments
// Are not copied.
DOUBLED(%a, %b)
%t = memref.alloc() : M
DOUBLED(%b, %t)
// ----- read_on_host
// Host code reads device arguments through memory of its own.
// results: M
DOUBLED(%a, %b)
%x = memref.load %b[%c1, %c1] : M memref.store %x, %a[%c0, %c0] : M
return %b : M
// ----- marked
// arguments: %a: M {tuner.device, llvm.noalias}, %b: M
DOUBLED(%a, %b)
// ----- pinned
// Memory takes the place of allocations that are copied.
// results: M
%t = memref.alloc() : M
%kept = memref.alloc() : M
memref.store %one, %t[%c0, %c0] : M
DOUBLED(%t, %kept)
memref.dealloc %t : M
return %kept : M
// ----- no_kernels
memref.copy %a, %b : M to M
// ----- blocks
// arguments: %a: M, %b: M, %flag: i1
// refused: ^@main: found 3 blocks, allowed scf\.for, scf\.while, scf\.if$
cf.cond_br %flag, ^one, ^other
^one:
DOUBLED(%a, %b)
return
^other:
return
// ----- leaves_iteration
// refused: ^scf\.yield: %alloc of memref\.alloc, allocated in this block, cannot leave the block$
%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %a) -> (M) {
  %t = memref.alloc() : M DOUBLED(%p, %t) scf.yield %t : M
}
// ----- frees_one_of_two
// arguments: %a: M, %b: M, %flag: i1
// refused: ^memref\.dealloc: found %alloc of memref\.alloc or argument %arg1, allowed one allocation$
%t = memref.alloc() : M
DOUBLED(%a, %t)
%r = arith.select %flag, %t, %b : M memref.dealloc %r : M
// ----- freed_and_returned
// arguments: %a: M, %flag: i1
// results: M
// refused: ^memref\.dealloc in an inner block: %alloc of memref\.alloc is freed and returned$
%t = memref.alloc() : M
DOUBLED(%a, %t)
scf.if %flag { memref.dealloc %t : M }
return %t : M
// ----- freed_twice
// refused: ^memref\.dealloc: %alloc of memref\.alloc is freed twice$
%t = memref.alloc() : M
DOUBLED(%a, %t)
memref.dealloc %t : M
memref.dealloc %t : M
// ----- unknown_origin
// extra: MAKE
// refused: found a buffer of unknown origin, allowed allocations and views$
%x = func.call @make() : () -> M
DOUBLED(%a, %x)
// ----- device_or_global
// arguments: %a: M, %b: M, %flag: i1
// refused: memref\.get_global in host memory and arguments in device memory cannot be combined
%g = memref.get_global @state : M
%r = arith.select %flag, %g, %a : M
DOUBLED(%r, %b)
// ----- device_to_function
// extra: INNER
// refused: ^host program: @inner takes device memory, so it cannot be called$
func.call @inner(%a) : (M) -> ()
// ----- device_with_gaps
// arguments: %a: memref<4x4xf32, strided<[8, 1]>>, %b: M
// refused: ^argument %arg0: found memref<4x4xf32, strided<\[8, 1\]>> in device memory, used on the host
%x = memref.load %a[%c0, %c0] : memref<4x4xf32, strided<[8, 1]>>
memref.store %x, %b[%c0, %c0] : M
