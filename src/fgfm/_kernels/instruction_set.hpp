// Which of the compiled modules a machine can run.
#pragma once

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace fgfm {

// Return true if this machine and its system can run the module that is compiled for x86-64-v3.
inline bool runs_x86_64_v3() {
#ifdef __x86_64__
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
    const bool fma = c & (1u << 12), xsave = c & (1u << 27);
    if (!fma || !xsave) return false;
    unsigned low, high;  // XCR0: bits 1 and 2 say that the system saves the vector registers
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    const bool bmi = b & (1u << 3), avx2 = b & (1u << 5), bmi2 = b & (1u << 8);
    return avx2 && bmi && bmi2;
#else
    return false;
#endif
}

}  // namespace fgfm
