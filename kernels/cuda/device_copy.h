// Loads past the cache of the block and copies from global to shared memory that run beside
// the threads.
#pragma once

namespace dahl {

// ldg loads through the read-only path: *p must not be written during the launch.
#if DAHL_DEVICE
DEVICE int32_t ldg(const int32_t* p) { return __nvvm_ldg_i(p); }
DEVICE float ldg(const float* p) { return __nvvm_ldg_f(p); }
DEVICE double ldg(const double* p) { return __nvvm_ldg_d(p); }
DEVICE float2 ldg(const float2* p) {
  typedef float Wide __attribute__((ext_vector_type(2)));
  return __builtin_bit_cast(float2, __nvvm_ldg_f2(reinterpret_cast<const Wide*>(p)));
}
DEVICE float4 ldg(const float4* p) {
  typedef float Wide __attribute__((ext_vector_type(4)));
  return __builtin_bit_cast(float4, __nvvm_ldg_f4(reinterpret_cast<const Wide*>(p)));
}
DEVICE double2 ldg(const double2* p) {
  typedef double Wide __attribute__((ext_vector_type(2)));
  return __builtin_bit_cast(double2, __nvvm_ldg_d2(reinterpret_cast<const Wide*>(p)));
}
#else
template <class T>
DEVICE T ldg(const T* p) {
  return *p;
}
#endif

// copy_async starts the copy of `bytes` (4, 8 or 16) bytes to shared memory, both addresses
// aligned to them; of these the first `valid` (a multiple of 4) come from `from`, the others
// are 0. With valid = 0 nothing is read. The copy is seen by this thread after copy_wait
// and by others after a barrier that follows it.
//
// copy_commit closes the group of the copies started since the last one; copy_wait<n> waits
// until at most n of the closed groups are under way.
//
// Before sm_80 the thread itself copies, at once; the calls stay.
template <int bytes>
DEVICE void copy_async(void* to, const void* from, int valid = bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "copy_async moves 4, 8 or 16 bytes");
#if DAHL_SM < 80
  for (int i = 0; i < bytes / 4; i++)
    static_cast<uint32_t*>(to)[i] = 4 * i < valid ? static_cast<const uint32_t*>(from)[i] : 0;
#elif DAHL_DEVICE
  const uint32_t shared = uint32_t((uint64_t)(__attribute__((address_space(3))) void*)to);
  const uint64_t source = (uint64_t)(__attribute__((address_space(1))) const void*)from;
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(source), "r"(valid) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(source), "n"(bytes), "r"(valid) : "memory");
#else
  host::copy_async(to, from, bytes, valid);
#endif
}

DEVICE void copy_commit() {
#if DAHL_SM < 80
#elif DAHL_DEVICE
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  host::copy_commit();
#endif
}

template <int n>
DEVICE void copy_wait() {
#if DAHL_SM < 80
#elif DAHL_DEVICE
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
#else
  host::copy_wait(n);
#endif
}

}  // namespace dahl
