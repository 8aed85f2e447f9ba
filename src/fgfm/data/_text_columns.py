"""Categories and texts as features, by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder

from fgfm._utils.text import listed
from fgfm.data._table import Table
from fgfm.data._typed import ColumnKinds

__all__ = ["RARE", "fit_texts", "text_part", "text_terms"]

RARE = "(rare)"  # the feature that rare categories share
_RARE_ROWS = 5  # categories of fewer rows are rare, in columns of many categories
_MANY = 20  # categories
_MAX_TERMS = 20_000  # of a column of texts


def fit_texts(
    table: Table, kinds: ColumnKinds, texts: npt.NDArray[Any], max_categories: int
) -> ColumnTransformer | None:
    """Return the fitted encoder of categories and texts, (n, q) objects; None if q is 0."""
    if not texts.shape[1]:
        return None
    parts: list[tuple[str, Any, Any]] = []
    for k, j in enumerate(kinds.of_kind("category", "text")):
        if kinds.kinds[j] == "text":
            tfidf = TfidfVectorizer(
                ngram_range=(1, 2), sublinear_tf=True, min_df=2, max_features=_MAX_TERMS
            )
            parts.append((f"text{j}", tfidf, k))
            continue
        many = len(table.categories[j]) > _MANY
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=max_categories,
            min_frequency=_RARE_ROWS if many else None,
        )
        parts.append((f"category{j}", one_hot, [k]))
    columns = ColumnTransformer(parts, sparse_threshold=1.0)
    words = [name for name, _, _ in parts if name.startswith("text")]
    try:
        try:
            columns.fit(texts)
        except ValueError:  # no word of a column occurs in two rows
            columns.set_params(**{f"{name}__min_df": 1 for name in words}).fit(texts)
    except ValueError as error:
        names = [
            str(j + 1) if table.names is None else table.names[j] for j in kinds.of_kind("text")
        ]
        raise table.error(
            f"the columns of texts are {listed(names)}, and one of them has no words: declare "
            "it a category, or leave it out",
            arguments=["category", "drop"],
        ) from error
    return columns


def text_part(columns: ColumnTransformer | None, kind: str, j: int) -> Any:
    """Return the fitted encoder of a column of categories or texts."""
    assert columns is not None
    return columns.named_transformers_[f"{kind}{j}"]


def text_terms(columns: ColumnTransformer | None, kind: str, j: int) -> list[Any]:
    """Return the terms of a column: words, or categories with None and RARE among them."""
    part = text_part(columns, kind, j)
    if kind == "text":
        return list(part.get_feature_names_out())
    rare = part.infrequent_categories_[0]
    hidden = set() if rare is None else set(rare)
    terms = [text for text in part.categories_[0] if text not in hidden]
    return [*terms, *([RARE] if hidden else [])]
