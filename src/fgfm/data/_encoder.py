"""Encoding of tabular features: numbers, categories, dates, texts and missing values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.text import listed, missing_columns, quoted
from fgfm._utils.validation import first_entry
from fgfm.data._dates import DATE_PARTS
from fgfm.data._frames import table_from_features
from fgfm.data._kinds import find_kinds
from fgfm.data._number_columns import NumberColumns, hstack
from fgfm.data._table import Table, decoded, extra_columns, make_categorical, texts_and_codes
from fgfm.data._text_columns import RARE, fit_texts, text_part, text_terms
from fgfm.data._typed import ColumnKinds, TypedColumns
from fgfm.data._unseen import UnseenCategories

__all__ = ["ColumnSummary", "FeatureEncoder"]

_FEW = 255  # 0/1 features up to which a table without texts stays dense
_TRUTH_VALUES = {"false": 0.0, "true": 1.0}


class ColumnSummary(NamedTuple):
    """One column of a table and its encoding.

    Attributes
    ----------
    name : str
        The name of the column, or its number from 1.
    kind : str
        number, boolean, category, date, text or identifier.
    becomes : str
        The features that it becomes, in words.
    """

    name: str
    kind: str
    becomes: str


class FeatureEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode the columns of a table as numbers, as they were in training.

    Each column has one of these kinds, found from its values unless it is given:

    - number: kept. The words no and yes, or false and true, are the numbers 0 and 1 (boolean).
    - category: texts that are repeated. One 0/1 feature per category, called
      ``column=category``. Rare categories share one feature, which unseen ones get too; without
      rare ones, unseen ones are zero in all features. Categories that are all numbers are
      compared as numbers: 1.0 is 1, and 01 is not.
    - date: texts that are all dates in one notation. The features are the year, the month, the
      weekday (0 is Monday) and the days since the first date.
    - text: other texts of several words. The features are the TF-IDF values of words and pairs
      of words.
    - identifier: a text without words, or an integer that numbers the rows, of its own for each
      row. Such columns are left out, with a warning.

    A missing number or date is replaced by the median of training, and a 0/1 indicator is appended
    if any value was missing in training; a missing category is a category; a missing text is
    empty. Columns are matched by name if both sides have names, and by position otherwise; further
    columns are ignored with a warning.

    Parameters
    ----------
    max_categories : int, default=255
        The maximum number of features of a category. Beyond it the rarest categories share one.
    sparse_output : bool, default=None
        Whether the encoded features are a CSR array. By default they are if the features that the
        encoder is fitted to are sparse, or if there are texts or many categories.
    text, category, number, date : sequence of str, default=()
        Names of columns of a given kind.
    drop_identifiers : bool, default=True
        Whether identifiers are left out. If not, they are numbers and categories.
    scale : bool, default=True
        Whether numbers and dates are scaled to mean 0 and variance 1 if there are texts or many
        categories, so that they are comparable with those features.

    Attributes
    ----------
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (p,)
        The names of the columns. Defined only if they have names.
    kinds_ : ColumnKinds
        The kinds of the columns, the notation of dates, and the categories that are numbers.
    columns_ : ColumnTransformer or None
        The encoder of categories (`OneHotEncoder`) and texts (`TfidfVectorizer`).
    numbers_ : NumberColumns
        The medians of numbers and of the features of dates, their first days, and their scaler.
    is_scaled_ : bool
        Whether the encoded features are comparable with each other.
    zero_one_ : ndarray of int
        The dense columns of numbers that were all 0 or 1 in training; they may also be written as
        false and true.
    sparse_ : bool
        Whether the encoded features are a CSR array.
    schema_ : Schema
        Labels, omitted columns and numbering of the file that the encoder was fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.data import FeatureEncoder
    >>> encoder = FeatureEncoder()
    >>> encoder.fit_transform({"size": [1.0, np.nan, 4.0], "colour": ["red", "blue", "red"]})
    array([[1. , 0. , 0. , 1. ],
           [2.5, 1. , 1. , 0. ],
           [4. , 0. , 0. , 1. ]])
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'size missing', 'colour=blue', 'colour=red']
    >>> encoder.transform({"colour": ["blue"], "size": [2]})
    array([[2., 0., 1., 0.]])
    >>> for column in encoder.summary():
    ...     print(*column, sep=": ")
    size: number: 1 number; 33.3% missing
    colour: category: 2 categories
    """

    def __init__(
        self,
        max_categories: int = 255,
        sparse_output: bool | None = None,
        *,
        text: Sequence[str] = (),
        category: Sequence[str] = (),
        number: Sequence[str] = (),
        date: Sequence[str] = (),
        drop_identifiers: bool = True,
        scale: bool = True,
    ) -> None:
        self.max_categories = max_categories
        self.sparse_output = sparse_output
        self.text = text
        self.category = category
        self.number = number
        self.date = date
        self.drop_identifiers = drop_identifiers
        self.scale = scale

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> FeatureEncoder:
        """Find the kinds of the columns; learn categories, vocabularies and medians.

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
        self._fit(table_from_features(X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the encoder and encode the same features.

        Parameters
        ----------
        X : data frame, mapping of columns, array or sparse matrix of shape (n, p)
            The features.
        y : object
            Not used.

        Returns
        -------
        ndarray or CSR array of shape (n, n_features_out)
            The encoded features.
        """
        return self._encode(self._fit(table_from_features(X)))

    def _fit(self, table: Table) -> TypedColumns:
        """Fit the encoder to a table; return the columns of the table."""
        n, p = table.matrix.shape
        if n == 0 or p == 0:
            count = f"{n} sample(s)" if n == 0 else f"{p} feature(s)"
            raise table.error(f"{count} (shape={(n, p)}) while a minimum of 1 is required.")
        self.n_features_in_ = p
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if table.names is not None:
            self.feature_names_in_ = _object_array(table.names)
        _check_finite(table)
        self.schema_ = table.schema
        given = self._given_kinds(table)
        table = make_categorical(table, [name for name in given if given[name] != "number"])
        kinds = find_kinds(table, given, identifiers=self.drop_identifiers)
        self.kinds_ = ColumnKinds.of_table(table, kinds)
        self.zero_one_ = _zero_one_columns(table.matrix, set(kinds))
        if self.left_out_:
            _warn_of_identifiers(table.source, self.left_out_)
        columns = self.kinds_.typed(table)
        self.columns_ = fit_texts(table, self.kinds_, columns.texts, self.max_categories)
        is_sparse = sparse.issparse(table.matrix)
        categories = sum(len(found) for _, found in self._terms("category"))
        is_wide = bool(self.kinds_.of_kind("text")) or categories > _FEW
        wanted = is_sparse or is_wide if self.sparse_output is None else self.sparse_output
        self.sparse_ = bool(wanted)
        self.is_scaled_ = bool(self.scale and is_wide and not is_sparse)
        self.numbers_ = NumberColumns().fit(columns, scale=self.is_scaled_)
        return columns

    def _given_kinds(self, table: Table) -> dict[str, str]:
        """Return the kinds that are parameters, by the names of the columns."""
        given: dict[str, str] = {}
        for kind in ("text", "category", "number", "date"):
            for name in getattr(self, kind):
                if name not in (table.names or ()):
                    reason = missing_columns([name], table.names or ())
                    raise table.error(reason, arguments=[kind])
                if given.setdefault(name, kind) != kind:
                    raise table.error(
                        f"the column {quoted(name)} is both {given[name]} and {kind}: a column "
                        "must have one kind",
                        arguments=[given[name], kind],
                    )
        return given

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
        table = table_from_features(X)
        unseen = UnseenCategories()
        out = self._transform_table(table, unseen)
        unseen.warn(table.source)
        return out

    def _transform_table(self, table: Table, unseen: UnseenCategories) -> Any:
        """Encode a table, and count the categories that training did not have."""
        check_is_fitted(self, "kinds_")
        table = self._match_columns(table)
        _check_finite(table)
        table = self._read_truth_values(table)
        for j in self.kinds_.of_kind("category"):
            texts, codes = self.kinds_.categories(table, j), texts_and_codes(table, j)[1]
            known = set(text_part(self.columns_, "category", j).categories_[0])
            unseen.add(self._column_name(j), texts, codes, known)
        return self._encode(self.kinds_.typed(table))

    def _match_columns(self, table: Table) -> Table:
        """Return the table with the columns of training, in their order.

        Columns that are left out may be absent: they have missing values then.
        """
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
        optional = {*(self.schema_.no_features - set(names)), *self.left_out_}
        extra_columns(table.names, names.tolist(), optional, table.source)
        return table.arranged(names.tolist())

    def _read_truth_values(self, table: Table) -> Table:
        """Replace false and true in columns that were 0 or 1 in training; refuse other texts."""
        zero_one = set(self.zero_one_.tolist())
        numbers, categories = {}, dict(table.categories)
        for j in sorted(table.categories.keys() - self.kinds_.kinds.keys()):
            texts, codes = categories.pop(j), table.column(j)
            values = [_TRUTH_VALUES.get(text.lower()) for text in texts]
            if j not in zero_one or None in values:
                wrong = 0 if j not in zero_one else values.index(None)
                raise table.error(
                    f"{quoted(texts[wrong])} is not a number: in training this column had numbers",
                    int(np.argmax(codes == wrong)),
                    j,
                )
            numbers[j] = decoded(codes, values)
        return table.with_columns(numbers, categories) if numbers else table

    def _encode(self, columns: TypedColumns) -> Any:
        """Return the encoded features of columns."""
        X = self.numbers_.transform(columns)
        if self.sparse_ and not sparse.issparse(X):
            X = sparse.csr_array(X)
        if self.columns_ is not None:
            X = hstack(X, self.columns_.transform(columns.texts).astype(X.dtype))
        return X if self.sparse_ or not sparse.issparse(X) else X.toarray()

    def _column_name(self, j: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"x{j + 1}" if names is None else str(names[j])

    def _number_columns(self) -> list[tuple[int, str]]:
        """Return the column of each number, and the part if it is of a date."""
        dates = [(j, part) for j in self.kinds_.of_kind("date") for part in DATE_PARTS]
        return [(j, "") for j in self.kinds_.numbers.tolist()] + dates

    def _terms(self, kind: str) -> list[tuple[int, list[Any]]]:
        return [(j, text_terms(self.columns_, kind, j)) for j in self.kinds_.of_kind(kind)]

    @property
    def left_out_(self) -> tuple[str, ...]:
        """Names of the columns of identifiers."""
        return tuple(map(self._column_name, self.kinds_.of_kind("identifier")))

    @property
    def text_names_(self) -> tuple[str, ...]:
        """Names of the columns with texts, which may look like numbers."""
        has_names = hasattr(self, "feature_names_in_")
        return tuple(map(self._column_name, self.kinds_.kinds)) if has_names else ()

    def summary(self) -> list[ColumnSummary]:
        """Return the kind of each column and the features that it becomes.

        Returns
        -------
        list of ColumnSummary
            One element per column.
        """
        check_is_fitted(self, "kinds_")
        becomes = dict.fromkeys(self.kinds_.numbers.tolist(), "1 number")
        becomes |= dict.fromkeys(self.kinds_.of_kind("date"), ", ".join(DATE_PARTS))
        for k, share in zip(self.numbers_.missing, self.numbers_.shares, strict=True):
            becomes[self._number_columns()[k][0]] += f"; {share:.1%} missing"
        for j, terms in self._terms("category"):
            rare = "" if RARE not in terms else ", one for the rare ones"
            becomes[j] = f"{len(terms)} categories{rare}"
        becomes |= {j: f"{len(words)} words and pairs" for j, words in self._terms("text")}
        zero_one = set(self.zero_one_.tolist())
        return [
            ColumnSummary(
                self._column_name(j),
                self.kinds_.kinds.get(j, "boolean" if j in zero_one else "number"),
                becomes.get(j, "left out"),
            )
            for j in range(self.n_features_in_)
        ]

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
        check_is_fitted(self, "kinds_")
        names = getattr(self, "feature_names_in_", input_features)
        if names is None:
            names = [f"x{j + 1}" for j in range(self.n_features_in_)]
        columns = self._number_columns()
        out = [f"{names[j]} {part}" if part else names[j] for j, part in columns]
        out += [f"{names[columns[k][0]]} missing" for k in self.numbers_.missing]
        for j, terms in self._terms("category"):
            out += [f"{names[j]} missing" if t is None else f"{names[j]}={t}" for t in terms]
        out += [f"{names[j]}: {word}" for j, words in self._terms("text") for word in words]
        return _object_array(out)


def _warn_of_identifiers(source: str, names: Sequence[str]) -> None:
    noun, verb = ("column", "is") if len(names) == 1 else ("columns", "are")
    warnings.warn(
        f"{source}: the {noun} {listed(names)} {verb} left out: each row has a value of its own, "
        f"without words; to use it, declare the {noun} text, category or number",
        UserWarning,
        stacklevel=4,
    )


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


def _check_finite(table: Table) -> None:
    """Raise if a value is infinite."""
    matrix = table.matrix
    values = matrix.data if sparse.issparse(matrix) else matrix
    wrong = np.isinf(values)
    if wrong.any():
        row, column, _ = first_entry(matrix, wrong)
        raise table.error("the value is infinite: features must be finite numbers", row, column)
