// Decisions from P, draws and label sets; P of models of the number of labels.
#include "bindings.hpp"
#include "cardinalities.hpp"
#include "poisson_binomial.hpp"
#include "reweighted.hpp"
#include "tilt.hpp"

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

template <class T>
Status bind_cardinality_rows(Array<const T, 3> P, Array<const double, 2> mass,
                             Array<const Index, 1> names, double slack, const Objective& objective,
                             Labels labels, Array<double, 1> expected,
                             const Constraints* constraints) {
    check_decisions(P.shape(0), labels.shape(1), labels, expected);
    check_names(names, P.shape(1), labels, constraints);
    require(mass.shape(0) == 2 && mass.shape(1) == P.shape(0),
            "mass must have two rows, with one number for each row of P");
    return decide_cardinality_rows(P.data(), P.shape(0), P.shape(1), P.shape(2), matrix(mass),
                                   span(names), slack, objective, matrix(labels), expected.data(),
                                   constraints);
}

template <class T>
void bind_cardinalities_type(nb::module_& module) {
    module.def("decide_cardinality_rows", &bind_cardinality_rows<T>, without_gil, "P"_a, "mass"_a,
               "names"_a, "slack"_a, "objective"_a, "labels"_a.noconvert(),
               "expected"_a.noconvert(), "constraints"_a.none() = nb::none());
}

void bind_cardinalities(nb::module_& module) {
    module.def(
        "largest_draw",
        [](Array<const std::uint8_t, 3> draws) {
            return largest_draw(draws.data(), draws.shape(0) * draws.shape(1), draws.shape(2));
        },
        without_gil, "draws"_a);
    module.def(
        "count_draws",
        [](Array<const std::uint8_t, 3> draws, Array<double, 3> P) {
            require(P.shape(0) == draws.shape(0) && P.shape(1) == draws.shape(2),
                    "P must have the rows and labels of draws");
            count_draws(draws.data(), draws.shape(0), draws.shape(1), draws.shape(2), P.shape(2),
                        P.data());
        },
        without_gil, "draws"_a, "P"_a.noconvert());
    module.def(
        "tilt",
        [](Array<const double, 3> logits, Array<const double, 2> d, Array<double, 3> P,
           bool conditioned) {
            const std::size_t depth = logits.shape(2), S = P.shape(2);
            require(logits.shape(0) == P.shape(0) && logits.shape(1) == P.shape(1) &&
                        (depth == 1 || depth == S) && d.shape(0) == P.shape(0) &&
                        d.shape(1) == S + 1,
                    "logits, d and P must be of shapes (n, m, 1 or S), (n, S + 1) and (n, m, S)");
            tilt(logits.data(), logits.shape(2), matrix(d), P.data(), P.shape(0), P.shape(1),
                 P.shape(2), conditioned);
        },
        without_gil, "logits"_a, "d"_a, "P"_a.noconvert(), "conditioned"_a = false);
    module.def(
        "decide_reweighted_rows",
        [](Array<const double, 2> p, Array<const double, 2> d, double t, double u,
           Array<const double, 1> missed, Array<const double, 2> given, const Objective& objective,
           Index min_labels, Index max_labels, Labels labels, Array<double, 1> expected) {
            check_numbers(p, d);
            check_decisions(p.shape(0), p.shape(1), labels, expected);
            require(given.shape(1) == missed.shape(0) &&
                        (missed.shape(0) == 0 || given.shape(0) == d.shape(1)),
                    "given must have a row for each number of labels and a column for each of "
                    "missed items");
            decide_reweighted_rows(matrix(p), matrix(d), checked_exponents(t, u),
                                   {span(missed), matrix(given)}, objective, min_labels, max_labels,
                                   matrix(labels), expected.data());
        },
        without_gil, "p"_a, "d"_a, "t"_a, "u"_a, "missed"_a, "given"_a, "objective"_a,
        "min_labels"_a, "max_labels"_a, "labels"_a.noconvert(), "expected"_a.noconvert());
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
    bind_cardinalities_type<double>(module);
    bind_cardinalities_type<float>(module);
}
