"""Labels y of any form: validated to a boolean matrix, and predictions in the form of y."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from fgfm._utils.names import check_same_names, column_names
from fgfm._utils.validation import (
    check_label_columns,
    check_same_rows,
    first_index,
    label_sets,
    place,
    real_array,
)

Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]

_SEPARATORS = "|;,"  # of labels in a text


class LabelTable(NamedTuple):
    """Validated labels, and the form in which they were passed."""

    labels: Any  # (n, m) booleans, or CSR where `keep_sparse` asks for it
    classes: npt.NDArray[Any]  # names or numbers of the labels; the classes of a 1-D y
    names: npt.NDArray[Any] | None  # (m,) columns of a data frame
    form: str  # "flat", "classes" (1-D, more than two), "lists" (of candidates), or that of a
    # matrix: "dense", "sparse array", "sparse matrix"
    dtype: str  # of a matrix; "" if y is flat
    observed: Labels | None = None  # (n, m), False where a label is missing; None if none is

    def at(self, rows: Any) -> LabelTable:
        """Return some of the rows."""
        observed = None if self.observed is None else self.observed[rows]
        return self._replace(labels=self.labels[rows], observed=observed)


def read_labels(
    y: Any,
    n: int,
    owner: str,
    *,
    keep_sparse: bool = False,
    allow_missing: bool = False,
    allow_classes: bool = False,
    allow_lists: bool = False,
    names: Any = None,
) -> LabelTable:
    """Validate labels of any form.

    Parameters
    ----------
    y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
        Labels: 0 or 1 in a matrix, any two classes in a flat array.
    n : int
        The expected number of rows.
    owner : str
        Name of the estimator, for messages.
    keep_sparse : bool, default=False
        Keep sparse labels in CSR.
    allow_missing : bool, default=False
        Accept NaN and -1 in a matrix, for labels that were not observed. They become False in
        ``labels`` and in ``observed``.
    allow_classes : bool, default=False
        Accept a flat y of more than two classes. They become columns of ``labels``.
    allow_lists : bool, default=False
        Accept lists or sets of the names of labels, one for each row.
    names : sequence of str, optional
        All labels that lists may have; by default those that occur, sorted.

    Returns
    -------
    LabelTable
        The labels and their form.
    """
    if y is None:
        raise ValueError(
            f"{owner} requires y to be passed, but the target y is None: "
            "pass the labels as a 0/1 matrix"
        )
    _check_not_masked(y)
    rows = label_lists(y)
    if rows is not None:
        if not allow_lists:
            raise ValueError(
                f"y[0] is {rows[0]!r}: labels must be a matrix (n, m) of 0 and 1; "
                "sklearn.preprocessing.MultiLabelBinarizer converts lists of labels"
            )
        table = _list_table(rows, names)
        check_same_rows([n, len(rows)], ["X", "y"])
        return table
    if not sparse.issparse(y) and not hasattr(y, "columns"):
        y = np.asarray(y)
    if y.shape[:1] == (0,):
        raise ValueError(f"y has shape {y.shape}: it must have at least one row")
    if len(y.shape) == 1 or (isinstance(y, np.ndarray) and y.shape[1:] == (1,)):
        table = _flat_table(y, allow_classes)
    else:
        check_label_columns(y, "y")
        complete, observed = split_missing(y, "y") if allow_missing else (y, None)
        labels = label_sets(complete, "y")
        form = "dense"
        if sparse.issparse(y):
            form = "sparse array" if isinstance(y, sparse.sparray) else "sparse matrix"
            if sparse.issparse(labels) and not keep_sparse:
                labels = labels.toarray()
        names = column_names(y)
        classes = np.arange(labels.shape[1]) if names is None else names
        if not sparse.issparse(labels):
            labels = np.asarray(labels, np.bool_)
        table = LabelTable(labels, classes, names, form, _dtype_of(y), observed)
    check_same_rows([n, table.labels.shape[0]], ["X", "y"])
    return table


def split_missing(y: Any, name: str) -> tuple[Any, Labels | None]:
    """Return y with 0 for missing labels, NaN or -1, and which are observed; y if none is."""
    if sparse.issparse(y) and np.isin(y.tocsr().data, [0, 1]).all():
        return y, None  # without a dense copy
    values = y.toarray() if sparse.issparse(y) else real_array(y, name, ("row", "label"))
    missing = (values == -1) | (values != values)  # NaN
    if not missing.any():
        return y, None
    if (values == -1).any() and not (values == 0).any():
        raise ValueError(
            f"{place(name, first_index(values == -1))} is -1, and no label is 0: -1 marks a label "
            "that was not observed; a label that a row does not have must be 0"
        )
    return np.where(missing, 0, values), ~missing


def _flat_table(y: Any, allow_classes: bool) -> LabelTable:
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if _are_joined(y):
        raise ValueError(f"y {separated_texts(y)}")
    if kind == "multiclass" and allow_classes:
        classes, code = np.unique(y, return_inverse=True)
        return LabelTable(code[:, None] == np.arange(len(classes)), classes, None, "classes", "")
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}: a "
            "flat y must have two classes; pass several labels as a 0/1 matrix (n, m)"
            f"{separated_texts(y, '; y ')}"
        )
    classes = np.unique(y)
    labels = np.asarray(y == classes[-1])[:, None] & (len(classes) == 2)
    return LabelTable(labels, classes, None, "flat", "")


def separated_texts(y: Any, prefix: str = "") -> str:
    """Return how to split texts such as "a;b" of a flat y; nothing if there is no such text."""
    flat = isinstance(y, (list, tuple)) or len(getattr(y, "shape", ())) == 1
    texts = [str(text) if isinstance(text, str) else "" for text in y] if flat else []
    for i, text in enumerate(texts):
        separator = next((c for c in _SEPARATORS if c in text), None)
        if separator is not None:
            return (
                f"{prefix}has texts with several labels (y[{i}] is {text!r}): pass lists of "
                f"names, [text.split({separator!r}) for text in y]; fgfm.io reads tables of such "
                "texts"
            )
    return ""


def _are_joined(y: npt.NDArray[Any]) -> bool:
    """Return True if texts share labels, as "a;b" and "b" do: classes do not."""
    texts = {text for text in y.tolist() if isinstance(text, str)}
    for separator in _SEPARATORS:
        lists = [text.split(separator) for text in texts if separator in text]
        parts = {part.strip() for labels in lists for part in labels}
        if lists and (parts & texts or len(parts | texts) < 2 * len(lists)):
            return True
    return False


def _dtype_of(y: Any) -> str:
    """Return the name of the dtype of predictions: that of y if it is numeric, else int64."""
    dtype = y.dtype if hasattr(y, "dtype") else np.asarray(y).dtype
    numeric = isinstance(dtype, np.dtype) and dtype.kind in "biuf"
    return str(dtype) if numeric else "int64"


def _check_not_masked(y: Any) -> None:
    if isinstance(y, np.ma.MaskedArray):
        raise TypeError("y is a masked array: fill its masked values first")


def label_lists(y: Any) -> list[Any] | None:
    """Return the rows of a y that lists the labels of each row; None if it does not."""
    rows: Any = None
    if isinstance(y, (list, tuple)):
        rows = y
    elif isinstance(y, np.ndarray) and y.dtype == np.dtype(object) and y.ndim == 1:
        rows = list(y)
    elif hasattr(y, "to_list"):  # a series
        rows = y.to_list()
    if not rows:
        return None
    sequences = [row for row in rows if isinstance(row, (list, tuple, set, frozenset, np.ndarray))]
    lengths = {len(row) for row in sequences}
    by_name = any(isinstance(label, str) for row in sequences for label in row)
    if sequences and (by_name or len(lengths) > 1 or isinstance(sequences[0], (set, frozenset))):
        return list(rows)
    return None


def _list_table(rows: list[Any], names: Any) -> LabelTable:
    """Return the labels of rows that list their names; in the order of the alphabet by default."""
    known = None if names is None else set(names)
    for i, row in enumerate(rows):
        is_list = hasattr(row, "__iter__") and not isinstance(row, (str, bytes))
        if not is_list or not all(isinstance(label, str) for label in row):
            empty = "" if is_list else ", an empty one for a row without labels"
            raise ValueError(f"y[{i}] is {row!r}: it must be a list of the names of labels{empty}")
        unknown = [] if known is None else sorted(set(row) - known)
        if unknown:
            raise ValueError(
                f"y[{i}] has the label {unknown[0]!r}: the labels are "
                f"{', '.join(map(repr, list(names)[:10]))}{', ...' if len(names) > 10 else ''}"
            )
    binarizer = MultiLabelBinarizer(classes=names)
    labels = binarizer.fit_transform(rows).astype(np.bool_)
    classes = np.asarray(binarizer.classes_, dtype=object)
    return LabelTable(labels, classes, classes, "dense", "int64")


def set_label_attributes(estimator: Any, table: LabelTable) -> None:
    """Set the attributes of an estimator that describe the y of `fit`.

    Of two classes of a flat y, the positive one is the last of the table, and of `_classes`;
    `classes_` are sorted.
    """
    estimator.classes_ = estimator._classes = table.classes
    if table.form == "flat" and len(table.classes) == 2 and table.classes[1] < table.classes[0]:
        estimator.classes_ = table.classes[::-1]
    estimator.multilabel_ = table.form not in ("flat", "classes")
    estimator._label_form, estimator._label_dtype = table.form, table.dtype
    vars(estimator).pop("label_names_in_", None)  # of an earlier fit
    if table.names is not None:
        estimator.label_names_in_ = table.names


def format_labels(labels: Any, form: str, dtype: str, classes: npt.NDArray[Any]) -> Any:
    """Return predicted labels in the form and dtype of the y of `fit`.

    They are an array (n, m) or CSR, or lists if those were lists.
    """
    if form == "lists":
        return [row.astype(dtype) for row in labels]
    if sparse.issparse(labels) and form in ("flat", "classes"):
        labels = labels.toarray()
    if sparse.issparse(labels):
        return (labels.toarray() if form == "dense" else labels).astype(dtype)
    if form in ("flat", "classes"):
        return classes[labels[:, 0] if form == "flat" else labels.argmax(axis=1)]
    if form == "dense":
        return labels.astype(dtype)
    kind = sparse.csr_array if form == "sparse array" else sparse.csr_matrix
    return kind(labels.astype(dtype))


def read_true_labels(y: Any, classifier: Any) -> Any:
    """Return the labels to score a fitted classifier against, checked to be those of its `fit`.

    A flat y becomes a column of 0 and 1, or one for each of more than two classes, and so do lists
    of the names of labels; a matrix is returned unchanged.
    """
    classes = classifier.classes_
    _check_not_masked(y)
    if not classifier.multilabel_:
        y = column_or_1d(y)
        unknown = ~np.isin(y, classes)
        if unknown.any():
            found = y[unknown].tolist()[0]
            raise ValueError(
                f"y[{int(np.argmax(unknown))}] is {found!r}: the classes in fit were "
                f"{', '.join(map(repr, classes.tolist()))}"
            )
        if len(classes) > 2:
            return y[:, None] == classes
        positive = vars(classifier).get("_classes", classes)[-1]
        return ((y == positive) & (len(classes) == 2))[:, None]
    names = getattr(classifier, "label_names_in_", None)
    rows = None if names is None else label_lists(y)
    if rows is not None:
        return _list_table(rows, names).labels
    check_same_names(column_names(y), names, "y", "fit")
    return y
