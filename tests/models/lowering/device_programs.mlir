// ----- KERNELS
  gpu.module @m {
    gpu.func @inc(%a: memref<16xf32>) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      %v = memref.load %a[%i] : memref<16xf32>
      %w = arith.addf %v, %one : f32
      memref.store %w, %a[%i] : memref<16xf32>
      gpu.return
    }
    gpu.func @twice(%a: memref<16xf32>, %b: memref<16xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<16xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %b[%i] : memref<16xf32>
      gpu.return
    }
    gpu.func @add(%a: memref<16xf32>, %b: memref<16xf32>, %c: memref<16xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<16xf32>
      %w = memref.load %b[%i] : memref<16xf32>
      %x = arith.addf %v, %w : f32
      memref.store %x, %c[%i] : memref<16xf32>
      gpu.return
    }
  }
// ----- OF_PARTS
    gpu.func @spread(%a: memref<16xf32>, %p: memref<16xf32, strided<[1], offset: ?>>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<16xf32>
      memref.store %v, %p[%i] : memref<16xf32, strided<[1], offset: ?>>
      gpu.return
    }
    gpu.func @inc_part(%p: memref<16xf32, strided<[1], offset: ?>>) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      %v = memref.load %p[%i] : memref<16xf32, strided<[1], offset: ?>>
      %w = arith.addf %v, %one : f32
      memref.store %w, %p[%i] : memref<16xf32, strided<[1], offset: ?>>
      gpu.return
    }
    gpu.func @gather(%p: memref<16xf32, strided<[1], offset: ?>>, %a: memref<16xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %p[%i] : memref<16xf32, strided<[1], offset: ?>>
      memref.store %v, %a[%i] : memref<16xf32>
      gpu.return
    }
  }
// ----- TWO_CHAINS
%da = gpu.alloc () : memref<16xf32>
%db = gpu.alloc () : memref<16xf32>
%dc = gpu.alloc () : memref<16xf32>
gpu.memcpy %da, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>)
gpu.memcpy %db, %b : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%db : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%db : memref<16xf32>)
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>, %db : memref<16xf32>, %dc : memref<16xf32>)
gpu.memcpy %a, %dc : memref<16xf32>, memref<16xf32>
gpu.dealloc %da : memref<16xf32>
gpu.dealloc %db : memref<16xf32>
gpu.dealloc %dc : memref<16xf32>
// ----- LOOP_WITH_HOST
%da = gpu.alloc () : memref<16xf32>
%db = gpu.alloc () : memref<16xf32>
gpu.memcpy %da, %a : memref<16xf32>, memref<16xf32>
gpu.memcpy %db, %b : memref<16xf32>, memref<16xf32>
scf.for %i = %c0 to %n step %c1 {
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%db : memref<16xf32>)
gpu.memcpy %b, %db : memref<16xf32>, memref<16xf32>
%of_b = memref.load %b[%c0] : memref<16xf32>
%twice_b = arith.addf %of_b, %of_b : f32
memref.store %twice_b, %b[%c1] : memref<16xf32>
gpu.memcpy %db, %b : memref<16xf32>, memref<16xf32>
}
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>, %db : memref<16xf32>, %db : memref<16xf32>)
gpu.memcpy %a, %da : memref<16xf32>, memref<16xf32>
gpu.memcpy %b, %db : memref<16xf32>, memref<16xf32>
gpu.dealloc %da : memref<16xf32>
gpu.dealloc %db : memref<16xf32>
// ----- BRANCH
%da = gpu.alloc () : memref<16xf32>
%db = gpu.alloc () : memref<16xf32>
%dc = gpu.alloc () : memref<16xf32>
gpu.memcpy %da, %a : memref<16xf32>, memref<16xf32>
gpu.memcpy %db, %b : memref<16xf32>, memref<16xf32>
gpu.memcpy %dc, %a : memref<16xf32>, memref<16xf32>
scf.if %flag {
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%db : memref<16xf32>)
} else {
gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>, %db : memref<16xf32>)
}
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%dc : memref<16xf32>)
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>, %dc : memref<16xf32>, %db : memref<16xf32>)
gpu.memcpy %b, %db : memref<16xf32>, memref<16xf32>
gpu.dealloc %da : memref<16xf32>
gpu.dealloc %db : memref<16xf32>
gpu.dealloc %dc : memref<16xf32>
// ----- HALVES
%w = gpu.alloc () : memref<32xf32>
%da = gpu.alloc () : memref<16xf32>
%db = gpu.alloc () : memref<16xf32>
gpu.memcpy %da, %a : memref<16xf32>, memref<16xf32>
gpu.memcpy %db, %b : memref<16xf32>, memref<16xf32>
%l_ = memref.subview %w[0] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1]>>
%l = memref.cast %l_ : memref<16xf32, strided<[1]>> to memref<16xf32, strided<[1], offset: ?>>
%h_ = memref.subview %w[16] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1], offset: 16>>
%h = memref.cast %h_ : memref<16xf32, strided<[1], offset: 16>> to memref<16xf32, strided<[1], offset: ?>>
gpu.launch_func @m::@spread blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>, %l : memref<16xf32, strided<[1], offset: ?>>)
gpu.launch_func @m::@spread blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%db : memref<16xf32>, %h : memref<16xf32, strided<[1], offset: ?>>)
gpu.launch_func @m::@inc_part blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%l : memref<16xf32, strided<[1], offset: ?>>)
gpu.launch_func @m::@inc_part blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%h : memref<16xf32, strided<[1], offset: ?>>)
gpu.launch_func @m::@gather blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%l : memref<16xf32, strided<[1], offset: ?>>, %da : memref<16xf32>)
gpu.launch_func @m::@gather blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%h : memref<16xf32, strided<[1], offset: ?>>, %db : memref<16xf32>)
gpu.memcpy %a, %da : memref<16xf32>, memref<16xf32>
gpu.memcpy %b, %db : memref<16xf32>, memref<16xf32>
gpu.dealloc %da : memref<16xf32>
gpu.dealloc %db : memref<16xf32>
gpu.dealloc %w : memref<32xf32>
