"""Encoding of tabular features: numbers, categories and missing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.text import quoted
from fgfm._utils.validation import first_index, stored_row
from fgfm.data._frames import table_from_features
from fgfm.data._label_columns import are_binary_words
from fgfm.data._table import Table
from fgfm.data._text_columns import binary_column, insert_dense, insert_sparse, one_hot

__all__ = ["FeatureEncoder"]

_MAX_WIDE = 1 << 24  # sparse features beyond which missing values are refused
_TRUTH_VALUES = {"false": 0.0, "true": 1.0}
_MANY = 20  # rows from which distinct texts in nearly all of them raise a warning


class FeatureEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode the columns of a table as numbers, as they were in training.

    - A column of numbers is kept. A missing value is replaced by the median of training, and a
      0/1 indicator is appended after all other features if any value was missing in training.
    - A column of texts becomes one 0/1 feature per category of training, called
      ``column=category``. A category unseen in training is zero in all of them, with a warning.
      Categories that are all numbers are compared as numbers: 1.0 is 1, and 01 is not. The words
      no and yes, or false and true, become one 0/1 feature.

    Columns are matched by name if both sides have names, and by position otherwise.

    Parameters
    ----------
    max_categories : int, default=255
        The maximum number of categories of a column. Columns with more are refused: they are
        identifiers or free text.
    sparse_output : bool, default=None
        Whether the encoded features are a CSR array. By default they are if the features that the
        encoder is fitted to are sparse.

    Attributes
    ----------
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (p,)
        The names of the columns. Defined only if they have names.
    categorical_ : ndarray of int
        The columns with categories.
    categories_ : list of ndarray
        The categories of each of these columns.
    binary_ : ndarray of int
        The columns with the words no and yes, or false and true.
    zero_one_ : ndarray of int
        The dense columns of numbers that were all 0 or 1 in training; they may also be written as
        false and true.
    missing_ : ndarray of int
        The columns that had missing values in training.
    imputed_ : ndarray of int
        The columns with a median other than 0.
    medians_ : ndarray of float
        The medians of these columns.
    sparse_ : bool
        Whether the encoded features are a CSR array.
    label_names_ : ndarray or None
        The labels of the file that the encoder was fitted to. Such columns are not features.
    tag_column_ : str or None
        The column of label lists in that file.
    separator_ : str or None
        The separator of these lists.
    dropped_ : list of str
        The columns of that file that were left out.
    zero_based_ : bool or None
        Whether an svmlight file numbers its features from 0.
    zero_based_labels_ : bool or None
        Whether it numbers its labels from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.data import FeatureEncoder
    >>> encoder = FeatureEncoder()
    >>> encoder.fit_transform({"size": [1.0, np.nan, 4.0], "colour": ["red", "blue", "red"]})
    array([[1. , 0. , 1. , 0. ],
           [2.5, 1. , 0. , 1. ],
           [4. , 0. , 1. , 0. ]])
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'colour=blue', 'colour=red', 'size missing']
    >>> encoder.transform({"colour": ["blue"], "size": [2]})
    array([[2., 1., 0., 0.]])
    """

    def __init__(self, max_categories: int = 255, sparse_output: bool | None = None) -> None:
        self.max_categories = max_categories
        self.sparse_output = sparse_output

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> FeatureEncoder:
        """Learn the names, the categories and the medians of the columns.

        Parameters
        ----------
        X : data frame, mapping of columns, array or sparse matrix of shape (n, p)
            The features.
        y : object
            Not used.

        Returns
        -------
        FeatureEncoder
            The encoder itself.
        """
        table = table_from_features(X)
        n, p = table.matrix.shape
        if n == 0 or p == 0:
            count = f"{n} sample(s)" if n == 0 else f"{p} feature(s)"
            raise table.error(f"{count} (shape={(n, p)}) while a minimum of 1 is required.")
        self.n_features_in_ = p
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if table.names is not None:
            self.feature_names_in_ = _object_array(table.names)
        _check_finite(table)
        self._learn_categories(table)
        with_texts = {*self.categorical_.tolist(), *self.binary_.tolist()}
        self.zero_one_ = _zero_one_columns(table.matrix, with_texts)
        if sparse.issparse(table.matrix):
            self._learn_sparse_medians(table, with_texts)
        else:
            self._learn_medians(table.matrix, with_texts)
        self.sparse_ = bool(
            sparse.issparse(table.matrix) if self.sparse_output is None else self.sparse_output
        )
        self.label_names_ = None if table.label_names is None else _object_array(table.label_names)
        self.tag_column_ = table.tag_column
        self.separator_ = table.separator
        self.dropped_ = list(table.dropped)
        self.zero_based_ = table.zero_based
        self.zero_based_labels_ = table.zero_based_labels
        return self

    def _learn_categories(self, table: Table) -> None:
        categorical, binary, self.categories_ = [], [], []
        for j, texts in sorted(table.categories.items()):
            if are_binary_words(texts):
                binary.append(j)
                continue
            if len(texts) > self.max_categories:
                raise table.error(
                    f"there are {len(texts)} different texts, such as {quoted(texts[0])}: a "
                    f"feature may have up to {self.max_categories}; leave the column out, or "
                    "allow more categories",
                    column=j,
                    arguments=["drop", "max_categories"],
                )
            rows = int((~np.isnan(table.column(j))).sum())
            if rows >= _MANY and len(texts) > 0.9 * rows:
                table.warn(
                    f"nearly every row has a text of its own ({len(texts)} in {rows} rows), such "
                    f"as {quoted(texts[0])}: this is an identifier or free text; leave the column "
                    "out",
                    column=j,
                )
            categorical.append(j)
            self.categories_.append(_object_array(texts))
        self.categorical_ = np.array(categorical, dtype=np.int64)
        self.binary_ = np.array(binary, dtype=np.int64)

    def _learn_medians(self, matrix: npt.NDArray[Any], with_texts: set[int]) -> None:
        has_missing = np.isnan(matrix).any(axis=0)  # (p,)
        has_values = ~np.isnan(matrix).all(axis=0)
        medians = np.zeros(matrix.shape[1])
        complete = has_values & ~has_missing
        if complete.any():
            medians[complete] = _median(matrix[:, complete])
        for j in np.flatnonzero(has_values & has_missing):
            medians[j] = _median(matrix[~np.isnan(matrix[:, j]), j])
        if with_texts:
            medians[sorted(with_texts)] = 0.0
        self.missing_ = np.flatnonzero(has_missing)
        self.imputed_ = np.flatnonzero(medians)
        self.medians_ = medians[self.imputed_].astype(np.float64)

    def _learn_sparse_medians(self, table: Table, with_texts: set[int]) -> None:
        matrix = table.matrix
        self.missing_ = np.unique(matrix.indices[np.isnan(matrix.data)]).astype(np.int64)
        if len(self.missing_) and matrix.shape[1] > _MAX_WIDE:
            raise table.error(
                f"values are missing: with {matrix.shape[1]} features none may be "
                f"(the limit is {_MAX_WIDE})"
            )
        # The median of a column is 0 unless at least half of its entries are stored.
        columns, counts = np.unique(matrix.indices, return_counts=True)
        frequent = columns[2 * counts >= matrix.shape[0]]
        medians = {}
        for j in sorted({*frequent.tolist(), *self.missing_.tolist()} - with_texts):
            values = table.column(j)
            present = values[~np.isnan(values)]
            median = float(_median(present)) if len(present) else 0.0
            if median != 0.0:
                medians[j] = median
        self.imputed_ = np.array(list(medians), dtype=np.int64)
        self.medians_ = np.array(list(medians.values()), dtype=np.float64)

    @property
    def categorical_names_(self) -> tuple[str, ...]:
        """Names of the columns with texts."""
        if not hasattr(self, "feature_names_in_"):
            return ()
        return tuple(self.feature_names_in_[j] for j in [*self.categorical_, *self.binary_])

    def transform(self, X: Any) -> Any:
        """Encode features as in training.

        Parameters
        ----------
        X : data frame, mapping of columns, array or sparse matrix
            The features. Named columns may be in any order.

        Returns
        -------
        ndarray or CSR array of shape (n, n_features_out)
            The encoded features.
        """
        check_is_fitted(self)
        table = self._match_columns(table_from_features(X))
        _check_finite(table)
        return self._encode(self._read_truth_values(table))

    def _match_columns(self, table: Table) -> Table:
        """Return the table with the columns of training, in their order."""
        names = getattr(self, "feature_names_in_", None)
        if names is None or table.names is None:
            found = table.matrix.shape[1]
            if found != self.n_features_in_:
                raise table.error(
                    f"X has {found} features, but FeatureEncoder is expecting "
                    f"{self.n_features_in_} features as input"
                )
            return table
        if list(names) == list(table.names):
            return table
        where = {name: j for j, name in enumerate(table.names)}
        for name in names:
            if name not in where:
                raise table.error(f"there is no column {quoted(name)}, which training had")
        labels = () if self.label_names_ is None else self.label_names_
        allowed = {*names, *self.dropped_, *labels, self.tag_column_}
        for name in table.names:
            if name not in allowed:
                raise table.error(
                    f"training had no column {quoted(name)}: leave it out", arguments=["drop"]
                )
        return table.select([where[name] for name in names])

    def _read_truth_values(self, table: Table) -> Table:
        """Replace false and true in columns that were 0 or 1 in training; refuse other texts."""
        expected = {int(j) for j in [*self.categorical_, *self.binary_]}
        zero_one = set(self.zero_one_.tolist())
        numbers = {}
        for j in sorted(table.categories.keys() - expected):
            texts = table.categories[j]
            if j in zero_one and {text.lower() for text in texts} <= _TRUTH_VALUES.keys():
                numbers[j] = np.array([_TRUTH_VALUES[text.lower()] for text in texts])
                continue
            codes = table.column(j)
            rows = np.flatnonzero(~np.isnan(codes))
            if len(rows):
                text = texts[int(codes[rows[0]])]
                raise table.error(
                    f"{quoted(text)} is not a number: in training this column had numbers",
                    int(rows[0]),
                    j,
                )
        return _with_numbers(table, numbers) if numbers else table

    def _encode(self, table: Table) -> Any:
        """Return the encoded features of a table with the columns of training."""
        blocks: dict[int, npt.NDArray[np.float64]] = {}  # (n, categories) of columns with texts
        for j, categories in zip(self.categorical_.tolist(), self.categories_, strict=True):
            blocks[j] = one_hot(table, j, categories.tolist())
        for j in self.binary_.tolist():
            blocks[j] = binary_column(table, j)[:, None]
        indicators = None
        if len(self.missing_):
            indicators = np.column_stack(
                [np.isnan(table.column(j)) for j in self.missing_.tolist()]
            )
        replaced = bool(blocks) or indicators is not None
        if sparse.issparse(table.matrix):
            X = self._impute_sparse(table.matrix)
            X = insert_sparse(X, blocks, indicators) if replaced else X
            return X if self.sparse_ else X.toarray()
        X = self._impute(table.matrix)
        X = insert_dense(X, blocks, indicators) if replaced else X
        return sparse.csr_array(X) if self.sparse_ else X

    def _training_medians(self, columns: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the medians of some columns."""
        out = np.zeros(len(columns))
        if len(self.imputed_):
            at = np.searchsorted(self.imputed_, columns).clip(max=len(self.imputed_) - 1)
            found = self.imputed_[at] == columns
            out[found] = self.medians_[at[found]]
        return out

    def _impute(self, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
        rows, columns = np.nonzero(np.isnan(matrix))
        if len(rows):
            matrix = matrix.copy()
            matrix[rows, columns] = self._training_medians(columns)
        return matrix

    def _impute_sparse(self, matrix: Any) -> Any:
        at = np.flatnonzero(np.isnan(matrix.data))
        if len(at):
            matrix = matrix.copy()
            matrix.data[at] = self._training_medians(matrix.indices[at])
            matrix.eliminate_zeros()
        return matrix

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the encoded features.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names of the columns, if those of training had none.

        Returns
        -------
        ndarray of object
            One name per encoded feature.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", input_features)
        if names is None:
            names = [f"x{j + 1}" for j in range(self.n_features_in_)]
        categories = dict(zip(self.categorical_.tolist(), self.categories_, strict=True))
        out: list[str] = []
        for j, name in enumerate(names):
            texts = categories.get(j)
            out.extend([name] if texts is None else [f"{name}={text}" for text in texts])
        return _object_array([*out, *(f"{names[j]} missing" for j in self.missing_)])


def _median(values: Any) -> Any:
    """Return the median of each column, also if the sum of the middle two overflows."""
    with np.errstate(over="ignore"):
        median = np.median(values, axis=0)
        return np.where(np.isinf(median), 2.0 * np.median(values / 2.0, axis=0), median)


def _object_array(values: Sequence[Any]) -> npt.NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = list(values)
    return out


def _zero_one_columns(matrix: Any, with_texts: set[int]) -> npt.NDArray[np.int64]:
    """Return the columns of numbers of a dense matrix that are all 0, 1 or missing."""
    if sparse.issparse(matrix):
        return np.empty(0, dtype=np.int64)
    first = matrix[0]  # excludes most columns without reading them
    candidates = np.flatnonzero((first == 0) | (first == 1) | np.isnan(first))
    found = []
    for j in candidates.tolist():
        column = matrix[:, j]
        if j not in with_texts and ((column == 0) | (column == 1) | np.isnan(column)).all():
            found.append(j)
    return np.array(found, dtype=np.int64)


def _with_numbers(table: Table, numbers: dict[int, npt.NDArray[Any]]) -> Table:
    """Return the table with the codes of some columns replaced by the number of each code."""
    columns = {}
    for j, by_code in numbers.items():
        values = table.column(j).copy()
        present = ~np.isnan(values)
        values[present] = by_code[values[present].astype(np.intp)]
        columns[j] = values
    categories = {j: texts for j, texts in table.categories.items() if j not in numbers}
    return table.with_columns(columns, categories)


def _check_finite(table: Table) -> None:
    """Raise if a value is infinite."""
    matrix = table.matrix
    if sparse.issparse(matrix):
        wrong = np.isinf(matrix.data)
        if not wrong.any():
            return
        at = first_index(wrong)[0]
        row, column = stored_row(matrix, at), int(matrix.indices[at])
    else:
        wrong = np.isinf(matrix)
        if not wrong.any():
            return
        row, column = first_index(wrong)
    raise table.error("the value is infinite: features must be finite numbers", row, column)
