// The functions of the Python module for decisions with limits on rows; included by bindings.cpp.
#pragma once

#include "budget_bounds.hpp"
#include "prefixes.hpp"

static_assert(sizeof(BudgetColumn) == 14 * sizeof(double));

// Columns, (m, 14), as the members of BudgetColumn.
static std::vector<BudgetColumn> read_columns(const Array<const double, 2>& columns) {
    require(columns.shape(1) == 14, "columns must have 14 numbers for each label");
    std::vector<BudgetColumn> result(columns.shape(0));
    std::memcpy(result.data(), columns.data(), result.size() * sizeof(BudgetColumn));
    return result;
}

static void write_columns(const std::vector<BudgetColumn>& from, Array<double, 2>& columns) {
    std::memcpy(columns.data(), from.data(), from.size() * sizeof(BudgetColumn));
}

static void check_limits(const RowLimits& limits, std::size_t m) {
    require(0 <= limits.least && limits.least <= limits.most && limits.most >= 1 &&
                limits.least <= static_cast<Index>(m),
            "least and most must be numbers of labels");
}

template <class T>
BudgetRows<T> dense_rows(const Array<const T, 2>& proba) {
    return {proba.data(), nullptr, nullptr, static_cast<Index>(proba.shape(0)),
            static_cast<Index>(proba.shape(1))};
}

template <class T>
BudgetRows<T> csr_rows(const Array<const T, 1>& data, const Array<const std::int32_t, 1>& labels,
                       const Array<const Index, 1>& indptr, std::size_t m) {
    require(indptr.size() > 0, "indptr must have one number more than rows");
    require_rows(span(indptr), indptr.size() - 1, data.size());
    require(labels.size() == data.size(), "labels must have one number for each entry");
    require_indices(span(labels), 0, m, "labels must be columns");
    for (std::size_t i = 1; i < indptr.size(); ++i) {
        require(indptr.data()[i] - indptr.data()[i - 1] <= static_cast<Index>(m),
                "a row must have each label once");
    }
    return {data.data(), labels.data(), indptr.data(), static_cast<Index>(indptr.size()) - 1,
            static_cast<Index>(m)};
}

// The smallest loss of adding an entry of probability 0.
static double least_loss(const ApproximateGains& model, std::size_t m) {
    return m ? *std::min_element(model.loss.begin(), model.loss.begin() + m) : 0.0;
}

template <class T>
void polish(const BudgetRows<T>& rows, const RowLimits& limits, double beta2, const Rules& rules,
            std::vector<BudgetColumn>& columns, std::int8_t* chosen) {
    if (rows.stored() > FEW_ENTRIES || rows.m > FEW_ENTRIES / 8 || rows.n == 0) return;
    ExactGains exact(rows, beta2, rules, columns, chosen);
    ascend(rows, limits, exact, 0.0, chosen);
}

template <class T>
bool bind_classes(Array<const T, 2> proba, double tolerance, double beta2, double zero_division,
                  const Rules& rules, Array<const double, 1> slope, Array<const double, 1> loss,
                  Array<std::int32_t, 1> classes, Array<double, 1> multiplier,
                  Array<double, 2> columns) {
    const std::size_t n = proba.shape(0), m = proba.shape(1);
    require(slope.size() == m && loss.size() == m && columns.shape(0) == m &&
                columns.shape(1) == 14 && classes.size() == n && multiplier.size() == n && m > 0,
            "slope, loss and columns must have a row for each class, classes and multiplier a "
            "number for each row");
    const BudgetRows<T> rows = dense_rows(proba);
    std::vector<BudgetColumn> sums(m);
    if (!decide_classes(rows, {beta2, zero_division, false}, tolerance, span(slope), span(loss),
                        sums, classes.data(), multiplier.data())) {
        return false;
    }
    if (rows.stored() <= FEW_ENTRIES) {
        std::vector<std::int8_t> chosen(n * m);
        for (std::size_t i = 0; i < n; ++i) chosen[i * m + classes.data()[i]] = 1;
        polish(rows, {1, 1}, beta2, rules, sums, chosen.data());
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t c = 0; c < m; ++c) {
                if (chosen[i * m + c]) classes.data()[i] = static_cast<std::int32_t>(c);
            }
        }
        finish_classes(rows, beta2, classes.data(), sums, multiplier.data());
    }
    write_columns(sums, columns);
    return true;
}

// Decide rows, dense or CSR; `filled` gets the labels of rows that have fewer entries than `least`.
template <class T>
bool limit_rows(const BudgetRows<T>& rows, const Objective& objective, const Rules& rules,
                 bool weighted, const RowLimits& limits, std::span<const double> slope,
                 std::span<const double> loss, std::int8_t* chosen, double* multiplier,
                 std::vector<BudgetColumn>& sums, std::span<std::int32_t> filled) {
    Index missing = 0;
    for (Index i = 0; i < rows.n; ++i) missing += std::max<Index>(0, limits.least - rows.size(i));
    require(length(filled) == missing, "filled must have room for what rows lack");
    if (!add_columns(rows, std::numeric_limits<double>::infinity(), sums)) return false;
    weigh_columns(objective, weighted, sums);
    std::vector<Index> fixed(rows.m, 0);
    decide_limited(rows, limits, objective.beta2, slope, loss, fixed, sums, chosen);
    if (missing) {
        ApproximateGains model(objective.beta2, sums);
        fill_rows(rows, limits.least, model, filled.data());
        ascend(rows, limits, model, LAST_GAIN, chosen);
        for (const std::int32_t c : filled) ++fixed[c];
    }
    polish(rows, limits, objective.beta2, rules, sums, chosen);
    add_chosen(rows, chosen, sums);
    for (Index c = 0; c < rows.m; ++c) sums[c].count += fixed[c];
    const ApproximateGains model(objective.beta2, sums);
    fill_multipliers(rows, limits, model, least_loss(model, rows.m), multiplier);
    for (Index at = 0; !rows.label && at < rows.stored(); ++at) {
        if (chosen[at]) sums[at % rows.m].cost += multiplier[at / rows.m];
    }
    return true;
}

template <class T>
bool bind_limit_dense(Array<const T, 2> proba, double beta2, double zero_division, bool nonempty,
                       const Rules& rules, bool weighted, Index least, Index most,
                       Array<const double, 1> slope, Array<const double, 1> loss,
                       Array<std::int8_t, 2> chosen, Array<double, 1> multiplier,
                       Array<double, 2> columns) {
    const std::size_t n = proba.shape(0), m = proba.shape(1);
    require(slope.size() == m && loss.size() == m && columns.shape(0) == m &&
                columns.shape(1) == 14 && chosen.shape(0) == n && chosen.shape(1) == m &&
                multiplier.size() == n,
            "slope, loss and columns must have a row for each label, chosen the shape of proba");
    check_limits({least, most}, m);
    std::vector<BudgetColumn> sums(m);
    const bool valid =
        limit_rows(dense_rows(proba), {beta2, zero_division, nonempty}, rules, weighted,
                   {least, most}, span(slope), span(loss), chosen.data(), multiplier.data(), sums,
                   std::span<std::int32_t>());
    write_columns(sums, columns);
    return valid;
}

template <class T>
bool bind_limit_csr(Array<const T, 1> data, Array<const std::int32_t, 1> labels,
                     Array<const Index, 1> indptr, double beta2, double zero_division,
                     bool nonempty, const Rules& rules, bool weighted, Index least, Index most,
                     Array<const double, 1> slope, Array<const double, 1> loss,
                     Array<std::int8_t, 1> chosen, Array<double, 1> multiplier,
                     Array<double, 2> columns, Array<std::int32_t, 1> filled) {
    const std::size_t m = columns.shape(0);
    const BudgetRows<T> rows = csr_rows(data, labels, indptr, m);
    require(slope.size() == m && loss.size() == m && columns.shape(1) == 14 &&
                chosen.size() == data.size() && multiplier.size() + 1 == indptr.size(),
            "slope, loss and columns must have a row for each label, chosen a mark for each entry");
    check_limits({least, most}, m);
    std::vector<BudgetColumn> sums(m);
    const bool valid = limit_rows(rows, {beta2, zero_division, nonempty}, rules, weighted,
                                   {least, most}, span(slope), span(loss), chosen.data(),
                                   multiplier.data(), sums, span(filled));
    write_columns(sums, columns);
    return valid;
}

// Evaluate the columns [first, last) of a dense matrix; is_chosen(i, c) tells what is chosen.
template <class T, class Chosen>
void evaluate_dense(const BudgetRows<T>& rows, Index first, Index last, const Objective& objective,
                    const Rules& rules, const double* mu, std::span<const BudgetColumn> columns,
                    Chosen is_chosen, double* expected, double* bound) {
    const std::vector<char> done =
        evaluate_long(rows, first, last, objective, rules, mu, columns, expected, bound);
    ColumnWork work(rules);
    std::vector<T> p;
    std::vector<double> multiplier;
    for (Index c = first; c < last; ++c) {
        if (done[c - first]) continue;
        p.clear();
        multiplier.clear();
        work.chosen.clear();
        double cost = 0.0;
        for (Index i = 0; i < rows.n; ++i) {
            const T x = rows.data[i * rows.m + c];
            if (x > 0.0 || mu[i] < 0.0) {  // others are in no best set
                p.push_back(x);
                multiplier.push_back(mu[i]);
            }
            if (!is_chosen(i, c)) continue;
            work.chosen.push_back(x);
            cost += mu[i];
        }
        std::tie(expected[c - first], bound[c - first]) =
            evaluate_column(std::span<const T>(p), multiplier.data(), NO_FLOOR, columns[c], cost,
                            objective, rules, work);
    }
}

template <class T>
void bind_evaluate_classes(Array<const T, 2> proba, Array<const std::int32_t, 1> classes,
                           Array<const double, 1> multiplier, Array<const double, 2> columns,
                           double beta2, double zero_division, const Rules& rules, Index first,
                           Array<double, 1> expected, Array<double, 1> bound) {
    const BudgetRows<T> rows = dense_rows(proba);
    const Index last = first + static_cast<Index>(expected.size());
    require(0 <= first && last <= rows.m && bound.size() == expected.size() &&
                columns.shape(0) == proba.shape(1) && classes.size() == proba.shape(0) &&
                multiplier.size() == proba.shape(0),
            "classes and multiplier must have a number for each row, columns for each class");
    const std::vector<BudgetColumn> sums = read_columns(columns);
    evaluate_dense(rows, first, last, {beta2, zero_division, false}, rules, multiplier.data(), sums,
                   [&](Index i, Index c) { return classes.data()[i] == c; }, expected.data(),
                   bound.data());
}

template <class T>
void bind_evaluate_dense(Array<const T, 2> proba, Array<const std::int8_t, 2> chosen,
                         Array<const double, 1> multiplier, Array<const double, 2> columns,
                         double beta2, double zero_division, bool nonempty, const Rules& rules,
                         Index first, Array<double, 1> expected, Array<double, 1> bound) {
    const BudgetRows<T> rows = dense_rows(proba);
    const Index last = first + static_cast<Index>(expected.size());
    require(0 <= first && last <= rows.m && bound.size() == expected.size() &&
                columns.shape(0) == proba.shape(1) && chosen.shape(0) == proba.shape(0) &&
                chosen.shape(1) == proba.shape(1) && multiplier.size() == proba.shape(0),
            "chosen must have the shape of proba, columns a row for each label");
    const std::vector<BudgetColumn> sums = read_columns(columns);
    evaluate_dense(rows, first, last, {beta2, zero_division, nonempty}, rules, multiplier.data(),
                   sums, [&](Index i, Index c) { return chosen.data()[i * rows.m + c] != 0; },
                   expected.data(), bound.data());
}

// Evaluate some columns of a matrix, whose entries are given column by column.
template <class T>
void bind_evaluate_csc(Array<const T, 1> data, Array<const std::int32_t, 1> places,
                       Array<const Index, 1> indptr, Array<const std::int8_t, 1> chosen,
                       Array<const double, 1> multiplier, double floor,
                       Array<const double, 2> columns, double beta2, double zero_division,
                       bool nonempty, const Rules& rules, Array<double, 1> expected,
                       Array<double, 1> bound) {
    const Index m = static_cast<Index>(expected.size());
    require_rows(span(indptr), m, data.size());
    require(places.size() == data.size() && chosen.size() == data.size() &&
                bound.size() == expected.size() && columns.shape(0) == expected.size(),
            "places and chosen must have a number for each entry, columns for each label");
    require_indices(span(places), 0, multiplier.size(), "places must be rows");
    const std::vector<BudgetColumn> sums = read_columns(columns);
    ColumnWork work(rules);
    std::vector<double> mu;
    for (Index c = 0; c < m; ++c) {
        const Index start = indptr.data()[c], stop = indptr.data()[c + 1];
        mu.clear();
        work.chosen.clear();
        double cost = 0.0;
        for (Index at = start; at < stop; ++at) {
            mu.push_back(multiplier.data()[places.data()[at]]);
            if (!chosen.data()[at]) continue;
            work.chosen.push_back(data.data()[at]);
            cost += mu.back();
        }
        const std::span<const T> p(data.data() + start, static_cast<std::size_t>(stop - start));
        std::tie(expected.data()[c], bound.data()[c]) =
            evaluate_column(p, mu.data(), floor, sums[c], cost, {beta2, zero_division, nonempty},
                            rules, work);
    }
}

template <class T>
void bind_budget_type(nb::module_& module) {
    const nb::call_guard<nb::gil_scoped_release> without_gil;
    module.def("decide_classes", &bind_classes<T>, without_gil, "proba"_a, "tolerance"_a,
               "beta2"_a, "zero_division"_a, "rules"_a, "slope"_a, "loss"_a, "classes"_a.noconvert(),
               "multiplier"_a.noconvert(), "columns"_a.noconvert());
    module.def("limit_dense_rows", &bind_limit_dense<T>, without_gil, "proba"_a, "beta2"_a,
               "zero_division"_a, "nonempty"_a, "rules"_a, "weighted"_a, "least"_a, "most"_a,
               "slope"_a, "loss"_a, "chosen"_a.noconvert(), "multiplier"_a.noconvert(),
               "columns"_a.noconvert());
    module.def("limit_csr_rows", &bind_limit_csr<T>, without_gil, "data"_a, "labels"_a, "indptr"_a,
               "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "weighted"_a, "least"_a,
               "most"_a, "slope"_a, "loss"_a, "chosen"_a.noconvert(), "multiplier"_a.noconvert(),
               "columns"_a.noconvert(), "filled"_a.noconvert());
    module.def("evaluate_classes", &bind_evaluate_classes<T>, without_gil, "proba"_a, "classes"_a,
               "multiplier"_a, "columns"_a, "beta2"_a, "zero_division"_a, "rules"_a, "first"_a,
               "expected"_a.noconvert(), "bound"_a.noconvert());
    module.def("evaluate_dense_columns", &bind_evaluate_dense<T>, without_gil, "proba"_a,
               "chosen"_a, "multiplier"_a, "columns"_a, "beta2"_a, "zero_division"_a, "nonempty"_a,
               "rules"_a, "first"_a, "expected"_a.noconvert(), "bound"_a.noconvert());
    module.def("evaluate_csc_columns", &bind_evaluate_csc<T>, without_gil, "data"_a, "places"_a,
               "indptr"_a, "chosen"_a, "multiplier"_a, "floor"_a, "columns"_a, "beta2"_a,
               "zero_division"_a, "nonempty"_a, "rules"_a, "expected"_a.noconvert(),
               "bound"_a.noconvert());
    module.def(
        "mark_top",
        [](Array<const T, 1> data, Array<const Index, 1> indptr, Index least, Index most,
           Array<std::int8_t, 1> marks) {
            require(indptr.size() > 0, "indptr must have one number more than rows");
            require_rows(span(indptr), indptr.size() - 1, data.size());
            require(marks.size() == data.size(), "marks must have one number for each entry");
            Index m = 1;
            for (std::size_t i = 1; i < indptr.size(); ++i) {
                m = std::max(m, indptr.data()[i] - indptr.data()[i - 1]);
            }
            const std::vector<std::int32_t> labels(1);  // CSR, though labels are not read
            mark_top(BudgetRows<T>{data.data(), labels.data(), indptr.data(),
                                   static_cast<Index>(indptr.size()) - 1, m},
                     {least, most}, marks.data());
        },
        without_gil, "data"_a, "indptr"_a, "least"_a, "most"_a, "marks"_a.noconvert());
}

static void bind_budgets(nb::module_& module) {
    const nb::call_guard<nb::gil_scoped_release> without_gil;
    bind_budget_type<double>(module);
    bind_budget_type<float>(module);
    module.def(
        "search_all",
        [](Array<const double, 2> proba, double beta2, double zero_division, bool nonempty,
           const Rules& rules, Index least, Index most, Array<const double, 1> weight,
           Array<std::int8_t, 2> chosen) {
            check_limits({least, most}, proba.shape(1));
            require(weight.size() == proba.shape(1) && chosen.shape(0) == proba.shape(0) &&
                        chosen.shape(1) == proba.shape(1),
                    "weight must have a number for each label, chosen the shape of proba");
            return search_all(matrix(proba), {beta2, zero_division, nonempty}, {least, most},
                              span(weight), rules, chosen.data());
        },
        without_gil, "proba"_a, "beta2"_a, "zero_division"_a, "nonempty"_a, "rules"_a, "least"_a,
        "most"_a, "weight"_a, "chosen"_a.noconvert());
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
