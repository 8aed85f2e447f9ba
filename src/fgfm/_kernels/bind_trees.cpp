// Decision trees.
#include "bindings.hpp"
#include "forest.hpp"

void bind_trees(nb::module_& module) {
    module.def(
        "apply_trees",
        [](Array<const float, 2> X, Array<const Index, 1> root, Array<const std::int32_t, 1> left,
           Array<const std::int32_t, 1> right, Array<const std::int32_t, 1> feature,
           Array<const double, 1> threshold, Array<const std::uint8_t, 1> missing_left,
           Array<std::int32_t, 2> leaves) {
            const std::size_t nodes = left.size();
            require(right.size() == nodes && feature.size() == nodes && threshold.size() == nodes &&
                        missing_left.size() == nodes,
                    "the arrays of the nodes must have one length");
            require(leaves.shape(0) == X.shape(0) && leaves.shape(1) == root.size(),
                    "leaves must have a row for each row of X and a column for each tree");
            return apply_trees(matrix(X),
                               {span(root), span(left), span(right), span(feature), span(threshold),
                                span(missing_left)},
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
}
