"""Columns that are easily misread: numbers among texts, decimal commas, identifiers, dates; and files of all kinds."""

import bz2
import gzip
import io
import lzma
import os
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from cli_cases import call, patients
from melc import MELC
from melc.export import from_json
from melc.tables import Roles, Source, TableError, open_training, read_blocks, read_table
from melc.tables import source as source_module
from melc.tables.apply import predictions
from melc.tables.inspection import contents_to_fit
from melc.tables.survey import Survey, settle

TEXT = "size,colour\n1,red\n2.5,blue\n"


def written(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Source(str(path), **options)


def content_of(values, name):
    """Return what a column of an Arrow table holds; raise an error if it is most likely misread."""
    survey = Survey(name)
    survey.add(pa.array(values))
    return contents_to_fit(settled({name: survey}))[name]


def settled(surveys):
    settle(surveys.values())
    return surveys


def opened(source, roles):
    with open_training(source, roles) as rows:
        return rows


class TestMisreadNumbers:
    def test_a_text_among_numbers_is_named(self):
        with pytest.raises(TableError, match=r"98 numbers and 2 text values: 'unknown', 'n. a.'.*--na-values"):
            content_of([str(k) for k in range(98)] + ["unknown", "n. a."], "bmi")

    def test_nine_of_ten_are_nearly_all(self):
        numbers = [str(k % 10) for k in range(90)]
        with pytest.raises(TableError, match="90 numbers and 10 text values: 'low', 'high'"):
            content_of([*numbers, *["low", "high"] * 5], "grade")
        assert content_of([*numbers[1:], *["low", "high"] * 5, "low"], "grade") == "text"

    def test_decimal_commas_and_points_together(self):
        """No option reads both, so none is named."""
        with pytest.raises(TableError, match=r"such as '1,5'.*not all of them written in one way. Write all") as error:
            content_of([f"{k},5" if k % 2 else f"{k}.5" for k in range(30)], "bmi")
        assert error.value.remedy == ("--drop", "bmi")

    def test_nearly_unique_numbers_with_many_texts_are_no_identifiers(self):
        with pytest.raises(TableError, match=r"80 numbers and 20 text values: '-'\. .*--na-values -"):
            content_of([str(k / 7) if k % 5 else "-" for k in range(100)], "bmi")

    def test_texts_that_are_meant_as_texts_stay_categories(self):
        assert content_of(["01", "02"] * 10, "zip") == content_of(["1", "2", "A", "B"] * 5, "grade") == "text"

    def test_true_and_false(self):
        assert content_of(["true", "FALSE", None] * 10, "ok") == "truth"
        assert content_of(["true", "false", "maybe"] * 10, "ok") == "text"

    def test_missing_values_with_another_name(self, tmp_path):
        source = written(tmp_path / "t.csv", "a,b\n1,x\nunknown,?\n", na_values=("unknown", "?"))
        assert read_table(source).to_pydict() == {"a": [1, None], "b": ["x", None]}
        (block,) = read_blocks(source, {"a": "number", "b": "text"})
        assert block.to_pydict() == {"a": [1, None], "b": ["x", None]}

    def test_decimal_point(self, tmp_path):
        source = written(tmp_path / "t.csv", "a;b\n1,5;x\n2;y\n", decimal=",")
        assert read_table(source).to_pydict() == {"a": [1.5, 2], "b": ["x", "y"]}
        (block,) = read_blocks(source, {"a": "number"})
        assert block.to_pydict() == {"a": [1.5, 2]}


class TestIdentifiers:
    def test_nearly_unique_texts_are_refused(self):
        with pytest.raises(TableError, match=r"'id' has 100 different texts in 120 rows, such as 'p0'.*--drop id"):
            content_of([f"p{k}" for k in range(100)] + ["p0"] * 20, "id")

    def test_few_different_texts_are_not(self):
        assert content_of(["a", "b", "c"], "c") == "text"

    def test_many_texts_are_a_category_if_each_occurs_several_times(self):
        assert content_of([f"town {k % 2000}" for k in range(6000)], "town") == "text"

    def test_numbers_that_a_text_follows_after_very_many(self):
        survey = Survey("zip", written=True)
        survey.add(pa.array([str(k) for k in range(1500)]))
        survey.add(pa.array(["X12"]))
        with pytest.raises(TableError, match="'zip' has 1500 numbers and 1 text value: 'X12'"):
            contents_to_fit(settled({"zip": survey}))


class TestDates:
    DAYS = ("2024-01-02", "1970-01-01", "1969-12-31 12:00", "2000-02-29T06:00:00")
    NUMBERS = (19724, 0, -0.5, 11016.25)

    def test_days_since_1970(self, tmp_path):
        rows = "".join(f"{day},{'ab'[k % 2]}\n" for k, day in enumerate([*self.DAYS, "1970-01-02T01:00:00"]))
        source = written(tmp_path / "t.csv", f"when,y\n{rows}")
        X = opened(source, Roles("y")).X
        np.testing.assert_array_equal((X["when"] - pd.Timestamp(0)) / pd.Timedelta(days=1), [*self.NUMBERS, 1 + 1 / 24])

    def test_new_rows_have_gaps_wrong_dates_and_time_zones(self, tmp_path):
        frame = pd.DataFrame({"when": pd.date_range("1970-01-01", periods=60), "y": ["a", "b"] * 30})
        model = MELC(n_init=1, random_state=0).fit(frame[["when"]], frame["y"])
        for text, day in {"1970-01-02T01:00:00+01:00": "1970-01-02", "": None}.items():
            (found,) = predictions(model, written(tmp_path / "t.csv", f'when,x\n"{text}",1\n'), proba=True)
            known = model.predict_proba(pd.DataFrame({"when": [pd.Timestamp(day) if day else pd.NaT]}))
            np.testing.assert_array_equal(found.probabilities, known)
        with pytest.raises(TableError, match="'when' contains 'soon'; dates must be written as 2024-12-31"):
            list(predictions(model, written(tmp_path / "t.csv", "when\n2024-01-01\nsoon\n")))

    @pytest.mark.parametrize("kind", ["date32", "timestamp[ns]", "timestamp[us, tz=Europe/Warsaw]"])
    def test_parquet(self, tmp_path, kind):
        days = pd.date_range("2020-01-01", periods=40, tz="UTC" if "tz" in kind else None)
        types = {"date32": pa.date32(), "timestamp[ns]": pa.timestamp("ns")}
        values = pa.array(days).cast(types.get(kind, pa.timestamp("us", "Europe/Warsaw")))
        pyarrow.parquet.write_table(pa.table({"when": values, "y": ["a", "b"] * 20}), tmp_path / "t.parquet")
        X = opened(Source(str(tmp_path / "t.parquet")), Roles("y")).X
        np.testing.assert_array_equal(X["when"], days.tz_localize(None).to_numpy())

    @pytest.mark.parametrize("form", ["2024-01-{:02}T10:00{}", "unknown"])
    def test_dates_that_cannot_be_read_are_no_categories(self, form):
        days = ["2024-01-05"] * 39 + ["unknown"] if form == "unknown" else []
        texts = days or [form.format(k % 9 + 1, "Z" * (k % 2)) for k in range(40)]
        with pytest.raises(TableError, match=r"'when' has dates that cannot all be read.*2024-12-31.*--drop when"):
            content_of(texts, "when")

    def test_versions_are_categories(self):
        assert content_of(["1.2.3", "1.10.0"] * 20, "v") == "text"

    def test_a_target_of_dates_stays_a_class(self, tmp_path):
        source = written(tmp_path / "t.csv", "x,day\n" + "1,2024-01-01\n2,2024-01-02\n" * 2)
        assert opened(source, Roles("day")).labels.tolist() == ["2024-01-01", "2024-01-02"] * 2


class TestFiles:
    @pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
    def test_delimiters_are_found_out(self, tmp_path, mark):
        source = written(tmp_path / "t.csv", TEXT.replace(",", mark))
        assert read_table(source).column_names == ["size", "colour"]
        assert [block.num_rows for block in read_blocks(source, {"size": "number"})] == [2]

    def test_a_delimiter_within_quotes_is_none(self, tmp_path):
        source = written(tmp_path / "t.csv", 'a,"b;c;d",e\n1,"2;3;4",5\n')
        assert read_table(source).column_names == ["a", "b;c;d", "e"]

    @pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
    def test_encodings(self, tmp_path, encoding):
        source = written(tmp_path / "t.csv", "größe,b\n1,ü\n2,é\n".encode(encoding), encoding=encoding)
        assert read_table(source).to_pydict() == {"größe": [1, 2], "b": ["ü", "é"]}
        (block,) = read_blocks(source, {"größe": "number", "b": "text"})
        assert block.to_pydict() == {"größe": [1, 2], "b": ["ü", "é"]}

    def test_the_index_of_pandas_is_named_and_noted(self, tmp_path):
        pd.DataFrame({"x": [1.5, 2.5], "y": ["a", "b"]}).to_csv(tmp_path / "t.csv")
        source = Source(str(tmp_path / "t.csv"))
        with pytest.warns(UserWarning, match="column 1 has no name and is called 'column 1'.*--drop 'column 1'"):
            table = read_table(source)
        assert table.to_pydict() == {"column 1": [0, 1], "x": [1.5, 2.5], "y": ["a", "b"]}
        (block,) = read_blocks(source, {"x": "number", "column 1": "number"})
        assert block.to_pydict() == {"x": [1.5, 2.5], "column 1": [0, 1]}

    @pytest.mark.filterwarnings("ignore:.*has no name")
    def test_a_nameless_column_after_empty_lines_and_a_name_with_a_line_break(self, tmp_path):
        table = read_table(written(tmp_path / "t.csv", '\n\n,"a\nb"\n0,1\n1,2\n'))
        assert table.to_pydict() == {"column 1": [0, 1], "a\nb": [1, 2]}

    @pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, lambda b: zipped({"t.csv": b})])
    def test_compressed_files(self, tmp_path, pack):
        source = written(tmp_path / "t", pack(TEXT.encode()))
        assert read_table(source).to_pydict() == {"size": [1, 2.5], "colour": ["red", "blue"]}

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (lambda: zipped({"a.csv": b"x", "b.csv": b"y"}), "the zip archive has 2 files"),
            (lambda: zipped({"[Content_Types].xml": b"x", "b.xml": b"y"}), "Office document; save the table as CSV"),
            (lambda: b"\x28\xb5\x2f\xfd123456", "compressed with Zstandard; unpack it"),
            (lambda: b"PK\x03\x04 and no more", "cannot be read"),
            (lambda: bz2.compress(TEXT.encode() * 99)[:-9], "cannot be read"),
        ],
    )
    def test_archives_without_a_table(self, tmp_path, content, message):
        with pytest.raises(TableError, match=message):
            read_table(written(tmp_path / "t.zip", content()))

    def test_the_first_sheet_of_an_excel_file(self, tmp_path):
        pytest.importorskip("openpyxl", reason="the extra excel is not installed")
        frame = pd.DataFrame(
            {"size": [1, 2.5], "when": pd.to_datetime(["2020-01-05", "2021-03-02"]), "is, a": ["NA", "b"]}
        )
        with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
            frame.to_excel(book, sheet_name="first", index=False)
            frame[:1].to_excel(book, sheet_name="second")
        with pytest.warns(UserWarning, match="of 2 sheets, the first, 'first', is read"):
            table = read_table(Source(str(tmp_path / "t.xlsx")))
        assert table.column("size").to_pylist() == [1, 2.5]
        assert table.column("is, a").to_pylist() == [None, "b"]
        assert table.column("when").to_pylist()[1].startswith("2021-03-02")

    @pytest.mark.parametrize("damage", [(b"</row>", b""), (b'r="A2"', b'r="??"'), (b"<sheetData>", b"<sheetData/>")])
    def test_a_damaged_excel_file(self, tmp_path, damage):
        pytest.importorskip("openpyxl", reason="the extra excel is not installed")
        pd.DataFrame({"size": [1, 2.5]}).to_excel(tmp_path / "t.xlsx", index=False)
        with zipfile.ZipFile(tmp_path / "t.xlsx") as book:
            parts = {name: book.read(name).replace(*damage) for name in book.namelist()}
        with pytest.raises(TableError, match=r"an Excel file that cannot be read \(.*\); save the table as CSV"):
            read_table(written(tmp_path / "t.xlsx", zipped(parts)))

    def test_an_excel_file_without_openpyxl(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "openpyxl", None)
        book = zipped({"[Content_Types].xml": b"x", "xl/workbook.xml": b"y"})
        with pytest.raises(ImportError, match=r"need openpyxl: pip install 'melc\[excel\]', or save the table as CSV"):
            read_table(written(tmp_path / "t.xlsx", book))

    def test_an_excel_file_that_unpacks_to_too_much(self, tmp_path, monkeypatch):
        pytest.importorskip("openpyxl", reason="the extra excel is not installed")
        monkeypatch.setattr("melc.tables.source._ALLOWED_UNPACKED_BYTES", 10)
        book = zipped({"[Content_Types].xml": b"x", "xl/workbook.xml": bytes(10**6)})
        with pytest.raises(TableError, match="implausibly many bytes"):
            read_table(written(tmp_path / "t.xlsx", book))

    @pytest.mark.parametrize("pack", [lambda b: b, gzip.compress, lambda b: zipped({"t.csv": b})])
    def test_a_pipe_is_copied_to_a_temporary_file_that_is_removed(self, tmp_path, monkeypatch, pack):
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
        reader, writer = os.pipe()
        with open(writer, "wb") as stream:
            stream.write(pack(b"a,b\n" + b"1,2\n" * 100))
        with open(reader, "rb") as stream:
            monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
            assert read_table(Source("-")).num_rows == 100
        assert not list((tmp_path / "temporary").iterdir())

    @pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lambda b: zipped({"t.csv": b})])
    def test_unpacking_without_end_stops(self, tmp_path, monkeypatch, pack):
        monkeypatch.setattr(source_module, "_ALLOWED_UNPACKED_BYTES", 2**21)
        bomb = written(tmp_path / "bomb", pack(b"a,b\n" + b"1,2\n" * 2**21))
        for read in (read_table, lambda s: list(read_blocks(s, {"a": "number"}))):
            with pytest.raises(TableError, match="unpacks to more than 200 times its size"):
                read(bomb)

    def test_an_honest_file_may_be_large(self, tmp_path, monkeypatch):
        monkeypatch.setattr(source_module, "_ALLOWED_UNPACKED_BYTES", 2**10)
        numbers = np.random.default_rng(0).normal(size=20_000)
        text = "a,b\n" + "".join(f"{x},1\n" for x in numbers)
        assert read_table(written(tmp_path / "t.gz", gzip.compress(text.encode()))).num_rows == 20_000

    def test_libsvm_counted_from_zero(self, tmp_path):
        source = written(tmp_path / "t", "1 0:5 2:7\n0 1:2\n")
        assert read_table(source).to_pydict() == {"label": [1, 0], "f0": [5, 0], "f1": [0, 2], "f2": [7, 0]}
        (block,) = read_blocks(source, {"f0": "number", "f2": "number"})
        assert block.select(["f0", "f2"]).to_pydict() == {"f0": [5, 0], "f2": [7, 0]}
        with pytest.raises(TableError, match="counts features from 0, the model from 1"):
            list(read_blocks(source, {"f1": "number", "f2": "number"}))

    def test_libsvm_beyond_its_bounds(self, tmp_path, monkeypatch):
        """One large number of a feature must not take the memory of all the features below it."""
        with pytest.raises(TableError, match="2 rows of 999,999,999 features are too large for a dense table"):
            read_table(written(tmp_path / "wide", "1 1:5 999999999:7\n0 1:2\n"))
        monkeypatch.setattr("melc.tables.read._MOST_LIBSVM_BYTES", 2**20)
        with pytest.raises(TableError, match="at most 1 MiB of text; convert the table to Parquet or CSV"):
            read_table(written(tmp_path / "long", "1 1:5\n0 1:2\n" * 2**17))


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


class TestOnTheCommandLine:
    def test_odd_values_and_their_mending(self, tmp_path):
        frame = patients().astype({"age": object})
        frame.loc[3, "age"] = "unknown"
        frame.to_csv(tmp_path / "p.csv", index=False)
        fit = ["fit", tmp_path / "p.csv", "-t", "outcome", "--n-init", 1, "--no-cv", "-o", tmp_path / "m"]
        refused = call(*fit, "--drop", "id")
        assert refused.exit_code == 1
        assert "'age' has 199 numbers and 1 text value: 'unknown'" in refused.stderr
        mended = call(*fit, "--drop", "id", "--na-values", "unknown")
        assert mended.exit_code == 0, mended.output
        assert "--drop id" in call(*fit, "-f", "--na-values", "unknown").stderr

    def test_commas_semicolons_and_latin_1(self, tmp_path):
        frame = patients().rename(columns={"dose": "größe"})
        frame.to_csv(tmp_path / "p.csv", index=False, sep=";", decimal=",", encoding="latin-1")
        fit = ["fit", tmp_path / "p.csv", "-t", "outcome", "--drop", "id", "--n-init", 1, "--no-cv"]
        assert "--encoding" in call(*fit, "-o", tmp_path / "m").stderr
        assert "asked for" in call(*fit, "--encoding", "latin-1", "--decimal", ".", "-o", tmp_path / "m").stderr
        done = call(*fit, "--encoding", "latin-1", "-o", tmp_path / "m")
        assert done.exit_code == 0, done.output
        assert "(decimal commas and thousands points)" in done.stderr
        assert "200 rows, 3 features" in done.stdout

    def test_dates_are_used_and_the_index_is_noted(self, tmp_path):
        frame = patients().drop(columns="id").assign(day=pd.date_range("2024-01-01", periods=200).strftime("%Y-%m-%d"))
        frame.to_csv(tmp_path / "p.csv")
        done = call("fit", tmp_path / "p.csv", "-t", "outcome", "--n-init", 1, "-o", tmp_path / "m")
        assert done.exit_code == 0, done.output
        notes = [line for line in done.stderr.splitlines() if line.startswith("note:")]
        assert len([line for line in notes if "column 1 has no name" in line]) == 1
        assert list(from_json((tmp_path / "m").read_text()).columns_.dates) == [4]
        predicted = call("predict", tmp_path / "m", tmp_path / "p.csv")
        assert predicted.exit_code == 0, predicted.output

    @pytest.mark.parametrize("option", [["--encoding", "klingon"], ["--decimal", "comma"]])
    def test_options_that_make_no_sense(self, tmp_path, option):
        (tmp_path / "p.csv").write_text("a,b\n1,2\n")
        done = call("fit", tmp_path / "p.csv", "-t", "b", *option, "-o", tmp_path / "m")
        assert done.exit_code == 2
        assert "Traceback" not in done.output
