"""A table fitted to a teacher's vectors in one go."""

import numpy as np
import pytest
import torch

import selfsent
import tiny
from naive import least_squares
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.methods import get_method
from selfsent.methods.least_squares import Bags
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.models.packing import pack
from selfsent.models.table import Table

SENTENCES = tiny.make_sentences(60, seed=4, words=(2, 9))
METHOD = get_method("least-squares")


def cosines(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


@pytest.fixture
def fitted(base_of, encoder_of):
    """A learner after its fit, in parts; the table before; and what the slow version needs."""

    def of(teachers=1, **options):
        names = ",".join(str(base_of("bert", seed=5 + number)) for number in range(teachers))
        learner = METHOD.learner(encoder_of(tiny.STATIC), METHOD.options(teacher=names, **options))
        model = learner.model
        before = model.table.weight.detach().double().numpy().copy()
        tokens = [model.tokenizer(text)["input_ids"] for text in SENTENCES]
        vectors = [encode(teacher, SENTENCES) for teacher in learner.teachers]
        parts = [pack(model, SENTENCES[:25]), pack(model, SENTENCES[25:])]
        parts[0].vectors, parts[1].vectors = torch.from_numpy(np.hstack(vectors)).split([25, 35])
        learner.prepare([[part] for part in parts])
        return model, before, tokens, vectors

    return of


@pytest.mark.parametrize(
    ("options", "size"), [({}, tiny.SIZE), ({"stiffness": 0.5, "dimensions": 8}, 8), ({"teachers": 2}, tiny.SIZE)]
)
def test_rows_are_those_of_the_normal_equations(fitted, options, size):
    model, before, tokens, vectors = fitted(**options)
    expected, begin = least_squares.fitted(tokens, vectors, before, options.get("stiffness", 0.2), size)
    found = model.table.weight.detach().numpy()
    assert found.shape == (tiny.VOCABULARY, size) == expected.shape
    assert (model.embedding_size, model.sizes) == (size, ())
    # A direction may point the other way; the rest is the same table.
    assert found @ found.T == pytest.approx(expected @ expected.T, abs=0.01 * np.abs(expected @ expected.T).max())
    unread = np.setdiff1d(np.arange(tiny.VOCABULARY), np.concatenate(tokens))
    assert len(unread) > 3
    assert found[unread] @ found[unread].T == pytest.approx(begin[unread] @ begin[unread].T, rel=1e-3, abs=1e-4)


def test_what_is_saved_has_equal_vectors_elsewhere(base_of, tmp_path):
    teacher, base = str(base_of("bert", seed=5)), str(base_of(tiny.STATIC))
    run = selfsent.train(SENTENCES, "least-squares", base, tmp_path / "run", teacher=teacher, hold_out=0, quiet=True)
    ours = encode(load_encoder(run.directory / "model"), SENTENCES)
    theirs = tiny.peer(run.directory / "model").encode(SENTENCES)
    assert theirs == pytest.approx(ours, abs=1e-6)
    assert Table.read(run.directory / "model").vectors(SENTENCES) == pytest.approx(ours, abs=1e-6)
    aim = encode(load_encoder(teacher), SENTENCES)
    aim = cosines(aim - aim.mean(0) / 2)
    before = cosines(encode(load_encoder(base), SENTENCES))
    assert np.abs(cosines(ours) - aim).mean() < 0.2 * np.abs(before - aim).mean()
    assert run.record["steps"] == 0


def test_of_few_texts_rounding_decides_on_no_token(base_of, encoder_of):
    found = []
    for order in (SENTENCES[:12], SENTENCES[11::-1]):
        learner = METHOD.learner(encoder_of(tiny.STATIC), METHOD.options(teacher=str(base_of("bert", seed=5))))
        batch = pack(learner.model, order)
        batch.vectors = torch.from_numpy(encode(learner.teachers[0], order))
        learner.prepare([[batch]])
        rows = learner.model.table.weight.detach().numpy()
        found.append(rows @ rows.T)
    assert found[0] == pytest.approx(found[1], abs=0.01 * float(np.abs(found[0]).max()))


def test_a_process_without_texts_adds_nothing():
    none = torch.zeros(0, dtype=torch.long)
    bags = Bags(none, none, 5)
    assert bags.of(torch.ones(5, 3)).shape == (0, 3)
    assert bags.back(torch.zeros(0, 3)).tolist() == torch.zeros(5, 3).tolist()
    assert bags.squares.tolist() == [0] * 5


def test_modules_behind_the_table_go_and_the_length_stays(encoder_of):
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.modules import Normalize

    long = encoder_of(tiny.STATIC)
    long.sentence_transformer.append(Dense(tiny.SIZE, 8))
    long.sentence_transformer.append(Normalize())
    long.put_rows(torch.randn(tiny.VOCABULARY, 16))
    assert [type(module).__name__ for module in long.sentence_transformer] == ["StaticEmbedding", "Normalize"]
    assert np.linalg.norm(encode(long, SENTENCES), axis=1) == pytest.approx(1, abs=1e-5)
    assert long.embedding_size == 16


def test_what_is_no_table_or_has_no_teacher_is_told(encoder_of, base_of):
    with pytest.raises(BaseEncoderError, match="fits a table of token vectors, and this base is of the kind bert"):
        METHOD.learner(encoder_of("bert"), METHOD.options(teacher=str(base_of("bert"))))
    with pytest.raises(SettingsError, match="give teacher="):
        METHOD.options()


def test_documents_are_read_with_the_prompt_for_documents(base_of, encoder_of, tmp_path):
    path = tmp_path / "teacher"
    model = tiny.peer(base_of("bert", seed=5))
    model.prompts = {"query": "ba: ", "document": "de: "}
    model.save(str(path))
    learner = METHOD.learner(encoder_of(tiny.STATIC), METHOD.options(teacher=str(path)))
    [teacher] = learner.teachers
    read = model.encode(["de: " + text for text in SENTENCES[:4]], prompt="")
    assert encode(teacher, SENTENCES[:4]) == pytest.approx(read, abs=1e-5)


def test_a_text_without_a_vector_of_the_teacher_is_left_out(base_of, encoder_of):
    teacher, found = str(base_of("bert", seed=5)), []
    for texts in (SENTENCES, SENTENCES[:50]):
        learner = METHOD.learner(encoder_of(tiny.STATIC), METHOD.options(teacher=teacher))
        batch = pack(learner.model, texts)
        batch.vectors = torch.from_numpy(encode(learner.teachers[0], SENTENCES))[: len(texts)]
        batch.vectors[50:] = 0
        learner.prepare([[batch]])
        found.append(learner.model.table.weight.detach())
    assert torch.equal(*found)


def test_values_that_mean_nothing_are_told(base_of, encoder_of):
    teacher = str(base_of("bert"))
    with pytest.raises(SettingsError, match=rf"dimensions=33 is more than the {tiny.SIZE} numbers of a vector of "):
        METHOD.learner(encoder_of(tiny.STATIC), METHOD.options(teacher=teacher, dimensions=tiny.SIZE + 1))
    with pytest.raises(SettingsError, match="stiffness is 1e\\+300; it must be at most"):
        METHOD.options(teacher=teacher, stiffness=1e300)
