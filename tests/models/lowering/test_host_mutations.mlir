// ----- HOST_BETWEEN
// The host reads in the middle what one chain has made, while the other goes on.
%da = gpu.alloc () : memref<16xf32>
%db = gpu.alloc () : memref<16xf32>
gpu.memcpy %da, %a : memref<16xf32>, memref<16xf32>
gpu.memcpy %db, %b : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>)
gpu.memcpy %a, %da : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%db : memref<16xf32>)
gpu.memcpy %b, %db : memref<16xf32>, memref<16xf32>
%of_a = memref.load %a[%c0] : memref<16xf32>
%twice_a = arith.addf %of_a, %of_a : f32
memref.store %twice_a, %a[%c1] : memref<16xf32>
gpu.memcpy %da, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>, %db : memref<16xf32>, %da : memref<16xf32>)
gpu.memcpy %a, %da : memref<16xf32>, memref<16xf32>
gpu.dealloc %da : memref<16xf32>
gpu.dealloc %db : memref<16xf32>
// ----- DIAMOND
// The sides are on two streams.
%da = gpu.alloc () : memref<16xf32>
%db = gpu.alloc () : memref<16xf32>
%dc = gpu.alloc () : memref<16xf32>
gpu.memcpy %da, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>)
gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>, %db : memref<16xf32>)
gpu.launch_func @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>, %dc : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%dc : memref<16xf32>)
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%db : memref<16xf32>, %dc : memref<16xf32>, %da : memref<16xf32>)
gpu.memcpy %b, %da : memref<16xf32>, memref<16xf32>
gpu.dealloc %da : memref<16xf32>
gpu.dealloc %db : memref<16xf32>
gpu.dealloc %dc : memref<16xf32>
// ----- LOOP_OF_CHAINS
// Two chains, which go on from iteration to iteration, and a sum of both.
%da = gpu.alloc () : memref<16xf32>
%db = gpu.alloc () : memref<16xf32>
%dc = gpu.alloc () : memref<16xf32>
gpu.memcpy %da, %a : memref<16xf32>, memref<16xf32>
gpu.memcpy %db, %b : memref<16xf32>, memref<16xf32>
scf.for %i = %c0 to %n step %c1 {
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%db : memref<16xf32>)
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>, %db : memref<16xf32>, %dc : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%db : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>)
}
gpu.memcpy %a, %dc : memref<16xf32>, memref<16xf32>
gpu.memcpy %b, %db : memref<16xf32>, memref<16xf32>
gpu.dealloc %da : memref<16xf32>
gpu.dealloc %db : memref<16xf32>
gpu.dealloc %dc : memref<16xf32>
// ----- SIZES
// Two chains, memory of threes, and the host in the middle, which writes the last element.
%three = arith.constant 3.0 : f32
%c15 = arith.constant 15 : index
%da = gpu.alloc () : memref<16xf32>
%db = gpu.alloc () : memref<16xf32>
%dz = gpu.alloc () : memref<16xf32>
gpu.memset %dz, %three : memref<16xf32>, f32
gpu.memcpy %da, %a : memref<16xf32>, memref<16xf32>
gpu.memcpy %db, %b : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%db : memref<16xf32>)
gpu.memcpy %a, %da : memref<16xf32>, memref<16xf32>
%x = memref.load %a[%c1] : memref<16xf32>
memref.store %x, %a[%c15] : memref<16xf32>
gpu.memcpy %da, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>, %dz : memref<16xf32>, %da : memref<16xf32>)
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%db : memref<16xf32>, %dz : memref<16xf32>, %db : memref<16xf32>)
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%dz : memref<16xf32>)
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%da : memref<16xf32>, %dz : memref<16xf32>, %da : memref<16xf32>)
gpu.memcpy %a, %da : memref<16xf32>, memref<16xf32>
gpu.memcpy %b, %db : memref<16xf32>, memref<16xf32>
gpu.dealloc %da : memref<16xf32>
gpu.dealloc %db : memref<16xf32>
gpu.dealloc %dz : memref<16xf32>
