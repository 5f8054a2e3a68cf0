// A hash of ranges of memory, 64 bits, at the speed of memory. `ranges`: pairs of an address and a number of bytes.
// Each lane is h = (h ^ word) * PRIME, then h ^= h >> 32: a bijection of h for each word and of the word for each h, so one
// changed word always changes its lane. Lanes go on from range to range; 512 bytes at a time are 8 registers of AVX-512.
module {
  llvm.func @content_hash(%ranges: !llvm.ptr, %count: i64) -> i64 attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %two = llvm.mlir.constant(2 : i64) : i64
    %eight = llvm.mlir.constant(8 : i64) : i64
    %block = llvm.mlir.constant(512 : i64) : i64
    %lanes = llvm.mlir.constant(64 : i64) : i64
    %half = llvm.mlir.constant(32 : i64) : i64
    // The prime of XXH64 (PRIME64_1), and the fraction of the golden ratio to begin with.
    %prime = llvm.mlir.constant(-7046029288634856825 : i64) : i64
    %seed = llvm.mlir.constant(-7046029254386353131 : i64) : i64
    %primes = llvm.mlir.constant(dense<-7046029288634856825> : vector<64xi64>) : vector<64xi64>
    %halves = llvm.mlir.constant(dense<32> : vector<64xi64>) : vector<64xi64>
    %seeds = llvm.mlir.constant(dense<-7046029254386353131> : vector<64xi64>) : vector<64xi64>
    %state = llvm.alloca %one x !llvm.array<64 x i64> {alignment = 64 : i64} : (i64) -> !llvm.ptr
    llvm.br ^range(%zero, %seeds, %seed : i64, vector<64xi64>, i64)
  ^range(%number: i64, %wide: vector<64xi64>, %narrow: i64):
    %is_range = llvm.icmp "slt" %number, %count : i64
    llvm.cond_br %is_range, ^begin, ^fold
  ^begin:
    %pair = llvm.mul %number, %two : i64
    %address_at = llvm.getelementptr %ranges[%pair] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %bytes_at = llvm.getelementptr %address_at[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %start = llvm.load %address_at : !llvm.ptr -> !llvm.ptr
    %bytes = llvm.load %bytes_at : !llvm.ptr -> i64
    llvm.br ^blocks(%zero, %wide : i64, vector<64xi64>)
  ^blocks(%at: i64, %h: vector<64xi64>):
    %after = llvm.add %at, %block : i64
    %is_block = llvm.icmp "sle" %after, %bytes : i64
    llvm.cond_br %is_block, ^take, ^words(%at, %narrow : i64, i64)
  ^take:
    %block_at = llvm.getelementptr %start[%at] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %loaded = llvm.load %block_at {alignment = 1 : i64} : !llvm.ptr -> vector<64xi64>
    %mixed = llvm.xor %h, %loaded : vector<64xi64>
    %spread = llvm.mul %mixed, %primes : vector<64xi64>
    %high = llvm.lshr %spread, %halves : vector<64xi64>
    %next_h = llvm.xor %spread, %high : vector<64xi64>
    llvm.br ^blocks(%after, %next_h : i64, vector<64xi64>)
  ^words(%word: i64, %g: i64):
    %after_word = llvm.add %word, %eight : i64
    %is_word = llvm.icmp "sle" %after_word, %bytes : i64
    llvm.cond_br %is_word, ^take_word, ^rest(%word, %g : i64, i64)
  ^take_word:
    %word_at = llvm.getelementptr %start[%word] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %loaded_word = llvm.load %word_at {alignment = 1 : i64} : !llvm.ptr -> i64
    %g_mixed = llvm.xor %g, %loaded_word : i64
    %g_spread = llvm.mul %g_mixed, %prime : i64
    %g_high = llvm.lshr %g_spread, %half : i64
    %next_g = llvm.xor %g_spread, %g_high : i64
    llvm.br ^words(%after_word, %next_g : i64, i64)
  ^rest(%byte: i64, %f: i64):
    %is_byte = llvm.icmp "slt" %byte, %bytes : i64
    llvm.cond_br %is_byte, ^take_byte, ^next(%f : i64)
  ^take_byte:
    %byte_at = llvm.getelementptr %start[%byte] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %loaded_byte = llvm.load %byte_at : !llvm.ptr -> i8
    %wide_byte = llvm.zext %loaded_byte : i8 to i64
    %f_mixed = llvm.xor %f, %wide_byte : i64
    %f_spread = llvm.mul %f_mixed, %prime : i64
    %f_high = llvm.lshr %f_spread, %half : i64
    %next_f = llvm.xor %f_spread, %f_high : i64
    %after_byte = llvm.add %byte, %one : i64
    llvm.br ^rest(%after_byte, %next_f : i64, i64)
  ^next(%rest: i64):
    %next_number = llvm.add %number, %one : i64
    llvm.br ^range(%next_number, %h, %rest : i64, vector<64xi64>, i64)
  ^fold:
    llvm.store %wide, %state {alignment = 64 : i64} : vector<64xi64>, !llvm.ptr
    llvm.br ^lane(%zero, %narrow : i64, i64)
  ^lane(%index: i64, %total: i64):
    %is_lane = llvm.icmp "slt" %index, %lanes : i64
    llvm.cond_br %is_lane, ^take_lane, ^done
  ^take_lane:
    %lane_at = llvm.getelementptr %state[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %lane = llvm.load %lane_at : !llvm.ptr -> i64
    %t_mixed = llvm.xor %total, %lane : i64
    %t_spread = llvm.mul %t_mixed, %prime : i64
    %t_high = llvm.lshr %t_spread, %half : i64
    %next_total = llvm.xor %t_spread, %t_high : i64
    %next_index = llvm.add %index, %one : i64
    llvm.br ^lane(%next_index, %next_total : i64, i64)
  ^done:
    llvm.return %total : i64
  }
}
