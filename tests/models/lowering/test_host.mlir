// ----- OWN_MEMORY
module attributes {gpu.container_module} {
gpu.module @m { gpu.func @k(%a: memref<4xf32>) workgroup(%s : memref<4xf32, 3>) kernel {
  %t = gpu.thread_id x
  %x = memref.load %a[%t] : memref<4xf32>
  memref.store %x, %s[%t] : memref<4xf32, 3>
  gpu.barrier
  %c3 = arith.constant 3 : index
  %o = arith.subi %c3, %t : index
  %y = memref.load %s[%o] : memref<4xf32, 3>
  memref.store %y, %a[%t] : memref<4xf32>
  gpu.return } }
func.func @f(%a: memref<4xf32>) {
  %c1 = arith.constant 1 : index %c4 = arith.constant 4 : index
  gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%a : memref<4xf32>)
  return
} }
// ----- TOKENS
func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
  %two = arith.constant 2.0 : f32
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<4xf32>
  %t2 = gpu.memset async [%t1] %d, %two : memref<4xf32>, f32
  %t3 = gpu.memcpy async [%t2] %b, %d : memref<4xf32>, memref<4xf32>
  %t4 = gpu.memcpy async [%t3] %d, %a : memref<4xf32>, memref<4xf32>
  %t5 = gpu.dealloc async [%t4] %d : memref<4xf32>
  gpu.wait [%t5]
  return
}
// ----- REVERSE
%x = memref.load %a[%bx, %tx] : memref<2x64xf32>
memref.store %x, %m[%tx] : memref<64xf32, 3>
gpu.barrier
%c63 = arith.constant 63 : index
%r = arith.subi %c63, %tx : index
%y = memref.load %m[%r] : memref<64xf32, 3>
memref.store %y, %a[%bx, %tx] : memref<2x64xf32>
// ----- READS
%x = memref.load %a[%bx, %tx] : memref<2x64xf32>
%y = gpu.all_reduce add %x {} : (f32) -> (f32)
memref.store %y, %b[%bx] : memref<2xf32>
// ----- REPORTED_SIZE
%m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
%v = memref.view %m[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64xf32, #gpu.address_space<workgroup>>
%x = memref.load %a[%bx, %tx] : memref<2x64xf32>
memref.store %x, %v[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
// ----- SIZES
func.func @f(%a: memref<2x3x5x2xf32>) {
      %c1 = arith.constant 1 : index %c2 = arith.constant 2 : index %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index %one = arith.constant 1.0 : f32
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c3, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c5, %sy = %c1, %sz = %c2) {
        %n = gpu.grid_dim y
        %m = gpu.block_dim x
        %g = gpu.global_id x
        %s = arith.muli %n, %m : index
        %t = arith.addi %s, %g : index
        %i = arith.index_cast %t : index to i32
        %v = arith.sitofp %i : i32 to f32
        %x = memref.load %a[%bx, %by, %tx, %tz] : memref<2x3x5x2xf32>
        %y = arith.addf %x, %v : f32
        memref.store %y, %a[%bx, %by, %tx, %tz] : memref<2x3x5x2xf32>
        gpu.terminator
      }
      return
    }
// ----- INDEPENDENT
%x = memref.load %a[%bx, %tx] : memref<2x64xf32>
%y = arith.addf %x, %x : f32
memref.store %y, %a[%bx, %tx] : memref<2x64xf32>
// ----- VECTOR
gpu.barrier
%x = vector.extract %v[1, 2] : f32 from vector<2x3xf32>
memref.store %x, %a[%bx, %tx] : memref<2x64xf32>
// ----- CHOSEN
func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %c: i1) {
  %s = "gpux.create_stream"() : () -> !gpux.StreamType
  %t = "gpux.create_stream"() : () -> !gpux.StreamType
  %u = arith.select %c, %s, %t : !gpux.StreamType
  "gpux.memcpy"(%u, %b, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
  return
}
// ----- TEXT
func.func @f(%a: tensor<40x16xf32>, %b: tensor<16x24xf32>,
                 %u: tensor<40x8xf32>, %v: tensor<8x24xf32>, %c: tensor<40x24xf32>) -> tensor<40x24xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<40x24xf32>
  %clear = linalg.fill ins(%zero : f32) outs(%empty : tensor<40x24xf32>) -> tensor<40x24xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<40x16xf32>, tensor<16x24xf32>)
    outs(%clear : tensor<40x24xf32>) -> tensor<40x24xf32>
  %uv = linalg.matmul ins(%u, %v : tensor<40x8xf32>, tensor<8x24xf32>)
    outs(%ab : tensor<40x24xf32>) -> tensor<40x24xf32>
  %again = linalg.matmul ins(%a, %b : tensor<40x16xf32>, tensor<16x24xf32>)
    outs(%c : tensor<40x24xf32>) -> tensor<40x24xf32>
  %sum = linalg.sub ins(%uv, %again : tensor<40x24xf32>, tensor<40x24xf32>)
    outs(%empty : tensor<40x24xf32>) -> tensor<40x24xf32>
  return %sum : tensor<40x24xf32>
}
// ----- ON_BUFFERS
func.func @f(%u: memref<40x8xf32>, %v: memref<8x24xf32>, %c: memref<40x24xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<40x24xf32>)
  linalg.matmul ins(%u, %v : memref<40x8xf32>, memref<8x24xf32>) outs(%c : memref<40x24xf32>)
  return
}
// ----- TWO_OF_ONE_NAME
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%a: memref<f32>) kernel {
      %x = memref.load %a[] : memref<f32>
      %c = arith.constant 3.0 : f32
      %y = arith.addf %x, %c : f32
      memref.store %y, %a[] : memref<f32>
      gpu.return
    }
  }
  gpu.module @n {
    gpu.func @k(%a: memref<f32>) kernel {
      %x = memref.load %a[] : memref<f32>
      %c = arith.constant 2.0 : f32
      %y = arith.mulf %x, %c : f32
      memref.store %y, %a[] : memref<f32>
      gpu.return
    }
  }
  func.func @f(%a: memref<f32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<f32>)
    gpu.launch_func @n::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<f32>)
    return
  }
}
// ----- FAULTS
// stage: RUN
// fault: kernel f_kernel: gpu.barrier at .*some of the threads of a block only, not block \(0, 0, 0\), thread \(2,
%p = arith.cmpi ult, %tx, %c2 : index
scf.if %p { gpu.barrier }

// stage: RUN
// fault: kernel f_kernel: memref.load at .*found index 2 of dimension 0, allowed 0 to 1, in block \(0, 0, 0\)
%x = memref.load %a[%c2, %tx] : memref<2x64xf32>
gpu.barrier
memref.store %x, %a[%c0, %tx] : memref<2x64xf32>

// stage: RUN
// fault: kernel f_kernel: memref.load at .*found an address that is not a multiple of 4
%m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
%s = memref.view %m[%c1][]
  : memref<?xi8, #gpu.address_space<workgroup>> to memref<4xf32, #gpu.address_space<workgroup>>
%v = memref.load %s[%c1] : memref<4xf32, #gpu.address_space<workgroup>>
memref.store %v, %a[%c0, %tx] : memref<2x64xf32>

// stage: COMPILE
// fault: nvvm.fence.mbarrier.init at .*: found no meaning on the host
nvvm.fence.mbarrier.init
// ----- LAUNCHED
func.func @f(ARGUMENTS) {
      %c0 = arith.constant 0 : index %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index %c64 = arith.constant 64 : index
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) SIZES {
        BODY
        gpu.terminator
      }
      return
    }
