// Decisions from independent factors.
#include "bindings.hpp"
#include "factors.hpp"

// Require factors of up to m labels in all, `values` numbers of P and `numbers` of d; the factors of
// one label are the last ones.
static Factors checked_factors(const Array<const Index, 1>& sizes,
                               const Array<const Index, 1>& depths, Index multiple, Index m,
                               Index values, Index numbers) {
    require(0 <= multiple && multiple <= static_cast<Index>(std::min(sizes.size(), depths.size())),
            "multiple must be a number of factors");
    const std::size_t count = static_cast<std::size_t>(multiple);
    require_indices(span(sizes).first(count), 0, m + 1, "sizes must be numbers of labels");
    require_indices(span(depths).first(count), 0, numbers, "depths must be the cardinalities of d");
    const Factors factors{span(sizes), span(depths), multiple};
    require(m - factors.labels() == values - factors.values() && factors.labels() <= m &&
                factors.cardinality() + multiple == numbers,
            "values and d must have the shapes of the factors");
    return factors;
}

void bind_factors(nb::module_& module) {
    module.def(
        "decide_factor_rows",
        [](Array<const double, 2> values, Array<double, 2> d, bool given,
           Array<const Index, 1> sizes, Array<const Index, 1> depths, Array<const Index, 1> names,
           Index multiple, double slack, const Objective& objective, const Rules& rules,
           Labels labels, Array<double, 1> expected, const Constraints* constraints) {
            check_decisions(values.shape(0), labels.shape(1), labels, expected);
            check_names(names, names.size(), labels, constraints);
            require(d.shape(0) == values.shape(0), "d must have one row for each row of values");
            const Factors factors =
                checked_factors(sizes, depths, multiple, names.size(), values.shape(1), d.shape(1));
            return decide_factor_rows(matrix(values), matrix(d), given, factors, span(names), slack,
                                      objective, rules, matrix(labels), expected.data(),
                                      constraints);
        },
        without_gil, "values"_a, "d"_a.noconvert(), "given"_a, "sizes"_a, "depths"_a, "names"_a,
        "multiple"_a, "slack"_a, "objective"_a, "rules"_a, "labels"_a.noconvert(),
        "expected"_a.noconvert(), "constraints"_a.none() = nb::none());
    module.def(
        "decide_sparse_factor_rows",
        [](Array<const double, 1> values, Array<const Index, 1> stored,
           Array<const Index, 1> indptr, Array<double, 1> d, Index width,
           Array<const Index, 1> sizes, Array<const Index, 1> depths, Array<const Index, 1> fixed,
           Index multiple, double slack, const Objective& objective, const Rules& rules,
           Array<Index, 1> found, Array<Index, 1> ends, Array<double, 1> expected,
           const Constraints* constraints) {
            const Index n = expected.size();
            require_rows(span(indptr), n, stored.size());
            const Index size = values.size();
            require(0 <= width && width <= size &&
                        n * width + static_cast<Index>(stored.size()) == size,
                    "values must have width numbers for each row, and the stored ones");
            require(static_cast<Index>(ends.size()) == n, "ends must have one number for each row");
            if (constraints) {
                const Index m = constraints->labels();
                require_indices(span(stored), 0, m, "stored must be labels");
                require_indices(span(fixed), 0, m, "fixed must be labels");
            }
            check_room(found, indptr, fixed.size(), constraints);
            const Factors factors =
                checked_factors(sizes, depths, multiple, fixed.size(), width, d.size());
            return decide_sparse_factor_rows(
                values.data(), stored.data(), span(indptr), d.data(), width, factors, span(fixed),
                slack, objective, rules, found.data(), ends.data(), expected.data(), constraints);
        },
        without_gil, "values"_a, "stored"_a, "indptr"_a, "d"_a.noconvert(), "width"_a, "sizes"_a,
        "depths"_a, "fixed"_a, "multiple"_a, "slack"_a, "objective"_a, "rules"_a,
        "found"_a.noconvert(), "ends"_a.noconvert(), "expected"_a.noconvert(),
        "constraints"_a.none() = nb::none());
}
