"""A student whose vectors are in its teacher's space."""

import numpy as np
import pytest

import selfsent
import tiny
from selfsent.data.vector_files import unit
from selfsent.errors import DataError, SettingsError
from selfsent.methods import get_method
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint, share_space
from selfsent.models.loading import load_encoder
from selfsent.models.packing import pack
from selfsent.training.plan import Plan

SENTENCES = tiny.make_sentences(120, seed=4, words=(2, 9))


def cosine(one, other):
    return float((unit(one) * unit(other)).sum(1).mean())


@pytest.mark.parametrize("architecture", ["bert", tiny.STATIC])
@pytest.mark.parametrize("objective", ["cosine", "mse", "contrast"])
def test_a_student_learns_the_space_and_says_whose_it_is(base_of, tmp_path, architecture, objective):
    teacher, base = str(base_of("bert", seed=5)), str(base_of(architecture, seed=1))
    how = {"teacher": teacher, "space": "teacher", "objective": objective, "learning_rate": 1e-3, "batch_size": 20}
    how |= {"hold_out": 0, "quiet": True, "precision": "float32"}
    run = selfsent.train(SENTENCES, "distil", base, tmp_path / "run", epochs=3, **how)
    student, aim = load_encoder(run.directory / "model"), load_encoder(teacher)
    theirs = encode(aim, SENTENCES)
    assert student.space == fingerprint(aim)
    assert cosine(encode(student, SENTENCES), theirs) > max(0.8, cosine(encode(load_encoder(base), SENTENCES), theirs))
    assert run.model.encode(SENTENCES, show_progress_bar=False) == pytest.approx(encode(student, SENTENCES), abs=1e-4)
    if architecture == tiny.STATIC:
        assert len(student.sentence_transformer) == 1  # the map is in its rows
    again = selfsent.train(SENTENCES, "whitening", run, tmp_path / "second", hold_out=0, quiet=True)
    assert load_encoder(again.directory / "model").space == ""


@pytest.mark.parametrize("architecture", ["bert", tiny.STATIC])
def test_it_starts_with_the_map_of_least_squares(encoder_of, base_of, architecture):
    chosen, model = get_method("distil"), encoder_of(architecture, "mean", 0.0)
    learner = chosen.learner(model, chosen.options(teacher=str(base_of("bert", seed=5)), space="teacher"))
    batch, parts = pack(model, SENTENCES), [pack(model, SENTENCES[:60]), pack(model, SENTENCES[60:])]
    before = model(batch).detach().double().numpy()
    vectors = learner.features(pack(learner.teachers[0], SENTENCES))
    target = unit(vectors.numpy()).astype(float)
    parts[0].vectors, parts[1].vectors = vectors.split(60)
    learner.prepare([[part] for part in parts])
    left = np.hstack([before, np.ones((len(before), 1))])
    expected = left @ np.linalg.lstsq(left, target, rcond=None)[0]
    found = model(batch).detach().numpy()
    assert ((found - target) ** 2).sum() == pytest.approx(((expected - target) ** 2).sum(), rel=0.02)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"teacher": "bundled,bundled-raw"}, "of one teacher"),
        ({"project": True}, "of one teacher"),
        ({"whiten": 0.5}, "whitening leaves the space"),
    ],
)
def test_what_leaves_the_space_is_refused(given, message):
    with pytest.raises(SettingsError, match=message):
        Plan.resolve(get_method("distil"), "bundled", **{"teacher": "bundled", "space": "teacher", **given})


def test_the_direction_is_learned_by_default():
    chosen = get_method("distil").options
    assert chosen(teacher="bundled", space="teacher").fitted(columns=1).objective == "cosine"
    assert chosen(teacher="bundled").fitted(columns=1).objective == "contrast"


def test_spaces():
    assert share_space(("a", ""), ("a", ""))
    assert share_space(("student", "a"), ("a", ""))
    assert share_space(("a", ""), ("student", "a"))
    assert share_space(("one", "a"), ("other", "a"))
    assert not share_space(("a", ""), ("b", ""))
    assert not share_space(("student", "a"), ("other", "b"))


def test_an_index_of_the_teacher_is_asked_by_the_student_alone(tmp_path, base_of, encoder_of):
    from selfsent.index import Index, write_index

    teacher, corpus = encoder_of("bert"), selfsent.read_corpus(SENTENCES, cache=tmp_path / "corpora")
    write_index(teacher, corpus, tmp_path / "index", "teacher", fingerprint(teacher), query_model="student")
    index = Index(tmp_path / "index")
    assert (index.model, index.query_model, index.size) == ("teacher", "student", tiny.SIZE)
    index.check_model("other", "student", fingerprint(teacher))
    with pytest.raises(DataError, match="another model"):
        index.check_model("other", "student", "elsewhere")
    with pytest.raises(SettingsError, match=f"have 16 numbers, those of .* {tiny.SIZE}"):
        index.search(np.ones((1, 16), np.float32))
    index.compact()
    assert Index(tmp_path / "index").query_model == "student"


def test_an_index_of_cut_vectors_takes_more(tmp_path, encoder_of):
    from selfsent.index import Index, write_index

    whole, corpus = encoder_of("bert"), selfsent.read_corpus(SENTENCES[:100], cache=tmp_path / "corpora")
    mark, short = fingerprint(whole), whole.twin()
    short.cut(16)
    write_index(short, corpus, tmp_path / "index", "whole", mark)
    index = Index(tmp_path / "index")
    index.upsert([{"text": text} for text in SENTENCES[100:]], whole)
    assert (len(index), index.size, whole.embedding_size) == (120, 16, tiny.SIZE)
    [[hit]] = index.search(encode(short, SENTENCES[110:111]), 1)
    assert index.texts([hit]) == SENTENCES[110:111]
