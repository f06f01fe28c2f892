"""The page of an exam of configurations: scores over prices."""

from __future__ import annotations

import os
from itertools import count

from selfsent.display import cells_of
from selfsent.exam.plan import Planned
from selfsent.report.pages import BEST, OTHER, WORDS, over_price, render


def exam_page(planned: Planned) -> str:
    """One HTML file: the sentence, each row's score over its price, and the table."""
    points, numbers = [], count(1)
    for tried in planned.tried:
        number, score = next(numbers), tried.test or tried.dev
        if score is None or tried.price is None:
            continue
        efficient = tried.row.name in planned.efficient
        colour = BEST if tried is planned.taken else WORDS if efficient else OTHER
        about = {"number": number, "name": tried.row.name, "price": max(tried.price.total, 1e-3), "colour": colour}
        points.append(about | {"score": score.score, "low": score.low, "high": score.high})
    points.sort(key=lambda each: (each["colour"] == BEST, each["colour"] == WORDS))  # the taken one on top
    table = cells_of(planned.table())
    table = table | {"head": ["", *table["head"]], "right": [True, *table["right"]]}
    table |= {"rows": [[str(number), *cells] for number, cells in enumerate(table["rows"], 1)]}
    return render(
        "exam.html",
        headline=planned.sentence,
        about=planned.about,
        drawing=over_price(points) if points else None,
        table=table,
        lines=planned.lines,
        machine=f"a machine with {os.cpu_count() or 1} processors",
    )
