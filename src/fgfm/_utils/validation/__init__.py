"""Validation of user input.

Functions named ``check_*`` raise if a value breaks a rule; some also return it in a common type.
Functions named after a thing (`real_array`, `label_sets`, ...) convert and validate. Every error
message names the argument, the offending value with its position, and the rule.
"""

from __future__ import annotations

from fgfm._utils.validation._arrays import (
    check_axes,
    check_real,
    check_same_rows,
    first_entry,
    first_index,
    is_flat,
    place,
    real_array,
    row_weights,
)
from fgfm._utils.validation._factors import (
    CARDINALITY_AXES,
    DISTRIBUTION_AXES,
    check_cardinality_matrix,
    check_cardinality_shape,
    check_distribution_count,
    check_distribution_shape,
    check_distributions,
    check_factors,
    check_parts,
    distribution_array,
    part_list,
    raise_excess_mass,
)
from fgfm._utils.validation._labels import check_labels, label_sets
from fgfm._utils.validation._parameters import (
    check_average,
    check_beta,
    check_choice,
    check_count,
    check_flag,
    check_fraction,
    check_zero_division,
    resolve_nonempty,
)
from fgfm._utils.validation._probabilities import (
    check_logits,
    check_marginals,
    check_one_weight_each,
    check_probabilities,
    check_stored_probabilities,
    clip_probabilities,
    sparse_marginals,
    stacked_classes,
    tolerance,
    unit_rows,
)

__all__ = [
    "CARDINALITY_AXES",
    "DISTRIBUTION_AXES",
    "check_average",
    "check_axes",
    "check_beta",
    "check_cardinality_matrix",
    "check_cardinality_shape",
    "check_choice",
    "check_count",
    "check_distribution_count",
    "check_distribution_shape",
    "check_distributions",
    "check_factors",
    "check_flag",
    "check_fraction",
    "check_labels",
    "check_logits",
    "check_marginals",
    "check_one_weight_each",
    "check_parts",
    "check_probabilities",
    "check_real",
    "check_same_rows",
    "check_stored_probabilities",
    "check_zero_division",
    "clip_probabilities",
    "distribution_array",
    "first_entry",
    "first_index",
    "is_flat",
    "label_sets",
    "part_list",
    "place",
    "raise_excess_mass",
    "real_array",
    "resolve_nonempty",
    "row_weights",
    "sparse_marginals",
    "stacked_classes",
    "tolerance",
    "unit_rows",
]
