// Constraints, and the best feasible sets of independent labels.
#include "bindings.hpp"
#include "constrained_marginals.hpp"

template <class T>
void bind_constrain_dense(Array<const T, 2> proba, const Objective& objective, const Rules& rules,
                          Labels labels, Array<double, 1> expected,
                          const Constraints& constraints) {
    check_decisions(proba.shape(0), proba.shape(1), labels, expected);
    check_constraints(&constraints, proba.shape(1));
    constrain_dense_rows(matrix(proba), objective, rules, matrix(labels), expected.data(),
                         constraints);
}

template <class T>
void bind_constrain_csr(Array<const T, 1> data, Array<const Index, 1> indices,
                        Array<const Index, 1> indptr, const Objective& objective,
                        const Rules& rules, Array<const std::int8_t, 1> chosen,
                        Array<Index, 1> found, Array<Index, 1> ends, Array<double, 1> expected,
                        const Constraints& constraints) {
    require_rows(span(indptr), expected.size(), data.size());
    require(indices.size() == data.size() && chosen.size() == data.size() &&
                ends.size() == expected.size(),
            "indices and chosen must have a number for each entry, and ends for each row");
    require_indices(span(indices), 0, constraints.labels(), "indices must be labels");
    check_room(found, indptr, 0, &constraints);
    constrain_csr_rows(data.data(), indices.data(), span(indptr), objective, rules, chosen.data(),
                       found.data(), ends.data(), expected.data(), constraints);
}

template <class T>
void bind_constraints_type(nb::module_& module) {
    module.def("constrain_dense_rows", &bind_constrain_dense<T>, without_gil, "proba"_a,
               "objective"_a, "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert(),
               "constraints"_a);
    module.def("constrain_csr_rows", &bind_constrain_csr<T>, without_gil, "data"_a, "indices"_a,
               "indptr"_a, "objective"_a, "rules"_a, "chosen"_a, "found"_a.noconvert(),
               "ends"_a.noconvert(), "expected"_a.noconvert(), "constraints"_a);
}

void bind_constraints(nb::module_& module) {
    nb::class_<Constraints>(module, "Constraints")
        .def(
            "__init__",
            [](Constraints* self, Index min_labels, Index max_labels,
               Array<const std::int8_t, 1> status, Array<const double, 1> cost,
               Array<const Index, 1> group, Array<const Index, 1> parent) {
                new (self) Constraints(min_labels, max_labels, span(status), span(cost),
                                       span(group), span(parent));
            },
            "min_labels"_a, "max_labels"_a, "status"_a, "cost"_a, "group"_a, "parent"_a)
        .def("most_chosen", [](const Constraints& self, Array<const Index, 1> possible) {
            return self.most_chosen(span(possible));
        });
    bind_constraints_type<double>(module);
    bind_constraints_type<float>(module);
}
