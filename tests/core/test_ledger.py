import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from laxity.core.ledger import Fates, Ledger
from laxity.errors import ContractError

COUNTS = st.integers(0, 10**9)


@st.composite
def batches(draw: st.DrawFn) -> list[Fates]:
    """Batches whose rows all have one fate; what is held may be released later."""
    held, found = 0, []
    for _ in range(draw(st.integers(0, 8))):
        shed, sampled, late, dead, released = (draw(st.integers(0, 50)) for _ in range(5))
        still = draw(st.integers(0, 50))
        rows_in = released + still + shed + sampled + late + dead - held
        if rows_in >= 0:
            found.append(
                Fates(
                    rows_in=rows_in,
                    released=released,
                    held=still,
                    shed=shed,
                    sampled_out=sampled,
                    late_rejected=late,
                    dead=dead,
                )
            )
            held = still
    return found


@given(batches())
def test_honest_batches_always_add_up(found: list[Fates]) -> None:
    ledger = Ledger()
    for fates in found:
        ledger = ledger.after(fates).check()
    assert ledger.rows_in == sum(fates.rows_in for fates in found)


@given(
    batches(),
    st.sampled_from(sorted(set(Fates.model_fields) - {"rows_in", "made"})),
    st.integers(1, 9),
)
def test_one_lost_or_doubled_row_is_noticed(found: list[Fates], fate: str, more: int) -> None:
    ledger = Ledger()
    for fates in found:
        ledger = ledger.after(fates)
    wrong = ledger.model_copy(update={fate: getattr(ledger, fate) + more})
    with pytest.raises(ContractError, match=f"{fate} {getattr(wrong, fate)}"):
        wrong.check()


def test_negative_counts_and_unknown_fates_are_refused() -> None:
    with pytest.raises(ValidationError):
        Fates(held=-1)
    with pytest.raises(ValidationError):
        Fates(vanished=1)  # type: ignore[call-arg]
