from dataclasses import replace

import pytest

from selfsent.evaluation.results import Result, measure
from selfsent.evaluation.suites import SUITES
from selfsent.stats.metrics import mean
from selfsent_papers.published import DATASETS, TABLES, Published, published_rows, records


def rows(suite, method):
    return [row for row in published_rows(suite) if row["method"] == method]


def test_all_numbers_ship_with_the_package():
    assert len(records()) == 1240
    assert published_rows("context") == []


@pytest.mark.parametrize("suite", list(TABLES))
def test_every_table_gives_rows_of_tasks_that_exist(suite):
    found = published_rows(suite)
    assert {(row["paper"], row["table"]) for row in found} == set(TABLES[suite])
    assert set(DATASETS[suite]) <= set(SUITES[suite].tasks)
    assert all(set(row["values"]) <= {*DATASETS[suite], "average"} for row in found)


def test_a_row_holds_what_the_paper_prints():
    (row,) = rows("sts", "BSL-BERT")
    assert row["values"]["average"] == 72.03
    assert set(row["values"]) == {"sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr-test", "average"}
    tsdae = [row for row in rows("useb", "TSDAE") if row["group"] == "unsupervised, BERT-base"]
    assert tsdae[0]["values"]["askubuntu"] == pytest.approx(59.4, abs=0.1)


def test_known_defects_are_footnotes():
    quoted = next(row for row in rows("sts", "BERT-flow") if row["paper"] == "BSL")
    assert any("weighted means" in note for note in quoted["footnotes"])
    assert any("embedding server" in note for note in rows("sts", "Avg. BERT")[0]["footnotes"])
    assert any("steps of 0.2" in note for note in rows("transfer", "IS-BERT-task")[0]["footnotes"])
    assert any("overlaps" in note for note in rows("sts", "SALBERT")[0]["footnotes"])


def test_pearson_does_not_take_the_place_of_spearman():
    for row in rows("sts", "SALBERT"):
        match = [
            record["value"]
            for record in records()
            if (record["paper"], record["table"], record["method"]) == ("SALBERT", "3", "SALBERT")
            and (record["dataset"], record["metric"]) == ("STS12", "spearman")
        ]
        assert [row["values"]["sts12"]] == match


def test_a_result_stands_above_the_published_rows():
    scores = {name: measure(name, mean([0.7, 0.9]), 2, signature=name) for name in ("sts12", "stsb")}
    table = Published("sts").table([Result("mine", scores, "sts", SUITES["sts"].averaged)])
    assert table.row_count == 1 + len(published_rows("sts"))
    assert "average of 2 of 7" in [str(column.header) for column in table.columns]
    assert "(1)" in table.caption
    assert table.caption.startswith("a: IS-BERT table 1, unsupervised\nb: ")
    leaked = {"sts12": replace(scores["sts12"], details={"leaked": True})}
    assert Published("sts").table([Result("stained", leaked, "sts")]).caption.startswith("† trained on STSb")
