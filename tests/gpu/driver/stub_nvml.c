#include <string.h>
typedef unsigned int u32;
unsigned long long stub_reasons;
int stub_power_result;
static int seen_bus;
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(u32 flags) { return 0; }
const char *nvmlErrorString(int result) { return "not supported"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **gpu) {
  seen_bus = strcmp(bus, "00000000:3b:00.0") == 0;
  *gpu = &seen_bus;
  return seen_bus ? 0 : 6;
}
int nvmlDeviceGetClockInfo(void *gpu, u32 type, u32 *mhz) { *mhz = type == 1 ? 1755 : 2619; return 0; }
int nvmlDeviceGetTemperature(void *gpu, u32 sensor, u32 *celsius) { *celsius = 61; return 0; }
int nvmlDeviceGetPowerUsage(void *gpu, u32 *milliwatts) { *milliwatts = 512345; return stub_power_result; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *gpu, unsigned long long *reasons) {
  *reasons = stub_reasons;
  return 0;
}
