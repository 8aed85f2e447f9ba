// The learners: trees, ridge and logistic regressions.
#include "bindings.hpp"
#include "exponentials.hpp"
#include "forest.hpp"
#include "logistic.hpp"
#include "ridge.hpp"
#include "trees.hpp"

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
    return result;
}

struct RidgeRows {
    std::shared_ptr<const Rows> rows;
};

void bind_learners(nb::module_& module) {
    const nb::call_guard<nb::gil_scoped_release> without_gil;
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
        without_gil, "X"_a, "root"_a, "left"_a, "right"_a, "feature"_a, "threshold"_a,
        "missing_left"_a, "leaves"_a.noconvert());
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
        without_gil, "columns"_a, "bins"_a, "indices"_a, "indptr"_a, "zero_bin"_a, "values"_a,
        "weight"_a, "rows"_a.noconvert(), "most_features"_a, "leaf"_a, "seed"_a,
        "links"_a.noconvert(), "bytes"_a.noconvert());
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
        "rows"_a, "group"_a, "weight"_a, "folds"_a, "code"_a, "K"_a, "extra"_a, "penalties"_a,
        "penalize_intercept"_a, "reference_class"_a, "tol"_a, "max_iter"_a, "cholesky"_a, "batch"_a,
        "theta"_a.noconvert(), "best"_a.noconvert(), "losses"_a.noconvert(), "steps"_a.noconvert(),
        "failed"_a.noconvert(), "held_out"_a.noconvert());
}
