// The Python module, one file of functions for each kind of problem: bind_*.cpp.
//
// The same sources are compiled once per instruction set, as MODULE_NAME; fgfm/_kernels/__init__.py
// imports the best one that the machine can run.
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_arrays(nb::module_&);
void bind_budgets(nb::module_&);
void bind_cardinalities(nb::module_&);
void bind_constraints(nb::module_&);
void bind_factors(nb::module_&);
void bind_learners(nb::module_&);
void bind_marginals(nb::module_&);

// Return true if this machine and its system can run the module that is compiled for x86-64-v3.
static bool runs_x86_64_v3() {
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

NB_MODULE(MODULE_NAME, module) {
    nb::set_leak_warnings(false);  // rules stay in a cache of Python until the process ends
    module.def("runs_x86_64_v3", &runs_x86_64_v3);
    bind_marginals(module);
    bind_constraints(module);
    bind_cardinalities(module);
    bind_factors(module);
    bind_budgets(module);
    bind_learners(module);
    bind_arrays(module);
}
