from hypothesis import given
from hypothesis import strategies as st

from laxity.sim.windows import Aggregate, App, Row, Running
from support.revising import Arriving, apps, arrivals, coalesced, oracle


@given(apps(), arrivals())
def test_same_as_oracle_on_sorted_rows(app: App, arriving: Arriving) -> None:
    rows = sorted(arriving.rows)
    results = app.on(rows)
    assert {(r.key, r.ts_us, app.kind(r.value)): r.value for r in results} == oracle(app, rows)
    assert [r.ts_us for r in results] == sorted(r.ts_us for r in results)


@given(apps(), arrivals())
def test_what_is_a_span_behind_is_always_out(app: App, arriving: Arriving) -> None:
    """Whoever the newest row belongs to."""
    rows, running = sorted(arriving.rows), Running(app)
    out = {r.ts_us for row in rows for r in running.take(row)}
    watermark_us = app.shape.watermark_us(rows[-1].ts_us)
    assert {ts_us for _, ts_us, _ in oracle(app, rows) if ts_us <= watermark_us} <= out


def test_a_window_fires_as_often_as_the_seed_says() -> None:
    """§2.1: of one hour by half an hour, [08:00, 09:00) and a row at 10:15: three times."""
    fired: list[int] = []

    def note(left_us: int, rows: object) -> None:
        fired.append(left_us)

    running = Running(App((Aggregate(60, 30, note),)))
    running.take(Row(8 * 60 + 40, "meter", 0))
    running.take(Row(9 * 60 - 1, "meter", 0))
    assert fired == []
    running.take(Row(10 * 60 + 15, "meter", 0))
    assert fired == [8 * 60, 8 * 60 + 30]  # and 09:00 holds no row
    running.take(Row(10 * 60 + 29, "meter", 0))
    assert fired == [8 * 60, 8 * 60 + 30]
    running.take(Row(10 * 60 + 30, "meter", 0))
    assert fired == [8 * 60, 8 * 60 + 30, 9 * 60 + 30]


def test_all_keys_move_together() -> None:
    running = Running(App((Aggregate(2, 2, coalesced),)))
    running.take(Row(0, "a", 1))
    running.take(Row(1, "b", 2))
    assert [(r.key, r.ts_us) for r in running.take(Row(2, "c", 3))] == [("a", 0), ("b", 0)]


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 20))
def test_a_window_that_holds_no_row_does_not_fire(size: int, advance: int, ts_us: int) -> None:
    app = App((Aggregate(max(size, advance), advance, coalesced),))
    for result in app.on([Row(ts_us, 0, "x"), Row(ts_us + 30, 0, "y")]):
        assert result.value
        assert result.ts_us % advance == 0
