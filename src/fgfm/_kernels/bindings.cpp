// The Python module: one function per kernel, on contiguous NumPy arrays.
//
// The same sources are compiled once per instruction set, as MODULE_NAME; fgfm/_kernels/__init__.py
// imports the best one that the machine can run. Values are checked by the kernels, shapes and indices
// here: callers pass those of loaded models on. All functions release the GIL.

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "betting.hpp"
#include "cardinalities.hpp"
#include "checks.hpp"
#include "condition.hpp"
#include "constrained.hpp"
#include "constrained_marginals.hpp"
#include "exponentials.hpp"
#include "factors.hpp"
#include "floors.hpp"
#include "forest.hpp"
#include "grouping.hpp"
#include "jaccard.hpp"
#include "joint.hpp"
#include "logistic.hpp"
#include "marginals.hpp"
#include "marginals_columns.hpp"
#include "poisson_binomial.hpp"
#include "reweighted.hpp"
#include "ridge.hpp"
#include "samples.hpp"
#include "tilt.hpp"
#include "transpose.hpp"
#include "trees.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace fgfm;

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using Result = std::tuple<Index, double, Index>;  // first refused row or -1, code, factor

template <class T>
std::span<T> span(const Array<T, 1>& array) {
    return {array.data(), array.size()};
}

template <class T>
Matrix<T> matrix(const Array<T, 2>& array) {
    return {array.data(), static_cast<Index>(array.shape(0)), static_cast<Index>(array.shape(1))};
}

template <class T>
using StridedArray = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <class T>
Strided<T> strided(const StridedArray<T>& array) {
    return {array.data(), static_cast<Index>(array.shape(0)), static_cast<Index>(array.shape(1)),
            array.stride(0), array.stride(1)};
}

template <class T>
void bind_transpose(StridedArray<const T> from, StridedArray<T> to) {
    require(from.shape(0) == to.shape(1) && from.shape(1) == to.shape(0),
            "to must have the shape of the transpose");
    transpose(strided(from), strided(to));
}

static Result result(const Status& status) { return {status.row, status.code, status.factor}; }

// Require room for the decisions of n rows of m labels.
static void check_decisions(std::size_t n, std::size_t m, const Array<std::int8_t, 2>& labels,
                            const Array<double, 1>& expected) {
    require(labels.shape(0) == n && labels.shape(1) == m && expected.size() == n,
            "labels must have a row and expected a number for each row of the input");
}

static Exponents checked_exponents(double t, double u) {
    require(std::abs(t) <= 1e6 && std::abs(u) <= 1e6, "t and u must be from -1e6 to 1e6");
    return {t, u};
}

// Require a distribution of the number of labels for each row of p.
template <class T>
void check_numbers(const Array<const double, 2>& p, const Array<T, 2>& d) {
    require(d.shape(0) == p.shape(0) && d.shape(1) > 0,
            "d must have one row for each row of p, and a column for each number of labels");
}

static void check_constraints(const Constraints* constraints, std::size_t m) {
    require(!constraints || constraints->labels() == static_cast<Index>(m),
            "constraints must be those of the labels");
}

// Require that the m labels of a kernel are named by columns of `labels`.
static void check_names(const Array<const Index, 1>& names, std::size_t m,
                        const Array<std::int8_t, 2>& labels, const Constraints* constraints) {
    require(names.size() == m, "names must have one number for each label");
    require_indices(span(names), 0, labels.shape(1), "names must be columns of labels");
    check_constraints(constraints, labels.shape(1));
}

// Require room for the labels chosen in rows that store these many labels.
static void check_room(const Array<Index, 1>& found, std::span<const Index> possible,
                       const Constraints* constraints) {
    const Index most = constraints ? constraints->most_chosen(possible)
                                   : std::accumulate(possible.begin(), possible.end(), Index{0});
    require(static_cast<Index>(found.size()) >= most, "found must have room for all chosen labels");
}

// Return the number of entries of each row in CSR, and `more` for each.
static std::vector<Index> row_sizes(std::span<const Index> indptr, Index more) {
    std::vector<Index> sizes(indptr.size() - 1);
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = indptr[i + 1] - indptr[i] + more;
    return sizes;
}

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

template <class T>
Result bind_dense_rows(Array<const T, 2> proba, double beta2, double zero_division, bool nonempty,
                       const Rules& rules, Array<std::int8_t, 2> labels, Array<double, 1> expected) {
    check_decisions(proba.shape(0), proba.shape(1), labels, expected);
    return result(decide_dense_rows(matrix(proba), {beta2, zero_division, nonempty}, rules,
                                    matrix(labels), expected.data()));
}

// The capsules of scipy.linalg.cython_blas and cython_lapack, in the order of `Lapack`.
static Lapack lapack(const std::vector<nb::capsule>& capsules) {
    Lapack result;
    Index at = 0;
    const auto set = [&](auto& function) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
            capsules.at(at++).data());
    };
    set(result.dgemm);
    set(result.dsyrk);
    set(result.dpotrf);
    set(result.dpotri);
    set(result.spotrf);
    set(result.spotri);
    return result;
}

struct RidgeRows {
    std::shared_ptr<const Rows> rows;
};

template <class T>
Result bind_dense_columns(nb::ndarray<const T, nb::ndim<2>, nb::device::cpu> proba, double beta2,
                          double zero_division, bool nonempty, const Rules& rules,
                          nb::ndarray<std::int8_t, nb::ndim<2>, nb::device::cpu> labels,
                          Array<double, 1> expected, Array<std::uint8_t, 1> done) {
    const std::size_t n = proba.shape(0), m = proba.shape(1);
    require(labels.shape(0) == n && labels.shape(1) == m && expected.size() == m &&
                done.size() == m,
            "labels must have the shape of proba, and expected and done that of a row");
    require(m < 2 || (proba.stride(1) == 1 && labels.stride(1) == 1),
            "the columns of proba and labels must be next to each other");
    return result(decide_dense_columns(proba.data(), proba.shape(0), proba.shape(1),
                                       proba.stride(0), {beta2, zero_division, nonempty}, rules,
                                       {labels.data(), static_cast<Index>(labels.shape(0)),
                                        static_cast<Index>(labels.stride(0))},
                                       expected.data(), done.data()));
}

template <class T>
Result bind_csr_rows(Array<const T, 1> data, Array<const Index, 1> indptr, double beta2,
                     double zero_division, bool nonempty, const Rules& rules,
                     Array<std::int8_t, 1> chosen, Array<double, 1> expected) {
    require_rows(span(indptr), expected.size(), data.size());
    require(chosen.size() == data.size(), "chosen must have one mark for each entry");
    return result(decide_csr_rows(data.data(), span(indptr), {beta2, zero_division, nonempty},
                                  rules, chosen.data(), expected.data()));
}

template <class T>
Result bind_jaccard_dense_rows(Array<const T, 2> proba, double beta2, double zero_division,
                               bool nonempty, const Rules& rules, Array<std::int8_t, 2> labels,
                               Array<double, 1> expected) {
    check_decisions(proba.shape(0), proba.shape(1), labels, expected);
    return result(decide_jaccard_dense_rows(matrix(proba), {beta2, zero_division, nonempty}, rules,
                                            matrix(labels), expected.data()));
}

template <class T>
Result bind_jaccard_csr_rows(Array<const T, 1> data, Array<const Index, 1> indptr, double beta2,
                             double zero_division, bool nonempty, const Rules& rules,
                             Array<std::int8_t, 1> chosen, Array<double, 1> expected) {
    require_rows(span(indptr), expected.size(), data.size());
    require(chosen.size() == data.size(), "chosen must have one mark for each entry");
    return result(decide_jaccard_csr_rows(data.data(), span(indptr),
                                          {beta2, zero_division, nonempty}, rules, chosen.data(),
                                          expected.data()));
}

template <class T>
Result bind_cardinality_rows(Array<const T, 3> P, Array<const double, 2> mass,
                             Array<const Index, 1> names, double slack, double beta2,
                             double zero_division, bool nonempty, Array<std::int8_t, 2> labels,
                             Array<double, 1> expected, const Constraints* constraints) {
    check_decisions(P.shape(0), labels.shape(1), labels, expected);
    check_names(names, P.shape(1), labels, constraints);
    require(mass.shape(0) == 2 && mass.shape(1) == P.shape(0),
            "mass must have two rows, with one number for each row of P");
    return result(decide_cardinality_rows(P.data(), P.shape(0), P.shape(1), P.shape(2),
                                          matrix(mass), span(names), slack,
                                          {beta2, zero_division, nonempty}, matrix(labels),
                                          expected.data(), constraints));
}

template <class T>
void bind_constrain_dense(Array<const T, 2> proba, double beta2, double zero_division, bool nonempty,
                          const Rules& rules, Array<std::int8_t, 2> labels,
                          Array<double, 1> expected, const Constraints& constraints) {
    check_decisions(proba.shape(0), proba.shape(1), labels, expected);
    check_constraints(&constraints, proba.shape(1));
    constrain_dense_rows(matrix(proba), {beta2, zero_division, nonempty}, rules, matrix(labels),
                         expected.data(), constraints);
}

template <class T>
void bind_constrain_csr(Array<const T, 1> data, Array<const Index, 1> indices,
                        Array<const Index, 1> indptr, double beta2, double zero_division,
                        bool nonempty, const Rules& rules, Array<const std::int8_t, 1> chosen,
                        Array<Index, 1> found, Array<Index, 1> ends, Array<double, 1> expected,
                        const Constraints& constraints) {
    require_rows(span(indptr), expected.size(), data.size());
    require(indices.size() == data.size() && chosen.size() == data.size() &&
                ends.size() == expected.size(),
            "indices and chosen must have a number for each entry, and ends for each row");
    require_indices(span(indices), 0, constraints.labels(), "indices must be labels");
    check_room(found, row_sizes(span(indptr), 0), &constraints);
    constrain_csr_rows(data.data(), indices.data(), span(indptr), {beta2, zero_division, nonempty},
                       rules, chosen.data(), found.data(), ends.data(), expected.data(),
                       constraints);
}

#include "budget_bindings.hpp"

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
    module.def("runs_x86_64_v3", &runs_x86_64_v3);
    module.attr("NOT_PROBABILITY") = NOT_PROBABILITY;
    module.attr("SHORT") = SHORT;
    module.attr("SMALL") = SMALL;
    module.attr("POWERS") = POWERS;
    module.attr("TAIL") = TAIL;
    module.attr("GROWTH") = nb::make_tuple(GROWTH[0], GROWTH[1], GROWTH[2], GROWTH[3], GROWTH[4], GROWTH[5]);

    nb::set_leak_warnings(false);  // rules stay in a cache of Python until the process ends
    const nb::call_guard<nb::gil_scoped_release> without_gil;
    nb::class_<Rules>(module, "Rules")
        .def(nb::init<>())
        .def_rw("fixed_reach", &Rules::fixed_reach)
        .def_rw("fixed_start", &Rules::fixed_start)
        .def_rw("fixed_log_z", &Rules::fixed_log_z)
        .def_rw("fixed_weight", &Rules::fixed_weight)
        .def_rw("fixed_z", &Rules::fixed_z)
        .def_rw("fixed_zeta", &Rules::fixed_zeta)
        .def_rw("fixed_u", &Rules::fixed_u)
        .def_rw("ratio", &Rules::ratio)
        .def_rw("start", &Rules::start)
        .def_rw("exponent", &Rules::exponent)
        .def_rw("weight", &Rules::weight)
        .def_rw("longest", &Rules::longest);

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
        .def("most_chosen",
             [](const Constraints& self, Array<const Index, 1> possible) {
                 return self.most_chosen(span(possible));
             })
        .def_prop_ro("has_costs", &Constraints::has_costs);
    module.def("constrain_dense_rows", &bind_constrain_dense<double>, without_gil, "proba"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert(), "constraints"_a);
    module.def("constrain_dense_rows", &bind_constrain_dense<float>, without_gil, "proba"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert(), "constraints"_a);
    module.def("constrain_csr_rows", &bind_constrain_csr<double>, without_gil, "data"_a, "indices"_a, "indptr"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "chosen"_a, "found"_a.noconvert(), "ends"_a.noconvert(), "expected"_a.noconvert(), "constraints"_a);
    module.def("constrain_csr_rows", &bind_constrain_csr<float>, without_gil, "data"_a, "indices"_a, "indptr"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "chosen"_a, "found"_a.noconvert(), "ends"_a.noconvert(), "expected"_a.noconvert(), "constraints"_a);
    module.def(
        "find_infeasible_rows",
        [](Array<const std::int8_t, 2> labels, const Constraints& constraints,
           Array<bool, 1> infeasible) {
            check_constraints(&constraints, labels.shape(1));
            require(infeasible.size() == labels.shape(0),
                    "infeasible must have one value for each row");
            find_infeasible_rows(matrix(labels), constraints, infeasible.data());
        },
        without_gil, "labels"_a, "constraints"_a, "infeasible"_a.noconvert());

    bind_budgets(module);
    module.def("decide_dense_rows", &bind_dense_rows<double>, without_gil, "proba"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert());
    module.def("decide_dense_rows", &bind_dense_rows<float>, without_gil, "proba"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert());
    module.def("decide_dense_columns", &bind_dense_columns<double>, without_gil, "proba"_a.noconvert(), "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert(), "done"_a.noconvert());
    module.def("decide_dense_columns", &bind_dense_columns<float>, without_gil, "proba"_a.noconvert(), "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert(), "done"_a.noconvert());
    module.def("decide_csr_rows", &bind_csr_rows<double>, without_gil, "data"_a, "indptr"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "chosen"_a.noconvert(), "expected"_a.noconvert());
    module.def("decide_csr_rows", &bind_csr_rows<float>, without_gil, "data"_a, "indptr"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "chosen"_a.noconvert(), "expected"_a.noconvert());
    module.def("decide_jaccard_dense_rows", &bind_jaccard_dense_rows<double>, without_gil, "proba"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert());
    module.def("decide_jaccard_dense_rows", &bind_jaccard_dense_rows<float>, without_gil, "proba"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert());
    module.def("decide_jaccard_csr_rows", &bind_jaccard_csr_rows<double>, without_gil, "data"_a, "indptr"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "chosen"_a.noconvert(), "expected"_a.noconvert());
    module.def("decide_jaccard_csr_rows", &bind_jaccard_csr_rows<float>, without_gil, "data"_a, "indptr"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "chosen"_a.noconvert(), "expected"_a.noconvert());
    module.def(
        "decide_floor_rows",
        [](Array<const double, 1> data, Array<const Index, 1> indptr, double beta2,
           double zero_division, bool nonempty, const Rules& rules, double precision, double recall,
           double rate, Array<const double, 2> missed, Index repeat, Array<std::int8_t, 1> chosen,
           Array<double, 1> expected, Array<double, 2> possible) {
            require_rows(span(indptr), expected.size(), data.size());
            require(chosen.size() == data.size(), "chosen must have one mark for each entry");
            require(possible.shape(0) == expected.size() && possible.shape(1) == 2,
                    "possible must have two numbers for each row");
            return result(decide_floor_rows(data.data(), span(indptr),
                                            {beta2, zero_division, nonempty}, rules,
                                            {precision, recall}, {rate, matrix(missed), repeat},
                                            chosen.data(), expected.data(), matrix(possible)));
        },
        without_gil, "data"_a, "indptr"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "precision"_a, "recall"_a, "rate"_a, "missed"_a, "repeat"_a, "chosen"_a.noconvert(), "expected"_a.noconvert(), "possible"_a.noconvert());
    module.def("decide_cardinality_rows", &bind_cardinality_rows<double>, without_gil, "P"_a, "mass"_a, "names"_a, "slack"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "labels"_a.noconvert(), "expected"_a.noconvert(), "constraints"_a.none() = nb::none());
    module.def("decide_cardinality_rows", &bind_cardinality_rows<float>, without_gil, "P"_a, "mass"_a, "names"_a, "slack"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "labels"_a.noconvert(), "expected"_a.noconvert(), "constraints"_a.none() = nb::none());
    module.def(
        "decide_sample_rows",
        [](Array<const std::uint8_t, 3> samples, Array<const Index, 1> names, double beta2,
           double zero_division, bool nonempty, Array<std::int8_t, 2> labels,
           Array<double, 1> expected, const Constraints* constraints) {
            check_decisions(samples.shape(0), labels.shape(1), labels, expected);
            check_names(names, samples.shape(2), labels, constraints);
            decide_sample_rows(samples.data(), samples.shape(0), samples.shape(1),
                               samples.shape(2), span(names), {beta2, zero_division, nonempty},
                               matrix(labels), expected.data(), constraints);
        },
        without_gil, "samples"_a, "names"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "labels"_a.noconvert(), "expected"_a.noconvert(), "constraints"_a.none() = nb::none());
    module.def(
        "decide_joint_rows",
        [](Array<const Index, 1> indptr, Array<const Index, 1> indices,
           Array<const Index, 1> column, Array<const double, 1> s, Array<const Index, 1> names,
           Array<const double, 2> proba, double beta2, double zero_division, bool nonempty,
           Array<std::int8_t, 2> labels, Array<double, 1> expected,
           const Constraints* constraints) {
            check_decisions(proba.shape(0), labels.shape(1), labels, expected);
            check_names(names, labels.shape(1), labels, constraints);
            require_rows(span(indptr), column.size(), indices.size());
            require(proba.shape(1) == column.size(), "column must have one number for each set");
            require_indices(span(indices), 0, labels.shape(1), "indices must be labels");
            require_indices(span(column), -1, s.size(), "column must be -1 or a column of s");
            decide_joint_rows(span(indptr), span(indices), span(column), span(s), span(names),
                              matrix(proba), {beta2, zero_division, nonempty}, matrix(labels),
                              expected.data(), constraints);
        },
        without_gil, "indptr"_a, "indices"_a, "column"_a, "s"_a, "names"_a, "proba"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "labels"_a.noconvert(), "expected"_a.noconvert(), "constraints"_a.none() = nb::none());
    module.def(
        "decide_factor_rows",
        [](Array<const double, 2> values, Array<double, 2> d, bool given,
           Array<const Index, 1> sizes, Array<const Index, 1> depths, Array<const Index, 1> names,
           Index multiple, double slack, double beta2, double zero_division, bool nonempty,
           const Rules& rules, Array<std::int8_t, 2> labels, Array<double, 1> expected,
           const Constraints* constraints) {
            check_decisions(values.shape(0), labels.shape(1), labels, expected);
            check_names(names, names.size(), labels, constraints);
            require(d.shape(0) == values.shape(0), "d must have one row for each row of values");
            const Factors factors = checked_factors(sizes, depths, multiple, names.size(),
                                                    values.shape(1), d.shape(1));
            return result(decide_factor_rows(
                matrix(values), matrix(d), given, factors, span(names), slack, {beta2, zero_division, nonempty}, rules, matrix(labels),
                expected.data(), constraints));
        },
        without_gil, "values"_a, "d"_a.noconvert(), "given"_a, "sizes"_a, "depths"_a, "names"_a, "multiple"_a, "slack"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "labels"_a.noconvert(), "expected"_a.noconvert(), "constraints"_a.none() = nb::none());
    module.def(
        "decide_sparse_factor_rows",
        [](Array<const double, 1> values, Array<const Index, 1> stored,
           Array<const Index, 1> indptr, Array<double, 1> d, Index width,
           Array<const Index, 1> sizes, Array<const Index, 1> depths, Array<const Index, 1> fixed,
           Index multiple, double slack, double beta2, double zero_division, bool nonempty,
           const Rules& rules, Array<Index, 1> found, Array<Index, 1> ends,
           Array<double, 1> expected, const Constraints* constraints) {
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
            check_room(found, row_sizes(span(indptr), fixed.size()), constraints);
            const Factors factors =
                checked_factors(sizes, depths, multiple, fixed.size(), width, d.size());
            return result(decide_sparse_factor_rows(
                values.data(), stored.data(), span(indptr), d.data(), width, factors, span(fixed),
                slack,
                {beta2, zero_division, nonempty}, rules, found.data(), ends.data(),
                expected.data(), constraints));
        },
        without_gil, "values"_a, "stored"_a, "indptr"_a, "d"_a.noconvert(), "width"_a, "sizes"_a, "depths"_a, "fixed"_a, "multiple"_a, "slack"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "found"_a.noconvert(), "ends"_a.noconvert(), "expected"_a.noconvert(), "constraints"_a.none() = nb::none());
    module.def(
        "rank_candidates",
        [](Array<const double, 1> p, Array<const double, 1> weighted, double s_max, double beta2,
           double floor, Array<Index, 1> order) {
            require(p.size() > 0 && p.size() == weighted.size() && p.size() <= order.size(),
                    "weighted and order must have one number for each label");
            RankWorkspace work;
            std::vector<Index> found(p.size() + 1);
            const Candidates candidates =
                rank_candidates(span(p), span(weighted), s_max, beta2, floor, found.data(), work);
            std::copy(found.begin(), found.begin() + candidates.size, order.data());
            return std::tuple(candidates.size, candidates.guess, candidates.floor);
        },
        without_gil, "p"_a, "weighted"_a, "s_max"_a, "beta2"_a, "floor"_a, "order"_a.noconvert());
    module.def(
        "search",
        [](Array<const double, 2> C, Array<const Index, 1> order, Array<const double, 1> totals,
           Array<const double, 1> base, Array<const double, 1> scale, bool quadrature, Index limit,
           Index guess, double floor, double empty) {
            const std::size_t columns = C.shape(1);
            require(totals.size() == columns && base.size() == columns && scale.size() == columns,
                    "totals, base and scale must have one number for each column of C");
            require_indices(span(order), 0, C.shape(0), "order must be rows of C");
            require(1 <= guess && 1 <= limit && limit <= static_cast<Index>(order.size()),
                    "guess and limit must be set sizes");
            SearchWorkspace work;
            const SearchResult best =
                search(matrix(C), span(order), span(totals), {span(base), span(scale), quadrature},
                       limit, guess, floor, empty, work);
            return std::tuple(best.size, best.value, best.evaluations);
        },
        without_gil, "C"_a, "order"_a, "totals"_a, "base"_a, "scale"_a, "quadrature"_a, "limit"_a, "guess"_a, "floor"_a, "empty"_a);
    module.def("transpose", &bind_transpose<double>, without_gil, "from"_a.noconvert(), "to"_a.noconvert());
    module.def("transpose", &bind_transpose<float>, without_gil, "from"_a.noconvert(), "to"_a.noconvert());
    module.def(
        "tilt",
        [](Array<const double, 3> logits, Array<const double, 2> d, Array<double, 3> P) {
            const std::size_t depth = logits.shape(2), S = P.shape(2);
            require(logits.shape(0) == P.shape(0) && logits.shape(1) == P.shape(1) &&
                        (depth == 1 || depth == S) && d.shape(0) == P.shape(0) &&
                        d.shape(1) == S + 1,
                    "logits, d and P must be of shapes (n, m, 1 or S), (n, S + 1) and (n, m, S)");
            tilt(logits.data(), logits.shape(2), matrix(d), P.data(), P.shape(0), P.shape(1),
                 P.shape(2));
        },
        without_gil, "logits"_a, "d"_a, "P"_a.noconvert());
    module.def(
        "condition",
        [](Array<const double, 2> logits, Array<const double, 2> d, Array<double, 3> P) {
            require(logits.shape(0) == P.shape(0) && logits.shape(1) == P.shape(1) &&
                        d.shape(0) == P.shape(0) && d.shape(1) == P.shape(2) + 1,
                    "logits, d and P must be of shapes (n, m), (n, S + 1) and (n, m, S)");
            condition(matrix(logits), matrix(d), P.data(), P.shape(2));
        },
        without_gil, "logits"_a, "d"_a, "P"_a.noconvert());
    module.def(
        "logistic_sums",
        [](Array<const double, 2> x, Array<const double, 2> v, Array<const double, 2> y,
           Array<const double, 2> w, std::optional<Array<const Index, 2>> labels,
           Array<const double, 1> slope, Array<const double, 1> shift, double bend,
           Array<double, 2> sums, Array<double, 1> of_bend) {
            const std::size_t m = slope.size();
            for (const auto& other : {v, y, w}) {
                require(other.shape(0) == x.shape(0) && other.shape(1) == x.shape(1),
                        "x, v, y and w must have the same shape");
            }
            require(labels ? labels->shape(0) == x.shape(0) && labels->shape(1) == x.shape(1)
                           : x.shape(1) == m,
                    "each entry must have a label");
            require(shift.size() == m && sums.shape(0) == LOGISTIC_SUMS && sums.shape(1) == m &&
                        of_bend.size() == 2,
                    "shift must have a number for each label, sums (6, m), of_bend 2");
            if (labels) {
                require_indices(std::span<const Index>(labels->data(), labels->size()), 0, m + 1,
                                "labels must be columns, or one more");
            }
            add_logistic({matrix(x), matrix(v), matrix(y), matrix(w),
                          labels ? labels->data() : nullptr},
                         span(slope), span(shift), bend, matrix(sums), of_bend.data());
        },
        without_gil, "x"_a, "v"_a, "y"_a, "w"_a, "labels"_a.none(), "slope"_a, "shift"_a, "bend"_a,
        "sums"_a.noconvert(), "of_bend"_a.noconvert());
    module.def(
        "softmax",
        [](Array<double, 2> rows) {
            require(rows.shape(1) > 0, "rows must have at least one column");
            softmax(matrix(rows));
        },
        without_gil, "rows"_a.noconvert());
    module.def(
        "decide_reweighted_rows",
        [](Array<const double, 2> p, Array<const double, 2> d, double t, double u, double beta2,
           double zero_division, bool nonempty, Index min_labels, Index max_labels,
           Array<std::int8_t, 2> labels, Array<double, 1> expected) {
            check_numbers(p, d);
            check_decisions(p.shape(0), p.shape(1), labels, expected);
            decide_reweighted_rows(matrix(p), matrix(d), checked_exponents(t, u),
                                   {beta2, zero_division, nonempty},
                                   min_labels, max_labels, matrix(labels), expected.data());
        },
        without_gil, "p"_a, "d"_a, "t"_a, "u"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "min_labels"_a, "max_labels"_a, "labels"_a.noconvert(), "expected"_a.noconvert());
    module.def(
        "reweight_marginals",
        [](Array<const double, 2> p, Array<const double, 2> d, double t, double u,
           Array<double, 2> to) {
            check_numbers(p, d);
            require(to.shape(0) == p.shape(0) && to.shape(1) == p.shape(1),
                    "to must have the shape of p");
            reweight_marginals(matrix(p), matrix(d), checked_exponents(t, u), matrix(to));
        },
        without_gil, "p"_a, "d"_a, "t"_a, "u"_a, "to"_a.noconvert());
    module.def(
        "poisson_binomial",
        [](Array<const double, 2> p, Array<double, 2> d) {
            check_numbers(p, d);
            poisson_binomial(matrix(p), matrix(d));
        },
        without_gil, "p"_a, "d"_a.noconvert());
    module.def(
        "bet",
        [](Array<const double, 2> values, double mean, Array<double, 1> wealth) {
            require(wealth.size() == values.shape(1), "wealth must have one number for each column");
            bet(matrix(values), mean, wealth.data());
        },
        without_gil, "values"_a, "mean"_a, "wealth"_a.noconvert());
    module.def(
        "apply_trees",
        [](Array<const float, 2> X, Array<const Index, 1> root,
           Array<const std::int32_t, 1> left, Array<const std::int32_t, 1> right,
           Array<const std::int32_t, 1> feature, Array<const double, 1> threshold,
           Array<const std::uint8_t, 1> missing_left, Array<std::int32_t, 2> leaves) {
            const std::size_t nodes = left.size();
            require(right.size() == nodes && feature.size() == nodes && threshold.size() == nodes &&
                        missing_left.size() == nodes,
                    "the arrays of the nodes must have one length");
            require(leaves.shape(0) == X.shape(0) && leaves.shape(1) == root.size(),
                    "leaves must have a row for each row of X and a column for each tree");
            return apply_trees(matrix(X),
                               {span(root), span(left), span(right), span(feature),
                                span(threshold), span(missing_left)},
                               matrix(leaves));
        },
        without_gil, "X"_a, "root"_a, "left"_a, "right"_a, "feature"_a, "threshold"_a, "missing_left"_a, "leaves"_a.noconvert());
    module.def(
        "grow_tree",
        [](Array<const std::uint8_t, 2> columns, Array<const std::uint8_t, 1> bins,
           Array<const std::int32_t, 1> indices, Array<const Index, 1> indptr,
           Array<const std::uint8_t, 1> zero_bin, Array<const float, 2> values,
           Array<const float, 1> weight, Array<Index, 1> rows, Index most_features, Index leaf,
           std::uint64_t seed, Array<std::int32_t, 2> links, Array<std::uint8_t, 2> bytes) {
            const BinnedFeatures X{matrix(columns), span(bins), span(indices), span(indptr),
                                   span(zero_bin)};
            check_features(X, weight.size());
            require(values.shape(0) == weight.size() && values.shape(1) % WIDTH == 0,
                    "values must have a row for each weight, and a multiple of 8 columns");
            require_indices(std::span<const Index>(span(rows)), 0, weight.size(),
                            "rows must be rows of values");
            require(leaf >= 1, "leaf must be 1 or more");
            const Index room = std::max<Index>(1, 2 * (static_cast<Index>(rows.size()) / leaf));
            require(links.shape(0) == 3 && bytes.shape(0) == 2 &&
                        static_cast<Index>(std::min(links.shape(1), bytes.shape(1))) >= room,
                    "links and bytes must have room for all nodes");
            TreeGrower grower(X, matrix(values), span(weight), most_features, leaf, seed);
            const auto l = matrix(links);
            const auto b = matrix(bytes);
            return grower.grow(span(rows), {l[0], l[1], l[2], b[0], b[1]});
        },
        without_gil, "columns"_a, "bins"_a, "indices"_a, "indptr"_a, "zero_bin"_a, "values"_a, "weight"_a, "rows"_a.noconvert(), "most_features"_a, "leaf"_a, "seed"_a, "links"_a.noconvert(), "bytes"_a.noconvert());
    module.def(
        "group_rows",
        [](Array<const double, 2> X, Index most, Array<Index, 1> group) {
            require(group.size() == X.shape(0), "group must have one number for each row of X");
            return group_rows(matrix(X), most, group.data());
        },
        without_gil, "X"_a, "most"_a, "group"_a.noconvert());
    nb::class_<RidgeRows>(module, "RidgeRows")
        .def("__init__",
             [](RidgeRows* self, const std::vector<nb::capsule>& capsules,
                Array<const double, 2> Z) {
                 new (self) RidgeRows{std::make_shared<const Rows>(lapack(capsules), matrix(Z))};
             },
             "lapack"_a, "Z"_a)
        .def("__init__",
             [](RidgeRows* self, const std::vector<nb::capsule>& capsules,
                Array<const double, 1> data, Array<const std::uint32_t, 1> indices,
                Array<const Index, 1> indptr, Index p) {
                 require(data.size() == indices.size() && indptr.size() > 0,
                         "indices must have one number for each entry, and indptr at least one");
                 require_rows(span(indptr), indptr.size() - 1, data.size());
                 require_indices(span(indices), 0, p, "indices must be features");
                 new (self) RidgeRows{std::make_shared<const Rows>(
                     lapack(capsules), data.data(), indices.data(), span(indptr), p)};
             },
             "lapack"_a, "data"_a, "indices"_a, "indptr"_a, "p"_a);
    module.def(
        "fit_ridge",
        [](const RidgeRows& rows, Array<const Index, 1> group, Array<const double, 1> weight,
           const std::vector<std::tuple<Array<const Index, 1>, Array<const Index, 1>>>& folds,
           Array<const std::int32_t, 2> code, Index K, Array<const double, 2> extra,
           Array<const double, 1> penalties, bool penalize_intercept, bool reference_class,
           double tol, Index max_iter, bool cholesky, Index batch, Array<double, 2> theta,
           Array<Index, 1> best, Array<double, 2> losses, Array<Index, 1> steps,
           Array<Index, 1> failed, Array<double, 2> held_out) {
            const std::size_t n = group.size(), targets = code.shape(0);
            require(weight.size() == n && code.shape(1) == n,
                    "weight and code must have one number for each row");
            require_indices(span(group), 0, rows.rows->count(), "group must be rows of Z");
            require_indices(std::span(code.data(), code.size()), 0, K, "code must be classes");
            for (const auto& [train, test] : folds) {
                require_indices(span(train), 0, n, "folds must be rows");
                require_indices(span(test), 0, n, "folds must be rows");
            }
            require(theta.shape(0) == targets && best.size() == targets &&
                        losses.shape(0) == targets && steps.size() == targets &&
                        failed.size() == targets &&
                        losses.shape(1) == folds.size() * penalties.size() &&
                        (held_out.size() == 0 ||
                         held_out.size() == targets * n * static_cast<std::size_t>(K)),
                    "results must have one row for each target");
            RidgeInputs inputs{rows.rows, span(group), span(weight), {}, matrix(code), K, matrix(extra)};
            for (const auto& [train, test] : folds) inputs.folds.push_back({span(train), span(test)});
            const RidgeOptions options{span(penalties), penalize_intercept, reference_class, tol,
                                       max_iter, cholesky, batch};
            const RidgeResults results{matrix(theta), span(best), matrix(losses), span(steps),
                                       span(failed), matrix(held_out)};
            nb::gil_scoped_release release;
            RidgeFitter(inputs, options, results).fit();
        },
        "rows"_a, "group"_a, "weight"_a, "folds"_a, "code"_a, "K"_a, "extra"_a, "penalties"_a, "penalize_intercept"_a, "reference_class"_a, "tol"_a, "max_iter"_a, "cholesky"_a, "batch"_a, "theta"_a.noconvert(), "best"_a.noconvert(), "losses"_a.noconvert(), "steps"_a.noconvert(), "failed"_a.noconvert(), "held_out"_a.noconvert());

    // Parts of kernels that only tests call by themselves.
    module.def(
        "decide_long_rows",
        [](Array<const double, 2> proba, double beta2, double zero_division, bool nonempty,
           const Rules& rules, Array<std::int8_t, 2> labels, Array<double, 1> expected) {
            check_decisions(proba.shape(0), proba.shape(1), labels, expected);
            MarginalsWorkspace work(proba.shape(1), rules);
            const Objective objective{beta2, zero_division, nonempty};
            for (Index row = 0; row < matrix(proba).rows; ++row) {
                expected.data()[row] = decide_marginals_row(
                    matrix(proba).row(row), matrix(labels)[row], objective, rules, work);
            }
        },
        "proba"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a,
        "labels"_a.noconvert(), "expected"_a.noconvert());
    module.def(
        "sort_descending",
        [](Array<double, 1> value, Array<Index, 1> place, bool repair) {
            require(value.size() == place.size(), "place must have one number for each value");
            std::vector<double> spare(value.size());
            std::vector<Index> spare_place(value.size()), count(value.size() + 2);
            if (repair) {
                repair_order(span(value), span(place), spare.data(), spare_place.data());
            } else {
                sort_descending(span(value), span(place), spare.data(), spare_place.data(),
                                count.data());
            }
        },
        "value"_a.noconvert(), "place"_a.noconvert(), "repair"_a);
}
