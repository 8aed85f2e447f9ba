// Macro and micro decisions with limits on the number of labels of a row.
#include "bindings.hpp"
#include "budget_bounds.hpp"
#include "prefixes.hpp"

struct BudgetColumns {
    Columns columns;

    std::vector<double> mean() const {
        std::vector<double> result;
        for (const BudgetColumn& column : columns) result.push_back(column.mean);
        return result;
    }
};

struct BudgetTask {
    Objective objective;
    const Rules& rules;
    RowLimits limits;
    bool weighted;
    double tolerance;
};

template <class T>
std::optional<BudgetColumns> decide(const BudgetTask& task, const BudgetRows<T>& rows,
                                    Array<const double, 1> slope, Array<const double, 1> loss,
                                    std::span<std::int8_t> chosen, Array<double, 1> multiplier,
                                    std::span<std::int32_t> filled) {
    const std::size_t m = static_cast<std::size_t>(rows.m);
    require(slope.size() == m && loss.size() == m && length(chosen) == rows.stored() &&
                static_cast<Index>(multiplier.size()) == rows.n,
            "slope and loss must have a number for each label, chosen for each entry, multiplier "
            "for each row");
    require(task.limits.least <= rows.m, "least must be a number of labels");
    Index missing = 0;
    for (Index i = 0; i < rows.n; ++i) {
        missing += std::max<Index>(0, task.limits.least - rows.size(i));
    }
    require(length(filled) == missing, "filled must have room for what rows lack");
    BudgetColumns result{Columns(m)};
    GainTable gains(m);
    std::copy_n(slope.data(), m, gains.a.begin());
    std::copy_n(loss.data(), m, gains.loss.begin());
    const bool valid = decide_budget(rows, task.tolerance, task.objective, task.rules, task.weighted,
                                     task.limits, std::move(gains), chosen.data(),
                                     multiplier.data(), result.columns, filled);
    return valid ? std::optional(std::move(result)) : std::nullopt;
}

// Require that results have numbers for columns from `first` on.
static void check_columns(const BudgetColumns& columns, Index first, const Array<double, 1>& expected,
                          const Array<double, 1>& bound) {
    require(0 <= first && first + expected.size() <= columns.columns.size() &&
                bound.size() == expected.size(),
            "expected and bound must have a number for each of the columns from first on");
}

template <class T>
void bind_budget_type(nb::module_& module) {
    const nb::call_guard<nb::gil_scoped_release> without_gil;
    module.def(
        "decide_budget_dense",
        [](const BudgetTask& task, Array<const T, 2> proba, Array<const double, 1> slope,
           Array<const double, 1> loss, Array<std::int8_t, 2> chosen, Array<double, 1> multiplier) {
            const Matrix<const T> p = matrix(proba);
            return decide(task, BudgetRows<T>{p.data, nullptr, nullptr, p.rows, p.cols}, slope, loss,
                          {chosen.data(), chosen.size()}, multiplier, {});
        },
        without_gil, "task"_a, "proba"_a, "slope"_a, "loss"_a, "chosen"_a.noconvert(),
        "multiplier"_a.noconvert());
    module.def(
        "decide_budget_csr",
        [](const BudgetTask& task, Array<const T, 1> data, Array<const std::int32_t, 1> labels,
           Array<const Index, 1> indptr, Array<const double, 1> slope, Array<const double, 1> loss,
           Array<std::int8_t, 1> chosen, Array<double, 1> multiplier,
           Array<std::int32_t, 1> filled) {
            const Index n = multiplier.size(), m = slope.size();
            require_rows(span(indptr), n, data.size());
            require(labels.size() == data.size(), "labels must have one number for each entry");
            require_indices(span(labels), 0, m, "labels must be columns");
            for (Index i = 0; i < n; ++i) {
                require(indptr.data()[i + 1] - indptr.data()[i] <= m,
                        "a row must have each label once");
            }
            return decide(task, BudgetRows<T>{data.data(), labels.data(), indptr.data(), n, m}, slope,
                          loss, span(chosen), multiplier, span(filled));
        },
        without_gil, "task"_a, "data"_a, "labels"_a, "indptr"_a, "slope"_a, "loss"_a,
        "chosen"_a.noconvert(), "multiplier"_a.noconvert(), "filled"_a.noconvert());
    module.def(
        "evaluate_budget_dense",
        [](const BudgetTask& task, const BudgetColumns& columns, Array<const T, 2> proba,
           Array<const std::int8_t, 2> chosen, Array<const double, 1> multiplier, Index first,
           Array<double, 1> expected, Array<double, 1> bound) {
            check_columns(columns, first, expected, bound);
            require(columns.columns.size() == proba.shape(1) && chosen.shape(0) == proba.shape(0) &&
                        chosen.shape(1) == proba.shape(1) && multiplier.size() == proba.shape(0),
                    "chosen must have the shape of proba, multiplier a number for each row");
            evaluate_dense(matrix(proba), chosen.data(), multiplier.data(), first, columns.columns,
                           task.objective, task.rules, span(expected), bound.data());
        },
        without_gil, "task"_a, "columns"_a, "proba"_a, "chosen"_a, "multiplier"_a, "first"_a,
        "expected"_a.noconvert(), "bound"_a.noconvert());
    module.def(
        "evaluate_budget_csc",
        [](const BudgetTask& task, const BudgetColumns& columns, Array<const T, 1> data,
           Array<const std::int32_t, 1> places, Array<const Index, 1> indptr,
           Array<const std::int8_t, 1> chosen, Array<const double, 1> multiplier, Index first,
           Array<double, 1> expected, Array<double, 1> bound) {
            check_columns(columns, first, expected, bound);
            require_rows(span(indptr), expected.size(), data.size());
            require(places.size() == data.size() && chosen.size() == data.size(),
                    "places and chosen must have a number for each entry");
            require_indices(span(places), 0, multiplier.size(), "places must be rows");
            evaluate_csc(data.data(), places.data(), span(indptr), chosen.data(), span(multiplier),
                         first, columns.columns, task.objective, task.rules, span(expected),
                         bound.data());
        },
        without_gil, "task"_a, "columns"_a, "data"_a, "places"_a, "indptr"_a, "chosen"_a,
        "multiplier"_a, "first"_a, "expected"_a.noconvert(), "bound"_a.noconvert());
}

void bind_budgets(nb::module_& module) {
    const nb::call_guard<nb::gil_scoped_release> without_gil;
    nb::class_<BudgetTask>(module, "BudgetTask")
        .def(
            "__init__",
            [](BudgetTask* self, double beta2, double zero_division, bool nonempty,
               const Rules& rules, Index least, Index most, bool weighted, double tolerance) {
                require(0 <= least && least <= most && most >= 1,
                        "least and most must be numbers of labels");
                new (self) BudgetTask{
                    {beta2, zero_division, nonempty}, rules, {least, most}, weighted, tolerance};
            },
            "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "least"_a, "most"_a,
            "weighted"_a, "tolerance"_a, nb::keep_alive<1, 5>());
    nb::class_<BudgetColumns>(module, "BudgetColumns")
        .def_prop_ro("mean", &BudgetColumns::mean);
    bind_budget_type<double>(module);
    bind_budget_type<float>(module);
    module.def(
        "mark_top",
        [](Array<const double, 1> data, Array<const Index, 1> indptr, Index least, Index most,
           Array<std::int8_t, 1> marks) {
            require(indptr.size() > 0, "indptr must have one number more than rows");
            require_rows(span(indptr), indptr.size() - 1, data.size());
            require(marks.size() == data.size(), "marks must have one number for each entry");
            mark_top(data.data(), span(indptr), {least, most}, marks.data());
        },
        without_gil, "data"_a, "indptr"_a, "least"_a, "most"_a, "marks"_a.noconvert());
    module.def(
        "decide_prefix",
        [](Array<const double, 1> p, Array<const double, 1> sequence, Index least, double beta2,
           double zero_division, bool nonempty, const Rules& rules) {
            require(0 <= least && least <= static_cast<Index>(sequence.size()),
                    "least must be a number of labels of the sequence");
            const auto [count, value] = decide_prefix(
                span(p), span(sequence), least, {beta2, zero_division, nonempty}, rules);
            return std::tuple(count, value);
        },
        without_gil, "p"_a, "sequence"_a, "least"_a, "beta2"_a, "zero_division"_a, "nonempty"_a,
        "rules"_a);
}
