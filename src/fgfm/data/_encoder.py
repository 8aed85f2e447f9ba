"""Features as a model wants them: numbers only, none missing, the same columns every time."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.validation import first_index, stored_row
from fgfm.data._columns import table_of
from fgfm.data._errors import bad, shown
from fgfm.data._table import TRUTH, Table, is_truth, make_csr
from fgfm.data._text import text_of

__all__ = ["FeatureEncoder"]

_MAX_WIDE = 1 << 24  # features that may get a name and a place each
_WORDS = {"false": 0.0, "true": 1.0}
_MANY = 20  # rows from which it tells something that each has its own text
# 01234 is a text: what it counts is not what it says
_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,4})?")


class FeatureEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Make numbers of features, as they were in training.

    - A column of numbers stays. What is missing becomes the median of training, and a column that
      says where it was missing follows after all others, if any was missing in training.
    - A column of texts becomes one column of 0 and 1 per category of training, called
      ``column=category``; a category that training did not have is zero in all of them, and a
      warning says so. Categories that are all numbers are compared as numbers: 1.0 is 1, and
      01 is not. Texts that are no and yes, or false and true, become one column of 0 and 1.

    Columns are matched by name where both sides have names, and by their number otherwise.

    Parameters
    ----------
    max_categories : int, default=255
        Refuse columns with more categories than this: they are identifiers, or free text.

    Attributes
    ----------
    n_features_in_ : int
        The number of columns before encoding.
    feature_names_in_ : ndarray of shape (p,)
        Their names, where they have names.
    categorical_ : ndarray of int
        Which of them have categories.
    categories_ : list of ndarray
        The categories of each of these.
    truth_ : ndarray of int
        Which columns are no and yes, or false and true.
    zero_one_ : ndarray of int
        Which columns of dense numbers were 0 or 1 in training; false and true are such numbers.
    indicated_ : ndarray of int
        Which columns had missing values in training.
    imputed_ : ndarray of int
        Which columns have a median that is not 0.
    medians_ : ndarray of float
        The medians of these.
    sparse_ : bool
        Whether the encoded features are a CSR matrix.
    label_names_ : ndarray or None
        The labels that came with the features; such columns are no features.
    tag_column_ : str or None
        The column that had lists of labels, if any.
    separator_ : str or None
        What stood between the labels of such a list.
    dropped_ : list of str
        Columns that were left out.
    zero_based_ : bool or None
        Whether an svmlight file counted its features from 0.
    zero_based_labels_ : bool or None
        Whether it counted its labels from 0.

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

    def __init__(self, max_categories: int = 255) -> None:
        self.max_categories = max_categories

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> FeatureEncoder:
        """Learn the columns, their categories and medians.

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
        table = table_of(X)
        n, p = table.matrix.shape
        if n == 0 or p == 0:
            what = f"{n} sample(s)" if n == 0 else f"{p} feature(s)"
            raise bad(table.source, f"{what} (shape={(n, p)}) while a minimum of 1 is required.")
        self.n_features_in_ = p
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if table.names is not None:
            self.feature_names_in_ = _objects(table.names)
        _refuse_infinite(table)
        self._learn_categories(table)
        special = {*self.categorical_.tolist(), *self.truth_.tolist()}
        self.zero_one_ = _zero_one(table.matrix, special)
        self._learn_medians(table, special)
        self.sparse_ = bool(sparse.issparse(table.matrix))
        self.label_names_ = None if table.label_names is None else _objects(table.label_names)
        self.tag_column_ = table.tag_column
        self.separator_: str | None = None
        self.dropped_: list[str] = []
        self.zero_based_ = table.zero_based
        self.zero_based_labels_ = table.zero_based_labels
        return self

    def _learn_categories(self, table: Table) -> None:
        categorical, truth, self.categories_ = [], [], []
        for j, texts in sorted(table.categories.items()):
            if is_truth(texts):
                truth.append(j)
                continue
            if len(texts) > self.max_categories:
                name = j + 1 if table.names is None else table.names[j]
                raise bad(
                    table.source,
                    f"there are {len(texts)} different texts, such as {shown(texts[0])}: a "
                    f"feature may have up to max_categories={self.max_categories}; leave "
                    "the column out with drop=[...]",
                    column=name,
                )
            rows = int((~np.isnan(table.column(j))).sum())
            if rows >= _MANY and len(texts) > 0.9 * rows:
                _warn(
                    table,
                    j,
                    f"nearly every row has a text of its own ({len(texts)} in {rows} rows), such "
                    f"as {shown(texts[0])}: this is an identifier or free text; leave the column "
                    "out",
                )
            categorical.append(j)
            self.categories_.append(_objects(texts))
        self.categorical_ = np.array(categorical, dtype=np.int64)
        self.truth_ = np.array(truth, dtype=np.int64)

    def _learn_medians(self, table: Table, special: set[int]) -> None:
        matrix = table.matrix
        if not sparse.issparse(matrix):
            missing = np.isnan(matrix).any(axis=0)
            some = ~np.isnan(matrix).all(axis=0)
            medians = np.zeros(matrix.shape[1])
            whole = some & ~missing
            if whole.any():
                medians[whole] = _median(matrix[:, whole])
            for j in np.flatnonzero(some & missing):
                medians[j] = _median(matrix[~np.isnan(matrix[:, j]), j])
            if special:
                medians[sorted(special)] = 0.0
            self.indicated_ = np.flatnonzero(missing)
            self.imputed_ = np.flatnonzero(medians)
            self.medians_ = medians[self.imputed_].astype(np.float64)
            return
        self.indicated_ = np.unique(matrix.indices[np.isnan(matrix.data)]).astype(np.int64)
        if len(self.indicated_) and matrix.shape[1] > _MAX_WIDE:
            raise bad(
                table.source,
                f"values are missing: with {matrix.shape[1]} features none may be "
                f"(the limit is {_MAX_WIDE})",
            )
        # in a sparse column most values are 0, and so is the median, unless half are stored
        columns, counts = np.unique(matrix.indices, return_counts=True)
        often = columns[2 * counts >= matrix.shape[0]]
        found = {
            int(j): table.column(int(j)) for j in {*often.tolist(), *self.indicated_.tolist()}
        }
        medians_of = {
            j: 0.0 if np.isnan(values).all() else float(_median(values[~np.isnan(values)]))
            for j, values in sorted(found.items())
            if j not in special
        }
        kept = {j: median for j, median in medians_of.items() if median != 0.0}
        self.imputed_ = np.array(list(kept), dtype=np.int64)
        self.medians_ = np.array(list(kept.values()), dtype=np.float64)

    @property
    def categorical_names_(self) -> tuple[str, ...]:
        """Names of the columns that have texts, to be read as such."""
        if not hasattr(self, "feature_names_in_"):
            return ()
        return tuple(self.feature_names_in_[j] for j in [*self.categorical_, *self.truth_])

    def transform(self, X: Any) -> Any:
        """Encode features as in training.

        Parameters
        ----------
        X : data frame, mapping of columns, array or sparse matrix
            The features; columns may have another order where they have names.

        Returns
        -------
        ndarray or CSR array
            Numbers, of shape (n, number of encoded features).
        """
        check_is_fitted(self)
        table = self._matched(table_of(X))
        _refuse_infinite(table)
        return self._encode(table)

    def _matched(self, table: Table) -> Table:
        """Give the table with the columns of training, in their order."""
        names = getattr(self, "feature_names_in_", None)
        if names is None or table.names is None:
            found = table.matrix.shape[1]
            if found != self.n_features_in_:
                raise bad(
                    table.source,
                    f"X has {found} features, but FeatureEncoder is expecting "
                    f"{self.n_features_in_} features as input",
                )
            return table
        if list(names) == list(table.names):
            return table
        where = {name: j for j, name in enumerate(table.names)}
        for name in names:
            if name not in where:
                raise bad(table.source, f"there is no column {shown(name)}, which training had")
        free = {*names, *self.dropped_, *([] if self.label_names_ is None else self.label_names_)}
        free.add(self.tag_column_)
        for name in table.names:
            if name not in free:
                raise bad(
                    table.source,
                    f"training had no column {shown(name)}: leave it out with drop=[...]",
                )
        return table.keep([where[name] for name in names])

    def _encode(self, table: Table) -> Any:
        n, p = table.matrix.shape
        matrix = table.matrix
        known = {int(j) for j in [*self.categorical_, *self.truth_]}
        zero_one = set(getattr(self, "zero_one_", ()))  # models of earlier versions have none
        truths = {}
        for j in sorted(table.categories.keys() - known):
            values = table.column(j)
            if j in zero_one and {text.lower() for text in table.categories[j]} <= _WORDS.keys():
                truths[j] = np.array([_WORDS[text.lower()] for text in table.categories[j]])
                continue
            rows = np.flatnonzero(~np.isnan(values))
            if len(rows):
                text = table.categories[j][int(values[rows[0]])]
                raise bad(
                    table.source,
                    f"{shown(text)} is not a number: in training this column had numbers",
                    **table.place(int(rows[0]), j),
                )
        if truths:
            table = _with_numbers(table, truths)
            matrix = table.matrix
        extra = len(self.indicated_)
        widths = None
        if known:
            widths = np.ones(p, dtype=np.int64)
            widths[self.categorical_] = [len(texts) for texts in self.categories_]
        blocks: dict[int, Any] = {}  # what takes the place of each column of texts
        for j, texts in zip(self.categorical_.tolist(), self.categories_, strict=True):
            blocks[j] = _one_hot(table, j, self._texts(table, j), texts.tolist())
        for j in self.truth_.tolist():
            blocks[j] = self._truths(table, j)[:, None]
        gaps = None
        if extra:
            gaps = np.column_stack([np.isnan(table.column(j)) for j in self.indicated_.tolist()])
        if sparse.issparse(matrix):
            matrix = self._filled_sparse(matrix)
            if widths is None and gaps is None:
                return matrix if self.sparse_ else matrix.toarray()
            out = _spread(matrix, blocks, gaps, widths)
            return out if self.sparse_ else out.toarray()
        out = self._filled(matrix)
        if widths is not None or gaps is not None:
            width = p if widths is None else int(widths.sum())
            wide = np.empty((n, width + extra), dtype=out.dtype)
            plain = [j for j in range(p) if j not in blocks]
            starts = np.arange(p) if widths is None else np.cumsum(widths) - widths
            wide[:, starts[plain]] = out[:, plain]
            for j, block in blocks.items():
                at = int(starts[j])
                wide[:, at : at + block.shape[1]] = block
            if gaps is not None:
                wide[:, width:] = gaps
            out = wide
        return sparse.csr_array(out) if self.sparse_ else out

    def _texts(self, table: Table, j: int) -> list[str | None]:
        """Give the texts of a column; numbers that are categories become texts."""
        values = table.column(j)
        texts = table.categories.get(j)
        if texts is None:
            return [None if value != value else text_of(value) for value in values.tolist()]
        return [None if value != value else texts[int(value)] for value in values.tolist()]

    def _truths(self, table: Table, j: int) -> npt.NDArray[np.float64]:
        out = np.zeros(table.matrix.shape[0])
        for row, text in enumerate(self._texts(table, j)):
            if text is None:
                continue
            value = TRUTH.get(text.lower(), _as_number(text))
            if value not in (0, 1):
                raise bad(
                    table.source,
                    f"{shown(text)} is neither 0 nor 1: in training this column was no and yes, "
                    "or false and true",
                    **table.place(row, j),
                )
            out[row] = float(value)
        return out

    def _median_of(self, columns: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Give the median of training of some columns."""
        out = np.zeros(len(columns))
        if len(self.imputed_):
            at = np.searchsorted(self.imputed_, columns).clip(max=len(self.imputed_) - 1)
            same = self.imputed_[at] == columns
            out[same] = self.medians_[at[same]]
        return out

    def _filled(self, matrix: Any) -> Any:
        rows, columns = np.nonzero(np.isnan(matrix))
        if len(rows):
            matrix = matrix.copy()
            matrix[rows, columns] = self._median_of(columns)
        return matrix

    def _filled_sparse(self, matrix: Any) -> Any:
        at = np.flatnonzero(np.isnan(matrix.data))
        if len(at):
            matrix = matrix.copy()
            matrix.data[at] = self._median_of(matrix.indices[at])
            matrix.eliminate_zeros()
        return matrix

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Give the names of the encoded features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns, where training had none.

        Returns
        -------
        ndarray of object
            One name per encoded feature.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", input_features)
        if names is None:
            names = [f"x{j + 1}" for j in range(self.n_features_in_)]
        texts = dict(zip(self.categorical_.tolist(), self.categories_, strict=True))
        out: list[str] = []
        for j, name in enumerate(names):
            out.extend([name] if j not in texts else [f"{name}={text}" for text in texts[j]])
        return _objects([*out, *(f"{names[j]} missing" for j in self.indicated_)])


def _median(values: Any) -> Any:
    """Give the median of each column; the sum of the middle two may be too large."""
    with np.errstate(over="ignore"):
        median = np.median(values, axis=0)
        return np.where(np.isinf(median), 2.0 * np.median(values / 2.0, axis=0), median)


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = list(values)
    return out


def _warn(table: Table, j: int, sentence: str) -> None:
    column = j + 1 if table.names is None else table.names[j]
    warnings.warn(str(bad(table.source, sentence, column=column)), UserWarning, stacklevel=2)


def _zero_one(matrix: Any, special: set[int]) -> npt.NDArray[np.int64]:
    """Give which columns of a dense matrix have 0 and 1 only."""
    if sparse.issparse(matrix):
        return np.empty(0, dtype=np.int64)
    first = matrix[0]  # most columns are told by their first row
    maybe = np.flatnonzero((first == 0) | (first == 1) | np.isnan(first))
    found = []
    for j in maybe.tolist():
        column = matrix[:, j]
        if j not in special and ((column == 0) | (column == 1) | np.isnan(column)).all():
            found.append(j)
    return np.array(found, dtype=np.int64)


def _with_numbers(table: Table, numbers: dict[int, npt.NDArray[Any]]) -> Table:
    """Put numbers in the place of the texts of some columns."""
    matrix = table.matrix.tolil() if sparse.issparse(table.matrix) else table.matrix.copy()
    for j, meant in numbers.items():
        values = table.column(j).copy()
        known = ~np.isnan(values)
        values[known] = meant[values[known].astype(np.intp)]
        matrix[:, j] = values[:, None] if sparse.issparse(matrix) else values
    categories = {j: texts for j, texts in table.categories.items() if j not in numbers}
    matrix = sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix
    return replace(table, matrix=matrix, categories=categories)


def _as_number(text: str) -> Decimal | None:
    """Give the number that a text says, without rounding; None where it says none."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _one_hot(
    table: Table, j: int, texts: Sequence[str | None], categories: Sequence[str]
) -> npt.NDArray[np.float64]:
    where: dict[str, int] = {text: k for k, text in enumerate(categories)}
    numbers = {_as_number(text): k for k, text in enumerate(categories)}
    as_numbers = len(numbers) == len(categories) and None not in numbers
    out = np.zeros((len(texts), len(categories)))
    unseen: dict[str, int] = {}
    for row, text in enumerate(texts):
        if text is None:
            continue
        k = where.get(text)
        if k is None and as_numbers and (value := _as_number(text)) is not None:
            k = numbers.get(value)
            if k is not None:
                where[text] = k
        if k is None:
            unseen[text] = unseen.get(text, 0) + 1
        else:
            out[row, k] = 1.0
    if unseen:
        _warn(
            table,
            j,
            f"{sum(unseen.values())} of {len(texts)} rows have a category that training did not "
            f"have, such as {shown(next(iter(unseen)))}",
        )
    return out


def _spread(matrix: Any, blocks: dict[int, Any], gaps: Any, widths: Any) -> Any:
    """Put a sparse matrix, and what takes the place of some columns, into one CSR matrix."""
    n, p = matrix.shape
    widths = np.ones(p, dtype=np.int64) if widths is None else widths
    starts = np.cumsum(widths) - widths
    coo = matrix.tocoo()
    free = ~np.isin(coo.col, list(blocks))
    rows, columns = [coo.row[free]], [starts[coo.col[free]]]
    data = [coo.data[free]]
    pieces = [(int(starts[j]), block) for j, block in blocks.items()]
    if gaps is not None:
        pieces.append((int(widths.sum()), gaps.astype(np.float64)))
    for start, block in pieces:
        row, column = np.nonzero(block)
        rows.append(row)
        columns.append(start + column)
        data.append(block[row, column])
    width = int(widths.sum()) + (0 if gaps is None else gaps.shape[1])
    at = (np.concatenate(rows), np.concatenate(columns))
    out = sparse.csr_array((np.concatenate(data).astype(matrix.dtype), at), shape=(n, width))
    return make_csr(out.data, out.indices, out.indptr, (n, width))


def _refuse_infinite(table: Table) -> None:
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
    raise bad(
        table.source,
        "the value is infinite: features must be finite numbers",
        **table.place(row, column),
    )
