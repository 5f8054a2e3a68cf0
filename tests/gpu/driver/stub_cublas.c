#include <stdint.h>
#include <string.h>
enum { F32, F64, F16, I8, I32 = 10, BF16 = 14, COMPUTE_32F = 68, COMPUTE_TF32 = 77, COMPUTE_64F = 70, COMPUTE_32I = 72 };
int stub_compute, stub_create_result, stub_multiply_result, stub_calls;
void *stub_stream;
const char *cublasGetStatusString(int status) { return status == 1 ? "not initialized" : "not supported"; }
int cublasGetProperty(int which, int *value) { *value = which == 0 ? 13 : which; return 0; }
int cublasCreate_v2(void **handle) { *handle = &stub_compute; return stub_create_result; }
int cublasDestroy_v2(void *handle) { return handle != &stub_compute; }
int cublasSetStream_v2(void *handle, void *stream) { stub_stream = stream; return handle != &stub_compute; }
int cublasSetWorkspace_v2(void *handle, void *at, size_t bytes) {
  return handle != &stub_compute || !at || bytes != 32 << 20;
}
static int size_of(int type) { return type == F64 ? 8 : type == F32 || type == I32 ? 4 : type == I8 ? 1 : 2; }
static double get(const char *at, int type, long i) {
  float f;
  uint32_t bits;
  if (type == F64) return ((const double *)at)[i];
  if (type == I8) return ((const int8_t *)at)[i];
  if (type == F16) return (double)((const _Float16 *)at)[i];
  if (type == F32) return ((const float *)at)[i];
  bits = (uint32_t)((const uint16_t *)at)[i] << 16;
  memcpy(&f, &bits, 4);
  return f;
}
static void put(char *at, int type, long i, double value) {
  float f = (float)value;
  uint32_t bits;
  if (type == F64) ((double *)at)[i] = value;
  if (type == I32) ((int32_t *)at)[i] = (int32_t)value;
  if (type == F32) ((float *)at)[i] = f;
  if (type == F16) ((_Float16 *)at)[i] = (_Float16)f;
  if (type != BF16) return;
  memcpy(&bits, &f, 4);
  ((uint16_t *)at)[i] = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
int cublasGemmEx(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                 const char *a, int type_a, int lda, const char *b, int type_b, int ldb, const void *beta,
                 char *c, int type_c, int ldc, int compute, int algorithm) {
  int wide = compute == COMPUTE_64F, integers = compute == COMPUTE_32I;
  if (handle != &stub_compute || algorithm != -1) return 7;
  if (integers != (type_a == I8) || integers != (type_c == I32) || (integers && (lda % 4 || ldb % 4))) return 15;
  stub_calls++;
  if (stub_multiply_result) return stub_multiply_result;
  if (lda < (op_a ? k : m) || ldb < (op_b ? n : k) || ldc < m) return 7;
  stub_compute = compute;
  for (long j = 0; j < n; j++)
    for (long i = 0; i < m; i++) {
      double sum = 0;
      for (long p = 0; p < k; p++) {
        double x = get(a, type_a, op_a ? i * lda + p : p * lda + i);
        sum += x * get(b, type_b, op_b ? p * ldb + j : j * ldb + p);
      }
      sum *= integers ? *(const int32_t *)alpha : wide ? *(const double *)alpha : *(const float *)alpha;
      if ((integers ? *(const int32_t *)beta : wide ? *(const double *)beta : *(const float *)beta) != 0) return 7;
      put(c, type_c, j * ldc + i, sum);
    }
  return 0;
}
int cublasGemmStridedBatchedEx(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                               const char *a, int type_a, int lda, long long stride_a, const char *b,
                               int type_b, int ldb, long long stride_b, const void *beta, char *c, int type_c,
                               int ldc, long long stride_c, int batch, int compute, int algorithm) {
  for (int z = 0; z < batch; z++) {
    const char *a_z = a + z * stride_a * size_of(type_a), *b_z = b + z * stride_b * size_of(type_b);
    char *c_z = c + z * stride_c * size_of(type_c);
    int status = cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, a_z, type_a, lda, b_z, type_b, ldb, beta,
                              c_z, type_c, ldc, compute, algorithm);
    if (status) return status;
  }
  return 0;
}
