"""Seventy sentences as a corpus, and an encoder that tells them apart: fixtures of the tests that search."""

import pytest

import tiny
from selfsent.data.corpus import read_corpus


@pytest.fixture(scope="module")
def sentences():
    return tiny.make_sentences(70)


@pytest.fixture(scope="module")
def corpus(sentences, tmp_path_factory):
    return read_corpus(sentences, cache=tmp_path_factory.mktemp("corpora"))


@pytest.fixture
def encoder(encoder_of):
    return encoder_of("bert", initializer_range=0.5)
