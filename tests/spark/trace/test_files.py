"""Traces as files: nothing repaired, in order of arrival, made once; errors with a cure."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from laxity.errors import ConfigError, EngineError
from laxity.spark.trace.files import locate, open_trace
from laxity.spark.trace.options import parse_options
from laxity.spark.trace.source import TraceSource

SECOND_US = 1_000_000
NEW_YEAR_US = 1_767_225_600_000_000
Rows = list[dict[str, Any]]


def load(options: dict[str, str]) -> Rows:
    """The trace's rows, timestamps as microseconds."""
    spec, _ = parse_options(options)
    table = open_trace(spec, locate(spec)).rows
    times = {f.name: pa.int64() for f in table.schema if pa.types.is_timestamp(f.type)}
    fields = [pa.field(f.name, times.get(f.name, f.type)) for f in table.schema]
    rows: Rows = table.cast(pa.schema(fields)).to_pylist()
    return rows


def write_csv(folder: Path, text: str) -> dict[str, str]:
    (folder / "rows.csv").write_text(text)
    return {"path": str(folder)}


def test_rows_of_a_file_come_in_order_of_arrival(tmp_path: Path) -> None:
    text = "n,seen\n1,2026-01-01 00:00:09\n2,2026-01-01 00:00:05\n3,\n4,2026-01-01 00:00:05\n"
    rows = load(write_csv(tmp_path, text) | {"arrival": "seen"})
    assert [row["n"] for row in rows] == [2, 3, 4, 1]
    assert rows[1]["seen"] is None


def test_without_arrival_rows_come_as_they_lie(tmp_path: Path) -> None:
    rows = load(write_csv(tmp_path, "n\n3\n1\n2\n"))
    assert [row["n"] for row in rows] == [3, 1, 2]


def test_garbage_passes_unharmed(tmp_path: Path) -> None:
    texts = ["2026-01-01T00:00:01Z", "soon", None, "2026-13-01T00:00:00"]
    text = "at,n,x\n{},7,1.5\n{},seven,\n{},8,nan\n{},9,2\n".format(*(t or "" for t in texts))
    rows = load(write_csv(tmp_path, text) | {"event": "at", "delay": "constant:1s"})
    assert [row["at"] for row in rows] == texts
    assert [row["n"] for row in rows] == ["7", "seven", "8", "9"]
    assert [row["x"] for row in rows[:2]] == [1.5, None]
    assert {row["arrival"] for row in rows} == {NEW_YEAR_US + 2 * SECOND_US}


def test_times_with_an_offset_and_without_are_utc(tmp_path: Path) -> None:
    text = "a,b\n2026-01-01T01:00:00+01:00,2026-01-01 00:00:00\n"
    assert load(write_csv(tmp_path, text)) == [{"a": NEW_YEAR_US, "b": NEW_YEAR_US}]


def test_a_value_far_down_a_csv_file_decides_its_type_too(tmp_path: Path) -> None:
    numbers = "\n".join(str(number) for number in range(300_000))
    rows = load(write_csv(tmp_path, f"n\n{numbers}\nlast\n"))
    assert (rows[0]["n"], rows[-1]["n"]) == ("0", "last")


def test_a_delay_adds_an_arrival_that_a_seed_fixes(tmp_path: Path) -> None:
    stamps = pa.array(np.arange(50)[::-1] * 1_000, pa.timestamp("us"))
    parquet.write_table(pa.table({"ts": stamps}), tmp_path / "rows.parquet")
    options = {"path": str(tmp_path / "*.parquet"), "event": "ts", "delay": "exponential:1s"}
    rows = load(options)
    assert sorted(row["ts"] for row in rows) == list(range(0, 50_000, 1_000))
    assert all(row["arrival"] >= row["ts"] for row in rows)
    assert [row["arrival"] for row in rows] == sorted(row["arrival"] for row in rows)
    assert rows == load(options | {"seed": "0"})
    assert rows != load(options | {"seed": "1"})


def test_months_with_other_types_are_one_trace(tmp_path: Path) -> None:
    first = {
        "n": pa.array([1], pa.int32()),
        "fee": pa.nulls(1),
        "k": pa.array(["a"]).dictionary_encode(),
    }
    second = {"n": pa.array([2.5]), "fee": pa.nulls(1), "u": pa.array([3], pa.uint32())}
    parquet.write_table(pa.table(first), tmp_path / "1.parquet")
    parquet.write_table(pa.table(second), tmp_path / "2.parquet")
    rows = load({"path": str(tmp_path)})
    assert rows == [
        {"n": 1.0, "fee": None, "k": "a", "u": None},
        {"n": 2.5, "fee": None, "k": None, "u": 3},
    ]


def test_a_trace_is_made_once(tmp_path: Path) -> None:
    spec, _ = parse_options(write_csv(tmp_path, "n\n1\n"))
    first = locate(spec).stat().st_ino
    assert locate(spec).stat().st_ino == first
    assert locate(spec).parent.stat().st_mode & 0o777 == 0o700
    assert [file.suffix for file in locate(spec).parent.iterdir() if file.suffix != ".arrow"] == []


def test_changed_code_is_another_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    code = tmp_path / "made_here.py"
    code.write_text("def rows(seed):\n    return {'n': [seed]}\n")
    spec, _ = parse_options({"generator": "made_here:rows"})
    first = locate(spec)
    assert locate(spec) == first
    code.write_text("def rows(seed):\n    return {'n': [seed, seed]}\n")
    assert locate(spec) != first


def test_a_changed_file_is_another_trace(tmp_path: Path) -> None:
    assert len(load(write_csv(tmp_path, "n\n1\n"))) == 1
    assert len(load(write_csv(tmp_path, "n\n1\n2\n"))) == 2


def test_a_trace_that_others_could_have_changed_is_refused(tmp_path: Path) -> None:
    spec, _ = parse_options(write_csv(tmp_path, "n\n1\n"))
    file = locate(spec)
    file.chmod(0o666)
    with pytest.raises(EngineError, match="can be written by other users"):
        locate(spec)
    with pytest.raises(EngineError, match="can be written by other users"):
        open_trace(spec, file)
    file.unlink()


def test_a_trace_that_nobody_used_for_a_month_goes_when_another_is_made(tmp_path: Path) -> None:
    old, used, new = (
        parse_options(write_csv(tmp_path, "n\n1\n") | {"seed": str(n)})[0] for n in (1, 2, 3)
    )
    files = [locate(spec) for spec in (old, used)]
    for file in files:
        os.utime(file, ns=(0, 0))
    locate(used)
    locate(new)
    assert [file.exists() for file in files] == [False, True]


CSV = {"path": "{folder}/rows.csv"}
BUS = {"generator": "laxity.sim.workload:bus"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either the option path or the option generator"),
        (CSV | BUS, "either the option path or the option generator"),
        ({"path": "/no/such/trace"}, "path must lead to .* got '/no/such/trace'"),
        ({"path": "{folder}"}, "got .*: 2 such files"),
        ({"path": "{folder}/bad.parquet"}, "as one table .bad.parquet."),
        ({"generator": "bus"}, "as \"module:function\"; got 'bus'"),
        ({"generator": "laxity.sim.workload:tram"}, "has no attribute 'tram'"),
        ({"generator": "laxity.nowhere:bus"}, "No module named 'laxity.nowhere'"),
        ({"generator": "math:pi"}, "must name a Python function; got 'math:pi', which is 3.14"),
        (BUS | {"arg.wheels": "6"}, "unexpected keyword argument 'wheels'"),
        (BUS | {"delay": "constant:1s"}, "has a column 'arrival' already"),
        (BUS | {"arrival": "arrival", "delay": "constant:1s"}, "leave one of the two out"),
        (CSV | {"arg.rows": "6"}, r"options arg\.\* are for a generator"),
        (CSV | {"pase": "live"}, "unknown option pase: a trace knows path"),
        (CSV | {"event": "when"}, "event must name a column of the trace .n, x.; got 'when'"),
        (CSV | {"arrival": "when"}, "arrival must name a column"),
        (CSV | {"arrival": "n"}, "column 'n' must hold timestamps.* it holds int64"),
        (CSV | {"arrival": "x"}, "column 'x' holds no timestamp in any of its 2 rows"),
        (CSV | {"delay": "constant:1s"}, "needs the option event"),
        (CSV | {"event": "x", "delay": "soon"}, "column 'x' holds no timestamp"),
        (CSV | {"pace": "live"}, "pace 1 needs to know when rows arrive"),
        (CSV | {"pace": "fast"}, "pace must be .* got 'fast'"),
        (CSV | {"pace": "-1"}, "pace must be .* got '-1'"),
        (CSV | {"pace": "nan"}, "pace must be .* got 'nan'"),
        (CSV | {"rows_per_batch": "0"}, "rows_per_batch must be a whole number ≥ 1, got '0'"),
        (CSV | {"partitions": "two"}, "partitions must be a whole number ≥ 1, got 'two'"),
        (CSV | {"seed": "-1"}, "seed must be a whole number ≥ 0, got '-1'"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    write_csv(tmp_path, "n,x\n1,a\n2,b\n")
    (tmp_path / "bad.parquet").write_text("not Parquet")
    source = TraceSource({key: text.format(folder=tmp_path) for key, text in options.items()})
    with pytest.raises(ConfigError, match=message):
        source.streamReader(source.schema())


def test_what_spark_cannot_hold_is_refused(tmp_path: Path) -> None:
    half = pa.array([1], pa.float16())
    parquet.write_table(pa.table({"n": half}), tmp_path / "rows.parquet")
    with pytest.raises(ConfigError, match="Spark cannot hold a column"):
        load({"path": str(tmp_path)})


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"different names; .*rows\.csv has n, n"):
        load(write_csv(tmp_path, "n,n\n1,2\n"))
