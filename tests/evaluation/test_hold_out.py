import numpy as np
import pytest

import selfsent
import tiny
from selfsent.errors import DataError
from selfsent.evaluation.hold_out import HoldOut


@pytest.fixture
def tickets(tmp_path):
    """1,600 tickets with a number each, and one sentence in each."""
    lines = ["id,body", *(f"{number},word{number} of ticket" for number in range(1600))]
    (tmp_path / "tickets.csv").write_text("\n".join(lines))
    return selfsent.read_corpus(
        tmp_path / "tickets.csv", text_column="body", document_column="id", cache=tmp_path / "cache"
    )


def test_documents_of_one_sentence_are_no_reason_not_to_train(tickets):
    said = []
    found = HoldOut.of(tickets, dev=False, notice=said.append)
    assert len(found.train) == len(tickets)
    assert found.test is None
    assert len(said) == 1
    assert said[0].startswith("no label-free score: no document has two different sentences: split texts")


def test_but_nothing_can_be_chosen_by_them(tickets):
    with pytest.raises(DataError, match="--split-sentences"):
        HoldOut.of(tickets, dev=True, notice=print)


def test_a_run_whose_score_cannot_be_taken_ends_well(base_of, tmp_path, monkeypatch):
    """As where held-out documents hold nothing but near-duplicates, which shows when they are scored."""
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))

    def hopeless(*given):
        raise DataError("no document has two different sentences")

    monkeypatch.setattr("selfsent.report.scoring.before_and_after", hopeless)
    held = np.arange(4)
    said = []
    run = selfsent.train(
        tiny.make_sentences(40), "mlm", base_of("bert"), tmp_path / "run", steps=2, batch_size=8,
        hold_out=HoldOut(np.arange(4, 40), None, held), progress=tiny.heard(notice=said.append),
    )  # fmt: skip
    assert run.record["status"] == "finished"
    assert run.scores is None
    assert "no label-free score: no document has two different sentences" in said
    card = (run.directory / "model" / "README.md").read_text()
    assert "Not scored: the corpus has no documents of several sentences, or too few, to hold out." in card
