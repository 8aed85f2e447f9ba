// Transposing, grouping and softmax of rows; sums of regressions, bets.
#include "bindings.hpp"
#include "betting.hpp"
#include "exponentials.hpp"
#include "grouping.hpp"
#include "logistic.hpp"
#include "transpose.hpp"

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

void bind_arrays(nb::module_& module) {
    const auto from = "from"_a.noconvert(), to = "to"_a.noconvert();
    module.def("transpose", &bind_transpose<double>, without_gil, from, to);
    module.def("transpose", &bind_transpose<float>, without_gil, from, to);
    module.def("transpose", &bind_transpose<std::int8_t>, without_gil, from, to);
    module.def(
        "bet",
        [](Array<const double, 2> values, Array<const double, 2> reference, double mean,
           Array<double, 1> wealth) {
            require(wealth.size() == values.shape(1),
                    "wealth must have one number for each column");
            require(reference.shape(0) == values.shape(0) && reference.shape(1) == values.shape(1),
                    "reference must have the shape of values");
            bet(matrix(values), matrix(reference), mean, wealth.data());
        },
        without_gil, "values"_a, "reference"_a, "mean"_a, "wealth"_a.noconvert());
    module.def(
        "group_rows",
        [](Array<const double, 2> X, Index most, Array<Index, 1> group) {
            require(group.size() == X.shape(0), "group must have one number for each row of X");
            return group_rows(matrix(X), most, group.data());
        },
        without_gil, "X"_a, "most"_a, "group"_a.noconvert());
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
            add_logistic(
                {matrix(x), matrix(v), matrix(y), matrix(w), labels ? labels->data() : nullptr},
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
}
