"""Files changed at random: an error of one line, or the data that the file holds.

The result must be that of a simple reader that shares no code with the package, and must survive a
round trip. Each test runs a few examples, and 100 if slow tests are run; ``FGFM_FUZZ=5000`` sets
their number.
"""

from __future__ import annotations

import gzip
import os
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from fgfm.data import DataError, Dataset, load, save

MANY = int(os.environ.get("FGFM_FUZZ", "100"))


@pytest.fixture(params=[10, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
def fuzz(request):
    """Return a function that calls a check with examples of a strategy."""
    options = settings(
        max_examples=request.param,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize="FGFM_FUZZ" not in os.environ,
        database=None,
    )

    def run(strategy, check):
        options(given(strategy)(check))()

    return run


CSV = """x,y,c,l1,l2
1.5,0,red,0,1
-2e3,,blue,1,1
7,3.25,red,0,0
0.001,12,,1,0
NA,5,green,0,1
"""
NEW_CSV = """c,y,x
red,1,2
green,?,0.5
yellow,7,
,1e3,-4
"""
TAGS = """x,tags
1,a;b
2,
3,b
4, c;a ;
"""
DENSE_ARFF = """@relation 'set: -C -2'
% a remark
@attribute x numeric
@attribute 'a name' real
@attribute c {red,'light blue',green}
@attribute l1 {0,1}
@attribute l2 {0,1}

@data
1.5,0,red,0,1
-2e3,?,'light blue',1,1
7,3.25,red,0,0
?,12,green,1,0
"""
SPARSE_ARFF = """@relation 'set: -C -2'
@attribute x0 numeric
@attribute x1 numeric
@attribute c {red,blue}
@attribute l1 {0,1}
@attribute l2 {0,1}
@data
{0 1.5,2 blue,4 1}
{1 -2e3,3 1,4 1}
{}
{0 7, 1 0.25, 3 1}
"""
SVMLIGHT = """1,3 1:0.5 4:2 # remark
2 2:1e-3 3:-4.25
 1:7
1,2 4:12
3 1:1 2:2 3:3 4:4
"""
XMC = """5 5 3
0,2 1:0.5 4:2
1 2:1e-3 3:-4.25

0,1 4:12
2 0:1 2:2 3:3 4:4
"""
# Texts that replace values or are inserted.
TOKENS = [
    '', '1e999', '1e308', '99999999999999999999', '1000000000', '4000000', '-1', 'nan', 'inf',
    '1_0', '٣', '0x1F', 'é', '\x00', '\u2028', '\x85', '\r', '"', "'", '{', '}', '#', '%', ',',
    ':', ';', '\\', '?', '  ', '\t', '\n', '@data', '1:1', '0,0', 'true', '00', '+5', '1.', '.5',
    '1.0', 'red', '\ufeff', '\x1c', '\ud7ff', "9" * 400, "0." + "0" * 400 + "1", '1e-999',
]  # fmt: skip


@st.composite
def damaged(draw, content: bytes):
    """Draw a file with one to three changes."""
    for _ in range(draw(st.integers(1, 3))):
        size = len(content)
        at = draw(st.integers(0, max(0, size - 1)))
        match draw(st.integers(0, 7)):
            case 0:
                flipped = bytes(b ^ draw(st.integers(1, 255)) for b in content[at : at + 1])
                content = content[:at] + flipped + content[at + 1 :]
            case 1:
                content = content[:at]
            case 2:
                content = content[:at] + draw(st.sampled_from(TOKENS)).encode() + content[at:]
            case 3:  # replace a value
                found = list(re.finditer(rb"[^\s,:]+", content))
                if found:
                    span = draw(st.sampled_from(found)).span()
                    text = draw(st.sampled_from(TOKENS)).encode()
                    content = content[: span[0]] + text + content[span[1] :]
            case 4 | 5 as case:  # delete or duplicate a line
                lines = content.split(b"\n")
                k = draw(st.integers(0, len(lines) - 1))
                lines[k : k + 1] = [] if case == 4 else [lines[k], lines[k]]
                content = b"\n".join(lines)
            case 6:  # swap two lines
                lines = content.split(b"\n")
                i, k = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
                lines[i], lines[k] = lines[k], lines[i]
                content = b"\n".join(lines)
            case _:
                end = draw(st.integers(at, size))
                content = content[:at] + content[end:]
    return content


def attempt(content: bytes, name: str, **options):
    """Return the data of a file; None if it raises an error of one line that names the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            found = load(path, **options)
        except DataError as error:
            message = str(error)
        else:
            assert_valid(found)
            return found
    assert message.startswith(str(path))
    assert "\n" not in message
    return None


def assert_valid(found: Dataset) -> None:
    """Assert that shapes, names and values agree."""
    n, p = found.X.shape
    values = found.X.data if sparse.issparse(found.X) else found.X
    assert n > 0
    assert p > 0
    assert np.isfinite(values).all()
    assert found.feature_names is None or len(found.feature_names) == p
    if found.Y is not None:
        assert len(found.Y) == n
        assert len(found.label_names) == found.Y.shape[1] > 0
        assert found.Y.max(initial=0) <= 1


def assert_round_trip(found: Dataset, name: str, format: str, **options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        save(found, path, format=format)
        assert_same(found, load(path, **options))


def assert_same(one: Dataset, other: Dataset) -> None:
    assert other.X.shape == one.X.shape
    assert_equal(one.X, other.X)
    assert (one.Y is None) == (other.Y is None)
    if one.Y is not None:
        assert (one.Y == other.Y).all()
        assert one.label_names == other.label_names
    assert one.feature_names == other.feature_names


def assert_equal(one, other) -> None:
    if sparse.issparse(one) or sparse.issparse(other):
        assert (sparse.csr_array(one) != sparse.csr_array(other)).nnz == 0
    else:
        assert np.array_equal(one, other)


# A simple reader ----------------------------------------------------------------------------

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
MISSING = {"", "?", "na", "n/a", "nan", "+nan", "-nan", "null"}


def cell(text: str):
    """Return a number, a text, or None."""
    text = text.strip()
    if text.lower() in MISSING:
        return None
    return float(text) if NUMBER.fullmatch(text) else text


def cells(column):
    """Return numbers, texts or None; only texts if most of them have letters."""
    values = [cell(text) for text in column]
    words = [v for v in values if isinstance(v, str) and re.search(r"[^\W\d_]", v)]
    if 2 * len(words) > sum(value is not None for value in values):
        return [
            None if v is None else text.strip() for text, v in zip(column, values, strict=True)
        ]
    return values


def encoded(columns):
    """Return the encoded features of columns of numbers, texts and None."""
    numbers, indicators, categories = [], [], []
    for column in columns:
        texts = sorted({value for value in column if isinstance(value, str)})
        if texts:
            assert all(value is None or isinstance(value, str) for value in column)
            wanted = [*texts, None] if None in column else texts
            categories += [[float(value == text) for value in column] for text in wanted]
        else:
            present = sorted(value for value in column if value is not None)
            k = len(present)
            median = 0.0
            if present:
                median = present[k // 2] / 2 + present[(k - 1) // 2] / 2
            numbers.append([median if value is None else value for value in column])
            if None in column:
                indicators.append([float(value is None) for value in column])
    return np.array([*numbers, *indicators, *categories]).T


def assert_close(found, expected) -> None:
    found = found.toarray() if sparse.issparse(found) else found
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=1e-15, atol=0)


# Text formats --------------------------------------------------------------------------------


def test_csv(fuzz):
    fuzz(damaged(CSV.encode()), check_csv)


def check_csv(content):
    found = attempt(content, "a.csv", labels=["l1", "l2"])
    if found is None:
        return
    if found.X.shape[1] < 3000:
        assert_round_trip(found, "b.csv", "csv", labels=-2)
    text = content.decode("utf-8-sig")
    if '"' in text or "\r" in text:
        return  # the simple reader does not read quotes
    rows = [line.split(",") for line in text.split("\n") if line]
    names, rows = [name.strip() for name in rows[0]], rows[1:]
    assert all(len(row) == len(names) for row in rows)
    table = dict(zip(names, zip(*rows, strict=True), strict=True))
    words = {"true": 1, "false": 0, "yes": 1, "no": 0}
    for k, label in enumerate(("l1", "l2")):
        values = [cell(value) for value in table.pop(label)]
        expected = [words[v.lower()] if isinstance(v, str) else v for v in values]
        assert found.Y[:, k].tolist() == expected
    assert_close(found.X, encoded([cells(column) for column in table.values()]))


@pytest.mark.filterwarnings("ignore:.*category that training did not have:UserWarning")
def test_csv_with_an_encoder(fuzz):
    fuzz(damaged(NEW_CSV.encode()), check_csv_with_an_encoder)


def check_csv_with_an_encoder(content):
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder) / "train.csv"
        train.write_text(CSV, encoding="utf-8")
        encoder = load(train, labels=["l1", "l2"]).encoder
    found = attempt(content, "a.csv", encoder=encoder)
    if found is None:
        return
    assert found.feature_names == tuple(encoder.get_feature_names_out())
    text = content.decode("utf-8-sig")
    if '"' in text or "\r" in text:
        return
    names, *rows = [line.split(",") for line in text.split("\n") if line]
    names = [name.strip() for name in names]
    table = dict(zip(names, zip(*rows, strict=True), strict=True))
    x, y = ([cell(value) for value in table[name]] for name in "xy")
    c = [value.strip() for value in table["c"]]
    expected = [
        [0.7505 if value is None else value for value in x],
        [4.125 if value is None else value for value in y],
        *([float(value is None) for value in column] for column in (x, y)),
        *([float(value == colour) for value in c] for colour in ("blue", "green", "red")),
        [float(value.lower() in MISSING) for value in c],
    ]
    assert_close(found.X, np.array(expected).T)


def test_label_lists(fuzz):
    fuzz(damaged(TAGS.encode()), check_label_lists)


def check_label_lists(content):
    found = attempt(content, "a.csv", labels="tags", separator=";")
    if found is None:
        return
    text = content.decode("utf-8-sig")
    if '"' in text or "\r" in text:
        return
    rows = [line.split(",") for line in text.split("\n") if line]
    at = [name.strip() for name in rows[0]].index("tags")
    for row, labels in zip(rows[1:], found.Y, strict=True):
        missing = row[at].strip().lower() in MISSING
        tags = set() if missing else {tag.strip() for tag in row[at].split(";")} - {""}
        assert tags == {found.label_names[k] for k in np.flatnonzero(labels)}


@pytest.mark.parametrize("content", [DENSE_ARFF, SPARSE_ARFF], ids=["dense", "sparse"])
def test_arff(content, fuzz):
    pytest.importorskip("arff")
    fuzz(damaged(content.encode()), check_arff)


def check_arff(content):
    found = attempt(content, "a.arff")
    if found is None:
        return
    assert_round_trip(found, "b.arff", "meka")
    if all(label.isprintable() for label in found.label_names or ()):  # XML has no others
        assert_round_trip(found, "b.arff", "arff")
    read = liac_arff(content)
    if read is None:
        return
    columns, declared = read
    if found.Y is not None:
        for k, label in enumerate(found.label_names):
            if label not in columns:
                assert "'" in label or '"' in label
                return
            values = [float(value) for value in columns.pop(label)]
            assert found.Y[:, k].tolist() == values
    if any("'" in name or '"' in name for name in found.feature_names):
        return  # liac-arff removes a quote at one end, too
    X = found.X.toarray() if sparse.issparse(found.X) else found.X
    for name, values in columns.items():
        if declared[name] in ("NUMERIC", "REAL", "INTEGER"):
            column = X[:, found.feature_names.index(name)].tolist()
            assert [v for v, w in zip(column, values, strict=True) if w is not None] == [
                w for w in values if w is not None
            ]
        elif set(declared[name]) <= {"0", "1"}:
            column = X[:, found.feature_names.index(name)].tolist()
            pairs = [(x, value) for x, value in zip(column, values, strict=True) if value]
            assert all(x == float(value) for x, value in pairs)
        elif isinstance(declared[name], list):
            for category in set(values) - {None}:
                column = X[:, found.feature_names.index(f"{name}={category}")].tolist()
                assert column == [float(value == category) for value in values]


def liac_arff(content):
    """Return the columns and the types that liac-arff reads, None if it raises."""
    import arff

    text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    is_sparse = re.search(r"^\s*\{", text.partition("@data")[2], re.MULTILINE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = arff.loads(text, return_type=arff.LOD if is_sparse else arff.DENSE)
    except (arff.ArffException, ValueError, IndexError, KeyError, TypeError, SyntaxError):
        return None
    names = [name for name, _ in read["attributes"]]
    rows = read["data"]
    if is_sparse:
        first = [0.0 if isinstance(t, str) else t[0] for _, t in read["attributes"]]
        rows = [[row.get(j, first[j]) for j in range(len(names))] for row in rows]
    columns = {name: [row[j] for row in rows] for j, name in enumerate(names)}
    return columns, dict(read["attributes"])


def simple_rows(lines, first: int):
    """Return the labels and the features of each line."""
    labels, rows = [], []
    for line in lines:
        tokens = line.split()
        tags = []
        if tokens and ":" not in tokens[0]:
            tags = [int(tag) - first for tag in tokens.pop(0).split(",")]
        labels.append(set(tags))
        pairs = [token.split(":") for token in tokens]
        rows.append({int(j): float(value) for j, value in pairs if float(value) != 0})
    return labels, rows


def rows_as_dicts(X):
    """Yield the stored entries of each row."""
    csr = sparse.csr_array(X)
    for row in range(csr.shape[0]):
        span = slice(csr.indptr[row], csr.indptr[row + 1])
        yield dict(zip(csr.indices[span].tolist(), csr.data[span].tolist(), strict=True))


def test_svmlight(fuzz):
    fuzz(damaged(SVMLIGHT.encode()), check_svmlight)


def check_svmlight(content):
    found = attempt(content, "a.svm", format="svmlight")
    if found is None:
        return
    m = {} if found.Y is None else {"labels": found.Y.shape[1]}
    base = Dataset(found.X, found.Y)
    with tempfile.TemporaryDirectory() as folder:
        save(base, Path(folder) / "b.svm")
        again = load(Path(folder) / "b.svm", n_features=found.X.shape[1], **m)
    assert_equal(found.X, again.X)
    assert found.Y is None or (found.Y == again.Y).all()
    text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.partition("#")[0] for line in text.split("\n")]
    lines = [line for line in lines if line.strip(" \t")]
    first = 0 if found.Y is None else int(found.label_names[0])
    labels, rows = simple_rows(lines, first)
    low = 0 if found.encoder.schema_.zero_based else 1
    assert [{j - low: v for j, v in row.items()} for row in rows] == list(rows_as_dicts(found.X))
    if found.Y is not None:
        assert [set(np.flatnonzero(row).tolist()) for row in found.Y] == labels
    else:
        assert not any(labels)


def test_xmc(fuzz):
    fuzz(damaged(XMC.encode()), check_xmc)


def check_xmc(content):
    found = attempt(content, "a.xmc")
    if found is None:
        return
    assert_round_trip(found, "b.xmc", "xmc")
    text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    header, *lines = text.split("\n")
    n, p, m = map(int, header.split())
    assert found.X.shape == (n, p)
    assert m == (0 if found.Y is None else found.Y.shape[1])
    labels, rows = simple_rows(lines[:n], 0)
    assert not "".join(lines[n:]).strip(" \t")
    assert rows == list(rows_as_dicts(found.X))
    if found.Y is not None:
        assert [set(np.flatnonzero(row).tolist()) for row in found.Y] == labels


@pytest.mark.parametrize(
    ("content", "name", "options"),
    [
        (CSV, "a.csv.gz", {"labels": -2}),
        (SPARSE_ARFF, "a.arff.gz", {}),
        (SVMLIGHT, "a.svm.gz", {}),
        (XMC, "a.xmc.gz", {}),
    ],
    ids=["csv", "arff", "svmlight", "xmc"],
)
def test_gzip(content, name, options, fuzz):
    whole = gzip.compress(content.encode(), mtime=0)
    original = attempt(whole, name, **options)

    def check(damage):
        found = attempt(damage, name, **options)
        if found is not None and damage[:2] == b"\x1f\x8b":  # the checksum is valid
            assert_same(original, found)

    fuzz(damaged(whole), check)


# Binary formats ------------------------------------------------------------------------------


def binary(format: str, kind: str) -> bytes:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3)) * (rng.random((6, 3)) < 0.5)
    X = X if kind == "dense" else sparse.csr_array(X)
    Y = (rng.random((6, 2)) < 0.5).astype(np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        save(Dataset(X, Y, ("a", "b", "c"), ("l", "m")), path, format=format)
        return path.read_bytes()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_npz(kind, fuzz):
    whole = binary("npz", kind)
    original = attempt(whole, "a.npz")

    def check(content):
        found = attempt(content, "a.npz")
        if found is None:
            return
        assert_round_trip(found, "b.npz", "npz")
        assert_equal(original.X, found.X)  # the archive has checksums
        if found.Y is not None:
            assert (original.Y == found.Y).all()

    fuzz(damaged(whole), check)


def test_parquet(fuzz):
    pytest.importorskip("pyarrow")
    whole = binary("parquet", "dense")
    original = attempt(whole, "a.parquet")

    def check(content):
        found = attempt(content, "a.parquet")
        if found is not None:
            labels = list(found.label_names or ()) or None
            assert_round_trip(found, "b.parquet", "parquet", labels=labels)
            # the values have checksums; names, types and null masks have none
            assert found.X.shape[0] == original.X.shape[0]

    fuzz(damaged(whole), check)
