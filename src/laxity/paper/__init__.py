"""The tables and figures of the papers Laxity is made of, run again.

One file is one table or figure: run → result file → plot. `FIGURES` names them all.
"""

FIGURES = {
    "ssg-fig4": "Slack-ScaleGate, Figs. 1–4: what waiting costs and what it saves",
    "ssg-fig8": "Slack-ScaleGate, Fig. 8: the time a read takes, by number of readers",
    "ssg-fig9": "Slack-ScaleGate, Figs. 9–10: rows and comparisons, by number of nodes",
    "ssg-table1": "Slack-ScaleGate, Table 1: how well four regressors predict what slack does",
    "ssg-fig12": "Slack-ScaleGate, Fig. 12: slack rules when a source is slow in periods",
    "ssg-fig13": "Slack-ScaleGate, Fig. 13: slack rules when a source falls behind for good",
    "tintin-table3": "TinTiN, Table 3: alerts told exactly, again, otherwise or not at all",
}
