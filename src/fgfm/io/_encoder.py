"""Features of a data frame: numbers, categories, dates and texts through a `ColumnTransformer`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_array, check_is_fitted

from fgfm._utils.optional import import_optional
from fgfm._utils.text import ignored_columns, listed, missing_columns, quoted
from fgfm.io._cells import Faults, as_array, as_days, as_texts, date_format
from fgfm.io._errors import DataError
from fgfm.io._files import check_names
from fgfm.io._kinds import MANY, check_notation, count_tokens, find_kind

KINDS = ("number", "category", "date", "text")  # that can be declared
# Parts of a date, beside the days since the first one, and their names in pandas.
DATE_PARTS = {"year": "year", "month": "month", "weekday": "day_of_week"}

_FEW = 255  # categories up to which a table without texts stays dense
_RARE_CATEGORIES = 20  # in columns of more categories those of fewer than _RARE_ROWS share one
_RARE_ROWS = 5
_MAX_TERMS = 20_000  # of a column of texts
_SHORT = 3.0  # tokens per text below which character n-grams are used

Columns = dict[str, Any]  # pyarrow arrays by name


class ColumnSummary(NamedTuple):
    """One column of a table and its encoding.

    Attributes
    ----------
    name : str
        The name of the column.
    kind : str
        number, category, date, text or identifier.
    becomes : str
        The features that it becomes, in words.
    """

    name: str
    kind: str
    becomes: str


class FeatureEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode the columns of a data frame as numbers.

    The kind of each column is found from its values in training, unless it is declared:

    - number: also the words no and yes, false and true. A missing number becomes the median, and
      a 0/1 feature marks it if numbers were missing in training.
    - category: texts that are repeated. One 0/1 feature per category; in columns of more than 20,
      those of fewer than 5 rows share one feature, with those that training did not have.
    - date: the year, the month, the weekday (0 is Monday) and the days since the first date.
    - text: TF-IDF of words and pairs of words; of character n-grams where texts have few words or
      no spaces.
    - identifier: a code or number that differs in each row. It is left out.

    Sparse features are numbers, which are returned as they are. Numbers of tables are scaled to
    unit variance where there are texts or many categories. A cell that is not a number or date
    becomes missing, with a warning.

    Parameters
    ----------
    number, category, date, text : sequence of str, default=()
        Columns of a given kind.
    drop : sequence of str, default=()
        Columns to leave out, as identifiers are. They may be absent.
    labels : sequence of str, default=()
        Columns that are labels, not features: they are ignored where a table has them.
    dense : bool, default=False
        Whether to return an array even of texts, many categories, or sparse features.

    Attributes
    ----------
    kinds_ : dict of str to str
        The kind of each column.
    columns_ : ColumnTransformer or None
        The encoder of the converted columns; None if features were sparse.
    n_features_in_ : int
        The number of columns.
    zero_based_ : tuple of two bool or None
        Whether svmlight rows of training numbered features, and labels, from 0. It is not learned
        by `fit`: who reads the file sets it, so that further files are read alike.
    feature_names_in_ : ndarray of shape (p,)
        The names of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from fgfm.io import FeatureEncoder
    >>> encoder = FeatureEncoder()
    >>> films = pd.DataFrame({"minutes": [90, None, 120], "country": ["FR", "IT", "FR"]})
    >>> encoder.fit_transform(films)
    array([[ 90.,   0.,   1.,   0.],
           [105.,   1.,   0.,   1.],
           [120.,   0.,   1.,   0.]])
    >>> encoder.transform(pd.DataFrame({"country": ["IT"], "minutes": ["100"]}))
    array([[100.,   0.,   0.,   1.]])
    >>> for column in encoder.summary():
    ...     print(*column, sep=": ")
    minutes: number: 1 number; 33.3% missing
    country: category: 2 categories
    """

    zero_based_: tuple[bool, bool] | None = None

    def __init__(
        self,
        *,
        number: Sequence[str] = (),
        category: Sequence[str] = (),
        date: Sequence[str] = (),
        text: Sequence[str] = (),
        drop: Sequence[str] = (),
        labels: Sequence[str] = (),
        dense: bool = False,
    ) -> None:
        self.number = number
        self.category = category
        self.date = date
        self.text = text
        self.drop = drop
        self.labels = labels
        self.dense = dense

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> FeatureEncoder:
        """Find the kinds of the columns; learn categories, vocabularies and medians.

        Parameters
        ----------
        X : data frame, mapping of columns, pyarrow.Table or array of shape (n, p)
            The features.
        y : object
            Not used.

        Returns
        -------
        FeatureEncoder
            The encoder itself.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the encoder and encode the same features.

        Parameters
        ----------
        X : data frame, mapping of columns, pyarrow.Table or array of shape (n, p)
            The features.
        y : object
            Not used.

        Returns
        -------
        ndarray or CSR array of shape (n, n_features_out)
            The encoded features.
        """
        if sparse.issparse(X):
            self.kinds_: dict[str, str] = {}
            self.n_features_in_ = X.shape[1]
            self.columns_: Any = None
            return self._as_they_are(X)
        columns, has_names, source = _columns_of(X)
        columns = {name: c for name, c in columns.items() if name not in self.labels}
        n = len(next(iter(columns.values()), ()))
        if n == 0:
            what = "0 sample(s)" if columns else "0 feature(s)"
            raise DataError(
                f"{what} (shape={(0, len(columns))}) while a minimum of 1 is required."
            )
        faults = Faults(source)
        self.n_features_in_ = len(columns)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if has_names:
            self.feature_names_in_ = np.array(list(columns), dtype=object)
        self._learn_kinds(columns, has_names, source)
        frame = self._converted(columns, faults)
        faults.report(n)
        self.columns_ = self._make_transformer(frame)
        try:
            return self.columns_.fit_transform(frame)
        except ValueError as error:
            if "vocabulary" not in str(error) and "no terms" not in str(error).lower():
                raise
            raise DataError(
                f"one of the columns of texts {listed(self._of_kind('text'))} has no words: "
                "declare it a category, or leave it out",
                source=source,
                arguments=["category", "drop"],
            ) from error

    def _learn_kinds(self, columns: Columns, has_names: bool, source: str) -> None:
        """Find the kind of each column, the notation of dates, and their first day."""
        declared: dict[str, str] = {}
        for kind in (*KINDS, "drop"):
            for name in getattr(self, kind):
                if name not in columns and kind != "drop":
                    reason = missing_columns([name], list(columns))
                    raise DataError(reason, source=source, arguments=[kind])
                if declared.setdefault(name, kind) != kind:
                    raise DataError(
                        f"the column {quoted(name)} is both {declared[name]} and {kind}: it must "
                        "have one kind",
                        source=source,
                        arguments=[declared[name], kind],
                    )
        self.kinds_ = {name: "identifier" for name in self.drop if name not in columns}
        self.date_formats_: dict[str, str] = {}
        self.first_days_: dict[str, float] = {}
        self.missing_: dict[str, float] = {}  # share of missing values, of numbers and dates
        for name, column in columns.items():
            kind = declared.get(name) or find_kind(column, name if has_names else None)
            if name not in declared and kind != "number":
                check_notation(column, name, source)
            self.kinds_[name] = "identifier" if kind == "drop" else kind
            if kind == "date":
                texts = as_texts(column)
                present = texts[[text is not None for text in texts]]
                self.date_formats_[name] = date_format(present) or "ISO8601"
                days = as_days(texts, self.date_formats_[name])
                self.first_days_[name] = 0.0 if np.isnan(days).all() else float(np.nanmin(days))

    def _converted(self, columns: Columns, faults: Faults) -> Any:
        """Return a pandas data frame of numbers, and of texts for categories and texts."""
        import pandas as pd

        parts: dict[str, Any] = {}
        for name, kind in self.kinds_.items():
            if kind == "number":
                parts[name] = faults.numbers(name, columns[name])
            elif kind == "date":
                texts, format = as_texts(columns[name]), self.date_formats_[name]
                days = as_days(texts, format)
                example = "1999-12-31" if format == "ISO8601" else format
                wrong = np.isnan(days) & pd.notna(texts)
                faults.add(name, texts, wrong, f"a date such as {example}")
                known = np.where(np.isnan(days), np.iinfo(np.int64).min, days).astype(np.int64)
                dates = pd.Series(known.astype("datetime64[D]").astype("datetime64[s]")).dt
                parts[f"{name} days"] = days - self.first_days_[name]
                for part, attribute in DATE_PARTS.items():
                    parts[f"{name} {part}"] = getattr(dates, attribute).to_numpy(np.float64)
            elif kind != "identifier":
                texts = pd.Series(as_texts(columns[name]), dtype=object)
                parts[name] = texts.fillna("" if kind == "text" else "(missing)").to_numpy()
        return pd.DataFrame(parts, index=range(len(next(iter(columns.values()), ()))))

    def _of_kind(self, kind: str) -> list[str]:
        return [name for name, found in self.kinds_.items() if found == kind]

    def _make_transformer(self, frame: Any) -> ColumnTransformer:
        """Return the unfitted transformer of a converted frame."""
        dates = self._of_kind("date")
        counts = {name: frame[name].nunique() for name in self._of_kind("category")}
        is_wide = "text" in self.kinds_.values() or sum(counts.values()) > _FEW
        numbers = [*self._of_kind("number"), *(f"{name} days" for name in dates)]
        self.missing_ = {name: float(frame[name].isna().mean()) for name in numbers}
        parts = [f"{name} {part}" for name in dates for part in DATE_PARTS]

        def fill(indicate: bool) -> Pipeline:
            imputer = SimpleImputer(
                strategy="median", add_indicator=indicate, keep_empty_features=True
            )
            scaler = [("scale", StandardScaler())] if is_wide else []
            return Pipeline([("impute", imputer), *scaler])

        def one_hot(count: int) -> OneHotEncoder:
            return OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                max_categories=_FEW,
                min_frequency=_RARE_ROWS if count > _RARE_CATEGORIES else None,
            )

        steps: list[tuple[str, Any, Any]] = [("number", fill(True), numbers)]
        steps += [("date", fill(False), parts)]
        steps += [(self._step(name), one_hot(count), [name]) for name, count in counts.items()]
        steps += [
            (self._step(name), _vectorizer(frame[name]), name) for name in self._of_kind("text")
        ]
        return ColumnTransformer(
            [step for step in steps if len(step[2])],
            sparse_threshold=1.0 if is_wide and not self.dense else 0.0,
        )

    def _step(self, name: str) -> str:
        """Return the name of the step of a category or text: scikit-learn allows no __ in it."""
        return f"column {list(self.kinds_).index(name)}"

    def transform(self, X: Any) -> Any:
        """Encode features as in training.

        Parameters
        ----------
        X : data frame, mapping of columns, pyarrow.Table or array
            The features. Columns are matched by name; those that training did not have are
            ignored, with a warning.

        Returns
        -------
        ndarray or CSR array of shape (n, n_features_out)
            The encoded features.
        """
        check_is_fitted(self, "columns_")
        if self.columns_ is None:
            return self._as_they_are(X)
        columns, has_names, source = _columns_of(X.toarray() if sparse.issparse(X) else X)
        faults = Faults(source)
        encoded = self._encode(columns, faults, has_names)
        faults.report(encoded.shape[0])
        return encoded

    def _as_they_are(self, X: Any) -> Any:
        """Return sparse features, as an array if this is wanted."""
        X = check_array(
            X, accept_sparse="csr", ensure_all_finite="allow-nan", estimator="FeatureEncoder"
        )
        self._check_width(X.shape[1], "X")
        if self.dense:
            return X.toarray() if sparse.issparse(X) else X
        X = sparse.csr_array(X)
        if max(X.shape[1], X.nnz) < 2**31:  # some learners take no others
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return X

    def _check_width(self, found: int, source: str) -> None:
        if found != self.n_features_in_:
            raise DataError(
                f"X has {found} features, but FeatureEncoder is expecting {self.n_features_in_} "
                "features as input",
                source=None if source == "X" else source,
            )

    def _encode(self, columns: Columns, faults: Faults, has_names: bool = True) -> Any:
        """Encode the columns of a batch of rows, and count cells that are not valid."""
        columns = {name: c for name, c in columns.items() if name not in self.labels}
        if has_names and hasattr(self, "feature_names_in_"):
            self._check_columns(columns, faults)
        else:  # matched by position
            self._check_width(len(columns), faults.source)
            names = getattr(self, "feature_names_in_", self.kinds_)
            columns = dict(zip(names, columns.values(), strict=True))
        frame = self._converted(columns, faults)
        for name in self._of_kind("category"):
            known = self.columns_.named_transformers_[self._step(name)].categories_[0]
            unseen = ~frame[name].isin([*known, "(missing)"]).to_numpy()
            faults.add_unseen(name, frame[name].to_numpy(), unseen)
        return self.columns_.transform(frame)

    def _check_columns(self, names: Columns, faults: Faults) -> None:
        """Raise if a column of training is missing; warn of others, in the first batch."""
        extra = [name for name in names if name not in self.kinds_]
        needed = [name for name, kind in self.kinds_.items() if kind != "identifier"]
        absent = [name for name in needed if name not in names]
        if absent:
            reason = f"{missing_columns(absent, extra)}, which training had"
            raise DataError(reason, source=faults.source)
        if extra and faults.rows == 0:
            message = f"{faults.source}: {ignored_columns(extra)}"
            warnings.warn(message, UserWarning, stacklevel=4)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the encoded features.

        Parameters
        ----------
        input_features : object
            Not used.

        Returns
        -------
        ndarray of str
            The names: the kind, the column, and the category or term.
        """
        check_is_fitted(self, "columns_")
        if self.columns_ is None:
            return np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=object)
        names = self.columns_.get_feature_names_out().tolist()
        steps = {self._step(name): (name, kind) for name, kind in self.kinds_.items()}
        for k, (step, _, feature) in enumerate(name.partition("__") for name in names):
            if step in steps:
                column, kind = steps[step]
                names[k] = (
                    f"{kind} {column}__{feature}" if kind == "text" else f"{kind}__{feature}"
                )
        return np.array(names, dtype=object)

    def summary(self) -> list[ColumnSummary]:
        """Return the kind of each column and the features that it becomes.

        Returns
        -------
        list of ColumnSummary
            One element per column.
        """
        check_is_fitted(self, "columns_")
        return [
            ColumnSummary(str(n), kind, self._becomes(n, kind)) for n, kind in self.kinds_.items()
        ]

    def _becomes(self, name: str, kind: str) -> str:
        if kind == "identifier":
            return "left out"
        step = self.columns_.named_transformers_.get(self._step(name))
        if kind == "text":
            terms = "words and pairs" if step.analyzer == "word" else "character n-grams"
            return f"{len(step.vocabulary_)} {terms}"
        if kind == "category":
            count = len(step.get_feature_names_out())
            return "1 category" if count == 1 else f"{count} categories"
        text = "1 number" if kind == "number" else ", ".join((*DATE_PARTS, "days"))
        share = self.missing_[name if kind == "number" else f"{name} days"]
        return f"{text}; {share:.1%} missing" if share else text


def _vectorizer(texts: Any) -> TfidfVectorizer:
    """Return the vectoriser of texts: of words, or of characters where words are few."""
    tokens, has_spaces = count_tokens(texts.to_numpy())
    terms: dict[str, Any] = {"ngram_range": (1, 2)}
    if not has_spaces:
        terms = {"analyzer": "char", "ngram_range": (1, 3)}
    elif tokens < _SHORT:
        terms = {"analyzer": "char_wb", "ngram_range": (2, 4)}
    min_df = 1 if len(texts) < MANY else 2
    return TfidfVectorizer(sublinear_tf=True, min_df=min_df, max_features=_MAX_TERMS, **terms)


def _columns_of(X: Any) -> tuple[Columns, bool, str]:
    """Return the columns of a table, whether they have names, and the name of its source."""
    pa = import_optional("pyarrow", "encoding columns", "data")
    X = X.to_arrow() if hasattr(X, "to_arrow") else X  # polars
    if isinstance(X, pa.Table):
        return dict(zip(map(str, X.column_names), X.columns, strict=True)), True, "X"
    if isinstance(X, Mapping) or hasattr(X, "columns"):
        names = [str(name) for name in X.keys()]  # noqa: SIM118 (of a data frame)
        check_names(names, "X")
        source = getattr(X, "attrs", {}).get("source", "X")
        return {name: as_array(X[key]) for name, key in zip(names, X, strict=True)}, True, source
    X = check_array(
        X,
        dtype=None,
        ensure_all_finite="allow-nan",
        ensure_min_samples=0,
        ensure_min_features=0,
        estimator="FeatureEncoder",
    )
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    return {f"x{j}": as_array(X[:, j]) for j in range(X.shape[1])}, False, "X"
