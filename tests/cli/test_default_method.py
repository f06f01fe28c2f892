"""What is trained where no method is named, and what is said of it."""

import json

import pytest

import tiny


def record(run):
    return json.loads((run / "run.json").read_text())


def paragraphs(count, seed=2):
    """Texts of two or three sentences each."""
    sentences = [f"{text.capitalize()}." for text in tiny.make_sentences(5 * count, seed=seed, words=(3, 6))]
    return [" ".join(sentences[5 * n : 5 * n + 2 + n % 2]) for n in range(count)]


def test_sentences_without_documents_are_trained_by_themselves(train, tmp_path):
    done = train().ok()
    assert "training with simcse, as the corpus has no documents" in done.err
    asked = record(tmp_path / "run")["config"]
    assert (asked["pooling"], asked["options"]["crop_words"]) == ("mean", 0.5)


def test_texts_of_several_sentences_are_split_unless_told_not_to(train, tmp_path):
    tickets = tmp_path / "tickets.csv"
    tickets.write_text("id,text\n" + "".join(f'{n},"{text}"\n' for n, text in enumerate(paragraphs(60))))
    split = train(corpus=tickets, output=tmp_path / "split").ok()
    assert "150 sentences in 60 documents, by splitting 60 texts" in split.err
    assert record(tmp_path / "split")["config"]["method"] == "neighbours"
    whole = train("--no-split-sentences", corpus=tickets, output=tmp_path / "whole")
    assert whole.err.startswith("60 texts\n")
    assert record(tmp_path / "whole")["config"]["method"] == "simcse"
    # A method that reads single texts gets them as they are.
    other = train("--method", "tsdae", corpus=tickets, output=tmp_path / "other")
    assert other.err.startswith("60 texts\n")


def test_pairs_are_trained_as_pairs_and_labels_are_not_guessed_at(train, tmp_path):
    rows = [f"{a},{b},{n % 2}" for n, (a, b) in enumerate(zip(*[iter(tiny.make_sentences(80))] * 2, strict=True))]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("\n".join(["a,b,kind", *rows]))
    done = train("--text-columns", "a,b", corpus=pairs).ok()
    assert "training with mnrl, as rows of several texts" in done.err
    assert "no search score: too few groups of pairs that share no text" in done.err
    assert "--dev" not in done.err
    refused = train("--text-columns", "a,b", "--label-column", "kind", corpus=pairs, output=tmp_path / "other")
    assert "the corpus has labels: say what to learn from them" in refused.late_complaint
    assert not (tmp_path / "other").exists()


def test_sentences_alone_in_their_document_are_counted_and_left_out(train, tmp_path):
    lines = tiny.make_sentences(90, seed=4)
    few, none = tmp_path / "few.txt", tmp_path / "none.txt"
    few.write_text("\n".join(f"{a}\n{b}\n\n{c}\n" for a, b, c in zip(*[iter(lines)] * 3, strict=True)))
    none.write_text("\n\n".join(lines))
    done = train("--method", "neighbours", corpus=few, steps=("--epochs", 1))
    left_out = "30 of 90 sentences are alone in their document, and left out: 60 rows can be trained on"
    assert done.err.count(left_out) == 1
    told = record(tmp_path / "run")
    assert (told["steps"], told["config"]["corpus"]["sentences"]) == (60 // 8, 60)
    # The wanted number is drawn from those that can be trained on.
    some = ("--method", "neighbours", "--sentences", 48)
    done = train(*some, corpus=few, output=tmp_path / "some", steps=("--epochs", 1))
    told = record(tmp_path / "some")
    assert (told["steps"], told["config"]["corpus"]["sentences"]) == (48 // 8, 48)
    again = train(*some, "--resume", corpus=few, output=tmp_path / "some", steps=("--epochs", 1))
    assert "is finished already" in again.err
    refused = train("--method", "neighbours", corpus=none, output=tmp_path / "other")
    assert "no document has two sentences" in refused.late_complaint
    assert not (tmp_path / "other").exists()


def test_a_base_that_is_a_sentence_encoder_keeps_what_it_knows_unless_told_not_to(
    train, documents, model, tmp_path, monkeypatch
):
    options = ("--method", "neighbours", "--base", model, "--sentences", 64)
    kept = train(*options, corpus=documents)
    assert "so training keeps what it knows: --keep-base 1" in kept.err
    assert record(tmp_path / "run")["config"]["options"]["keep_base"] == 1
    assert "rank with words" not in kept.err
    monkeypatch.setattr("selfsent.training.defaults.LARGE", 100)
    free = train(*options, "--keep-base", 0, corpus=documents, output=tmp_path / "free")
    assert "what it knows" not in free.err
    assert "a strong sentence encoder: rank with words, as search does; training adds little here" in free.err
    assert record(tmp_path / "free")["config"]["options"]["keep_base"] == 0
    raw = train("--method", "neighbours", "--sentences", 64, corpus=documents, output=tmp_path / "raw")
    assert record(tmp_path / "raw")["config"]["options"]["keep_base"] == 0
    assert raw.status == 0
    assert "rank with words" not in raw.err


def test_a_run_of_one_document_and_of_alike_sentences_is_no_success(train, tmp_path):
    lines = tiny.make_sentences(120, seed=4)
    mixed = tmp_path / "mixed.txt"  # once those alone are left out, one document is all there is
    mixed.write_text("\n".join(lines[:50]) + "\n\n" + "\n\n".join(lines[50:]))
    done = train("--method", "neighbours", corpus=mixed)
    assert "they count as negatives of each other" in done.err
    last = tiny.rows_of(tmp_path / "run" / "metrics.jsonl")[-1]
    assert last["loss"] > 0
    unknown = tmp_path / "unknown.txt"
    unknown.write_text("\n".join(chr(0x4E00 + n) for n in range(60)))
    refused = train("--method", "simcse", corpus=unknown, output=tmp_path / "other")
    assert "all sentences of a batch are the same to this base" in refused.late_complaint


def test_a_query_that_is_read_beside_its_answer_is_told(train, tmp_path):
    table = tmp_path / "posts.csv"
    rows = [f'{n},"{text[:20]}","{text}"' for n, text in enumerate(paragraphs(60))]
    table.write_text("\n".join(["id,question,answer", *rows]))
    said = "question and answer become one document, so training reads each question beside its own answer"

    def told(name, *options):
        done = train(*options, corpus=table, output=tmp_path / name).ok()
        return done.err.count(said), done.err

    both = ("--text-column", "question", "--text-column", "answer")
    count, told_of_both = told("both", *both)
    assert count == 1
    assert "train on one column (--text-column answer), or on pairs kept apart (--text-columns question,answer)" in (
        told_of_both
    )
    # A method that reads one text by itself reads no answer beside it.
    assert told("single", *both, "--method", "simcse")[0] == 0


def test_a_column_that_goes_with_the_text_is_told(train, tmp_path):
    tickets = tmp_path / "tickets.csv"
    rows = [f'{n},Title {n},"{text}"' for n, text in enumerate(paragraphs(60))]
    tickets.write_text("\n".join(["id,Title,text", *rows]))
    told = (
        "the table has Title beside text, so that a Title could learn to find its text: give --text-columns Title,text"
    )
    assert told in train(corpus=tickets, output=tmp_path / "one").err
    pairs = train("--text-columns", "Title,text", corpus=tickets, output=tmp_path / "two")
    assert pairs.status == 0
    assert "the table has" not in pairs.err


@pytest.mark.parametrize(("options", "base"), [((), "bundled-multilingual"), (("--base", "bundled"), "bundled")])
def test_training_starts_from_the_table_of_the_language(options, base, selfsent, tmp_path):
    lines = [f"Der Drucker in Zimmer {number} antwortet seit gestern nicht mehr" for number in range(40)]
    (tmp_path / "texte.txt").write_text("\n".join(lines), encoding="utf-8")

    done = selfsent("train", tmp_path / "texte.txt", "--output", tmp_path / "run", "--steps", 1, *options)

    assert done.status == 0, done.err
    assert record(tmp_path / "run")["config"]["base"] == base
    assert ("the text is not English" in done.err) == (base != "bundled")


def test_a_base_that_has_read_what_is_kept_apart_is_told(selfsent, tmp_path):
    tickets = tmp_path / "tickets.csv"
    rows = "".join(f'{n},"{text}"\n' for n, text in enumerate(paragraphs(200)))
    tickets.write_text("id,text\n" + rows, encoding="utf-8")
    common = ("train", tickets, "--text-column", "text", "--steps", 1)
    assert selfsent(*common, "--output", tmp_path / "first", "--hold-out", 0).status == 0

    after = selfsent(*common, "--output", tmp_path / "second", "--base", tmp_path / "first")
    fresh = selfsent(*common, "--output", tmp_path / "third")

    assert "texts kept apart: the scores below are too good, and no verdict" in after.err
    assert "has read" not in fresh.err
