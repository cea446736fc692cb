from laxity.contract import Contract, SourceTerms, StageTerms


def test_the_contract_says_every_term() -> None:
    contract = Contract(
        pipeline="traffic",
        sources=(
            SourceTerms(
                name="bus",
                event_time="ts",
                arrival="the batch's start",
                sequence="offset",
                idle_after_us=None,
                max_future_us=60_000_000,
            ),
        ),
        stages=(StageTerms(name="apply-1", terms="by_area"),),
        sink="memory",
        delivery="exactly once",
        trigger="every 1s",
        checkpoint="out",
        deadline_us=6_000_000,
    )
    assert str(contract) == (
        "laxity contract of traffic\n"
        "  source bus     event ts, arrival the batch's start, sequence offset, idle never, "
        "future at most 1min, times may be repeated\n"
        "  stage apply-1  by_area\n"
        "  sink           memory, exactly once\n"
        "  trigger        every 1s\n"
        "  deadline       6s, reported for every batch\n"
        "  ledger         every row accounted for at every commit, or the query stops\n"
        "  checkpoint     out"
    )
