// Macro and micro decisions with limits on the number of labels of a row.
#include "bindings.hpp"
#include "budget_bounds.hpp"
#include "prefixes.hpp"

// Return entries of n rows and m columns, all of them where there are no labels.
template <class T>
BudgetRows<T> checked_rows(const Array<const T, 1>& data,
                           const std::optional<Array<const std::int32_t, 1>>& labels,
                           const Array<const Index, 1>& indptr, std::size_t marks, Index n,
                           Index m) {
    require_rows(span(indptr), n, data.size());
    require(marks == data.size() && (!labels || labels->size() == data.size()),
            "labels and chosen must have a number for each entry");
    if (labels) require_indices(span(*labels), 0, m, "labels must be columns");
    const BudgetRows<T> rows{data.data(), labels ? labels->data() : nullptr, indptr.data(), n, m};
    for (Index i = 0; i < n; ++i) {
        require(labels ? rows.size(i) <= m : rows.size(i) == m, "a row must have each label once");
    }
    return rows;
}

template <class T>
void bind_budget_type(nb::module_& module) {
    module.def(
        "decide_budget",
        [](const BudgetTask& task, Array<const T, 1> data,
           std::optional<Array<const std::int32_t, 1>> labels, Array<const Index, 1> indptr,
           GainTable& gains, Array<std::int8_t, 1> chosen, Array<double, 1> multiplier) {
            const auto rows = checked_rows(data, labels, indptr, chosen.size(), multiplier.size(),
                                           gains.a.size() - LANES);
            return decide_budget(rows, task, gains, chosen.data(), multiplier.data());
        },
        without_gil, "task"_a, "data"_a, "labels"_a.none(), "indptr"_a, "gains"_a,
        "chosen"_a.noconvert(), "multiplier"_a.noconvert());
    module.def(
        "evaluate_budget",
        [](const BudgetTask& task, const Columns& columns, Array<const T, 1> data,
           std::optional<Array<const std::int32_t, 1>> places, Array<const Index, 1> indptr,
           Array<const std::int8_t, 1> chosen, Array<const double, 1> multiplier,
           Array<double, 1> value, Array<double, 1> bound) {
            const auto entries = checked_rows(data, places, indptr, chosen.size(), columns.size(),
                                              multiplier.size());
            require(value.size() == columns.size() && bound.size() == columns.size(),
                    "value and bound must have a number for each column");
            evaluate_columns(entries, chosen.data(), span(multiplier), columns, task, value.data(),
                             bound.data());
        },
        without_gil, "task"_a, "columns"_a, "data"_a, "places"_a.none(), "indptr"_a, "chosen"_a,
        "multiplier"_a, "value"_a.noconvert(), "bound"_a.noconvert());
}

void bind_budgets(nb::module_& module) {
    nb::class_<BudgetTask>(module, "BudgetTask")
        .def(
            "__init__",
            [](BudgetTask* self, const Objective& objective, const Rules& rules, Index least,
               Index most, bool weighted) {
                require(0 <= least && least <= most && most >= 1,
                        "least and most must be numbers of labels");
                new (self) BudgetTask{objective, rules, least, most, weighted};
            },
            "objective"_a, "rules"_a, "least"_a, "most"_a, "weighted"_a, nb::keep_alive<1, 3>());
    nb::class_<BudgetColumn>(module, "BudgetColumn")
        .def_ro("mean", &BudgetColumn::mean)
        .def_ro("none", &BudgetColumn::none)
        .def_ro("present", &BudgetColumn::present)
        .def_ro("weight", &BudgetColumn::weight)
        .def_ro("count", &BudgetColumn::count);
    nb::class_<GainTable>(module, "GainTable")
        .def(
            "__init__",
            [](GainTable* self, Array<const double, 1> slope, Array<const double, 1> loss) {
                require(slope.size() == loss.size(), "slope and loss must have the same length");
                new (self) GainTable(slope.size());
                std::copy_n(slope.data(), slope.size(), self->a.begin());
                std::copy_n(loss.data(), loss.size(), self->loss.begin());
            },
            "slope"_a, "loss"_a)
        .def_ro("loss", &GainTable::loss);
    bind_budget_type<double>(module);
    bind_budget_type<float>(module);
    module.def(
        "decide_prefix",
        [](Array<const double, 1> p, Array<const double, 1> sequence, Index least,
           const Objective& objective, const Rules& rules) {
            require(0 <= least && least <= static_cast<Index>(sequence.size()),
                    "least must be a number of labels of the sequence");
            return decide_prefix(span(p), span(sequence), least, objective, rules);
        },
        without_gil, "p"_a, "sequence"_a, "least"_a, "objective"_a, "rules"_a);
}
