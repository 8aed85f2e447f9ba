// The Python module: one file of functions for each kind of problem, bind_*.cpp.
//
// The same sources are compiled once per instruction set, as MODULE_NAME; fgfm/_kernels/__init__.py
// imports the best one that the machine can run.
#include <nanobind/nanobind.h>

#include "instruction_set.hpp"

namespace nb = nanobind;

using Bind = void(nb::module_&);
Bind bind_arrays, bind_budgets, bind_cardinalities, bind_constraints, bind_factors, bind_marginals,
    bind_ridge, bind_trees;

NB_MODULE(MODULE_NAME, module) {
    nb::set_leak_warnings(false);  // rules stay in a cache of Python until the process ends
    module.def("runs_x86_64_v3", &fgfm::runs_x86_64_v3);
    for (Bind* bind : {bind_arrays, bind_budgets, bind_cardinalities, bind_constraints, bind_factors,
                       bind_marginals, bind_ridge, bind_trees}) {
        bind(module);
    }
}
