"""The commands on a table of texts, dates, categories, numbers and identifiers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import fgfm
from command_line import assert_one_line_error, label_sets, names_of, notes_of, run, run_ok
from fgfm.cli._films import GENRES
from fgfm.io import load_blocks
from films_table import by_hand, genre_matrix, make_films

pytestmark = pytest.mark.filterwarnings("default")
TRAIN = 450


@pytest.fixture(scope="module")
def films():
    table = make_films(600)
    table.loc[TRAIN + 5, "director"] = "Someone Else"
    return table


@pytest.fixture(scope="module")
def trial(films, tmp_path_factory):
    """A folder with the files of the trial, and what ``fgfm fit`` prints."""
    path = tmp_path_factory.mktemp("films")
    films[:TRAIN].to_csv(path / "films.csv", index=False)
    films[TRAIN:].drop(columns="genres").to_csv(path / "new.csv", index=False)
    films[TRAIN:].drop(columns="genres").to_parquet(path / "new.parquet")
    wide = films.drop(columns="genres").join(genre_matrix(films).add_prefix("is_"))
    wide[:TRAIN].to_csv(path / "wide.csv", index=False)
    result = run_ok("fit", path / "films.csv", "--labels", "genres", "-o", path / "films.fgfm")
    return path, result


def score(films, sets):
    Y = genre_matrix(films[TRAIN:]).to_numpy()
    predicted = [[genre in found for genre in GENRES] for found in sets]
    return fgfm.f_measure(Y, np.array(predicted, dtype=int))


def test_films_in_one_run(tmp_path):
    films = make_films(TRAIN + 1000)  # of fewer test rows F1 has a standard error of 0.02
    films[:TRAIN].to_csv(tmp_path / "films.csv", index=False)
    films[TRAIN:].drop(columns="genres").to_csv(tmp_path / "new.csv", index=False)
    model = tmp_path / "films.fgfm"
    fitted = run_ok("fit", tmp_path / "films.csv", "--labels", "genres", "-o", model)
    run_ok("predict", model, tmp_path / "new.csv", "-o", tmp_path / "sets.csv")
    sets, _ = label_sets(tmp_path / "sets.csv")
    hand = by_hand(films[:TRAIN], films[TRAIN:].reset_index(drop=True))
    assert score(films, sets) > hand - 0.01 > 0.5
    assert notes_of(fitted) == ""
    assert "film_id   identifier  left out" in fitted.stdout


def test_kinds_are_printed_at_80_columns(trial):
    lines = trial[1].stdout.splitlines()
    table = [line.split(maxsplit=2) for line in lines[: lines.index("")]]
    assert {name: kind for name, kind, _ in table} == {
        "column": "kind",
        "film_id": "identifier",
        "title": "text",
        "released": "date",
        "director": "category",
        "plot": "text",
        "minutes": "number",
        "budget": "number",
        "colour": "number",
        "genres": "labels",
        "labels": "split",
    }
    assert lines[lines.index("") - 1].startswith("labels split at '|': ")
    assert max(map(len, lines)) <= 80


def test_saved_model_reads_frames_and_files_alike(films, trial):
    path, _ = trial
    model = fgfm.load(path / "films.fgfm")  # without trust
    frame = films[TRAIN:].drop(columns="genres").reset_index(drop=True)
    run_ok("predict", path / "films.fgfm", path / "new.parquet", "-o", path / "sets.csv")
    with pytest.warns(UserWarning, match="category that training did not have"):
        expected = names_of(model.predict(frame), list(model.label_names_in_))
    assert label_sets(path / "sets.csv")[0] == expected


def test_genres_in_columns_of_their_own(films, trial):
    path, _ = trial
    options = ["--labels", "is_*", "--ids", "film_id", "-o", path / "wide.fgfm"]
    assert notes_of(run_ok("fit", path / "wide.csv", *options)) == ""
    run_ok("predict", path / "wide.fgfm", path / "new.csv", "-o", path / "wide_sets.csv")
    run_ok("predict", path / "films.fgfm", path / "new.csv", "-o", path / "sets.csv")
    one, _ = label_sets(path / "wide_sets.csv")
    other, _ = label_sets(path / "sets.csv")
    assert [{name.removeprefix("is_") for name in found} for found in one] == other


@pytest.mark.parametrize("size", [5000, pytest.param(99, marks=pytest.mark.slow)])
def test_predictions_do_not_depend_on_the_reader(trial, monkeypatch, tmp_path, size):
    path, _ = trial
    command = ["predict", path / "films.fgfm", "--ids", "film_id,title"]
    run_ok(*command, path / "new.csv", "-o", tmp_path / "one.csv", "--proba", tmp_path / "p.csv")
    monkeypatch.setattr("fgfm.io._load._BLOCK_CELLS", size)
    for name in ("new.csv", "new.parquet"):
        run_ok(*command, path / name, "-o", tmp_path / "s.csv", "--proba", tmp_path / "q.csv")
        assert (tmp_path / "s.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()
        assert (tmp_path / "q.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()


@pytest.mark.parametrize(
    "rows", [7, pytest.param(1, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("learner", ["auto", "ridge"])
def test_predictions_do_not_depend_on_blocks(trial, monkeypatch, tmp_path, learner, rows):
    path, _ = trial
    model = tmp_path / "model.fgfm"
    fit = ["fit", path / "films.csv", "-l", "genres", "-e", learner, "--drop", "plot"]
    run_ok(*fit, "-o", model)
    command = ["predict", model, path / "new.csv"]
    run_ok(*command, "-o", tmp_path / "one.csv", "--proba", tmp_path / "p.csv")
    sizes = []

    def in_blocks(*arguments, **options):
        for block in load_blocks(*arguments, **options, rows=rows):
            sizes.append(block.X.shape[0])
            yield block

    monkeypatch.setattr("fgfm.io.load_blocks", in_blocks)
    run_ok(*command, "-o", tmp_path / "many.csv", "--proba", tmp_path / "q.csv")
    assert sum(sizes) == 150
    assert max(sizes) == rows
    assert (tmp_path / "many.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()
    assert (tmp_path / "q.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()


def test_columns_of_new_files(trial, films, tmp_path):
    path, _ = trial
    frame = films[TRAIN:].drop(columns=["genres", "film_id"])
    frame.assign(rating=5, studio="1 or 2").to_csv(tmp_path / "more.csv", index=False)
    command = ["predict", path / "films.fgfm"]
    result = run_ok(*command, tmp_path / "more.csv", "-o", tmp_path / "sets.csv")
    assert result.stderr.count("ignored") == 1
    assert "more.csv: the columns 'rating', 'studio' are ignored" in result.stderr
    run_ok(*command, path / "new.csv", "-o", tmp_path / "expected.csv")
    assert (tmp_path / "sets.csv").read_text() == (tmp_path / "expected.csv").read_text()
    renamed = frame.rename(columns={"plot": "Plot", "director": "directors", "budget": "cost"})
    renamed.to_csv(tmp_path / "renamed.csv", index=False)
    assert_one_line_error(
        run(*command, tmp_path / "renamed.csv", "-o", tmp_path / "no.csv"),
        "renamed.csv: there are no columns 'director', 'plot', 'budget' (did you mean "
        "'directors', 'Plot'?), which training had",
    )
    assert not (tmp_path / "no.csv").exists()


def test_bad_cells_are_missing_or_leave_no_file(trial, tmp_path):
    path, _ = trial
    frame = pd.read_csv(path / "new.csv", dtype=str)
    frame.loc[120, "budget"] = "unknown"
    frame.to_csv(tmp_path / "late.csv", index=False)
    command = ["predict", path / "films.fgfm", tmp_path / "late.csv", "-o", tmp_path / "s.csv"]
    fault = "late.csv, row 120, column 'budget': 'unknown' is not a number"
    assert_one_line_error(run(*command, "--strict"), fault)
    assert [file.name for file in tmp_path.iterdir()] == ["late.csv"]
    assert f"fgfm: warning: {tmp_path}/{fault}. It is taken as missing" in run_ok(*command).stderr
    found = (tmp_path / "s.csv").read_text()
    frame.assign(budget=frame["budget"].replace("unknown", "")).to_csv(
        tmp_path / "late.csv", index=False
    )
    run_ok(*command)
    assert (tmp_path / "s.csv").read_text() == found
    frame.loc[:8, "budget"] = "unknown"
    frame.to_csv(tmp_path / "late.csv", index=False)
    result = run(*command[:3], "-o", tmp_path / "t.csv")
    rule = "nor are 9 further cells of 150: declare what the column holds, or leave it out"
    assert rule in result.stderr
    assert "option" not in result.stderr  # predict has neither --category nor --drop
    assert not (tmp_path / "t.csv").exists()


def test_kinds_are_options(trial, tmp_path):
    path, _ = trial
    options = ["--text", "director", "--category", "colour,title", "--date", "released"]
    options += ["--drop", "plot", "--ids", "film_id"]
    result = run_ok("fit", path / "films.csv", "-l", "genres", *options, "-o", tmp_path / "m")
    assert result.stderr.count("warning") == 0
    kinds = {name: kind for name, kind, _ in fgfm.load(tmp_path / "m").estimator_[0].summary()}
    assert kinds == {
        "film_id": "identifier",
        "plot": "identifier",
        "title": "category",
        "released": "date",
        "director": "text",
        "minutes": "number",
        "budget": "number",
        "colour": "category",
    }


def test_evaluate_on_films(films, trial, tmp_path):
    path, _ = trial
    films[TRAIN:].to_csv(tmp_path / "test.csv", index=False)
    result = run_ok("evaluate", tmp_path / "test.csv", "--model", path / "films.fgfm")
    assert "150 rows" in result.stdout
    lists = films[TRAIN:].replace({"genres": {"drama": "dramas"}})
    lists.to_csv(tmp_path / "test.csv", index=False)
    assert_one_line_error(
        run("evaluate", tmp_path / "test.csv", "--model", path / "films.fgfm"),
        "there is no label 'dramas' among the known ones; did you mean 'drama'?",
    )


NOISE = "".join(
    f"{k * k % 19},{k % 2},{k % 3 // 2},{k % 5 // 4},{k % 7 // 6}\n" for k in range(99)
)


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ("1,1,0,0,1\n2,1,0,1,0\n", "every training row has the label 'a': nothing can be"),
        ("1,1,0,0,1\n2,1,0,1,0\n", "no training row has the label 'b': nothing can be learned"),
    ],
)
@pytest.mark.filterwarnings("ignore:n_samples=")
def test_notes_on_poor_data(tmp_path, rows, note):
    (tmp_path / "d.csv").write_text("x,a,b,c,d\n" + rows)
    command = ["fit", tmp_path / "d.csv", "-l", "-4", "-o", tmp_path / "m.fgfm"]
    assert run_ok(*command).stderr.count(f"fgfm: note: {note}") == 1


@pytest.mark.parametrize("rows", ["1,1,0,0,0\n", "1,0,0,0,0\n2,0,0,0,0\n"])
def test_labels_that_do_not_vary_raise(tmp_path, rows):
    (tmp_path / "d.csv").write_text("x,a,b,c,d\n" + rows)
    result = run("fit", tmp_path / "d.csv", "-l", "-4", "-o", tmp_path / "m.fgfm")
    assert_one_line_error(result, "at least one label must vary")


def test_large_sets_have_a_note(tmp_path):
    note = "fgfm: note: the label sets are large because the model is unsure: expected F1 0."
    (tmp_path / "d.csv").write_text("x,a,b,c,d\n" + NOISE)
    data = [tmp_path / "d.csv", "-l", "-4"]
    run_ok("fit", *data, "-o", tmp_path / "m.fgfm")
    predicted = run_ok(
        "predict", tmp_path / "m.fgfm", tmp_path / "d.csv", "-o", tmp_path / "s.csv"
    )
    assert predicted.stderr.count(note) == 1
    assert run_ok("evaluate", *data).stderr.count(note) == 1


def test_good_data_have_no_notes(tmp_path):
    rows = "".join(f"{k % 8},{k % 8 > 3:d},{k % 4 > 1:d},{k % 2}\n" for k in range(80))
    (tmp_path / "d.csv").write_text("x,a,b,c\n" + rows)
    command = ["fit", tmp_path / "d.csv", "-l", "-3", "--category", "x", "-o", tmp_path / "m.fgfm"]
    assert notes_of(run_ok(*command)) == ""
    assert "note" not in run_ok("predict", tmp_path / "m.fgfm", tmp_path / "d.csv").stderr


def test_labels_that_were_not_observed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(k, k % 2, "" if k % 5 == 0 else k % 3 // 2) for k in range(60)]
    whole = pd.DataFrame(rows, columns=["x", "a", "b"])
    whole.to_csv("d.csv", index=False)
    whole[whole["b"] != ""].to_csv("observed.csv", index=False)
    options = ["-l", "-2", "--number", "x"]
    fit = ["fit", "d.csv", *options, "-e", "ridge", "-o", "m.fgfm"]
    assert "labels   2, 0.77 per row" in run_ok(*fit).stdout
    assert "rows     60" in run_ok(*fit, "--missing-labels").stdout
    for command in (["evaluate", "--folds", "3"], ["evaluate", "--model", "m.fgfm"]):
        command += [*options, "--json"]
        found = run_ok(*command, "d.csv", "--missing-labels")
        expected = json.loads(run_ok(*command, "observed.csv").stdout) | {"data": "d.csv"}
        assert json.loads(found.stdout) == expected
        assert "12 of 60 rows left out: some of their labels were not observed" in found.stderr


def test_no_row_with_all_labels_raises(tmp_path):
    (tmp_path / "d.csv").write_text("x,a,b\n" + "1,,1\n2,0,\n" * 5)
    result = run("evaluate", tmp_path / "d.csv", "-l", "-2", "--missing-labels")
    assert_one_line_error(result, "--missing-labels: no row has all its labels")
