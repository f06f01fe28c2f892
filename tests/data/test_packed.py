import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import tiny
from naive.objectives import attention
from selfsent.data.packed import Packed, concatenate
from selfsent.data.targets import IGNORED
from selfsent.fast.attention import packed_attention

LENGTHS = [3, 9, 1, 8, 8, 5, 2, 1, 7]


def split(values, lengths):
    return np.split(np.asarray(values), np.cumsum(lengths)[:-1])


def make(lengths=LENGTHS, seed=0, targets=False):
    """A batch, and its sentences as lists of token ids."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 1000, sum(lengths))
    goals = rng.integers(-1, 1000, sum(lengths)) if targets else None
    return Packed(ids, np.array(lengths), goals), split(ids, lengths)


def states_of(packed, width=4):
    """States whose every row depends on nothing but sentence and position, to tell the rows apart."""
    rows = packed.sentence[:, None] * 100.0 + packed.positions[:, None] * 1.0
    return rows + torch.arange(width) / 10


def test_every_token_knows_its_sentence_and_place():
    packed, sentences = make()
    assert (len(packed), packed.tokens) == (len(LENGTHS), sum(LENGTHS))
    for number, sentence in enumerate(sentences):
        mine = packed.sentence == number
        assert packed.ids[mine].tolist() == sentence.tolist()
        assert packed.positions[mine].tolist() == list(range(len(sentence)))
        assert packed.first[number] == mine.nonzero()[0, 0]
        assert packed.last[number] == mine.nonzero()[-1, 0]
        assert packed.lengths[number] == len(sentence)


def test_targets_travel_with_their_tokens():
    packed, _ = make(targets=True)
    for number, goals in enumerate(split(packed.given_targets, LENGTHS)):
        assert packed.targets[packed.sentence == number].tolist() == goals.tolist()
    assert make()[0].targets.tolist() == [IGNORED] * sum(LENGTHS)


@pytest.mark.parametrize("joined", [False, True])
def test_groups_follow_each_other_and_hold_similar_lengths(joined):
    packed, _ = make([int(n) for n in np.random.default_rng(0).integers(1, 120, 200)])
    at, sorted_lengths = 0, sorted(packed.given_lengths.tolist(), reverse=True)
    for group in packed.attention_groups if joined else packed.groups:
        mine, sorted_lengths = sorted_lengths[: group.sentences], sorted_lengths[group.sentences :]
        assert (group.start, group.tokens, group.length) == (at, sum(mine), max(mine))
        wasted = sum(max(mine) ** 2 - length**2 for length in mine)
        assert min(mine) >= 0.75 * max(mine) - 1 or (joined and wasted <= 4096)
        at += group.tokens
    assert at == packed.tokens
    assert not sorted_lengths
    assert sum(group.sentences * group.length for group in packed.attention_groups) <= 1.2 * packed.tokens


def test_mean_and_maximum_stay_within_the_sentence():
    packed, sentences = make()
    states = states_of(packed)
    for number in range(len(sentences)):
        mine = states[packed.sentence == number]
        torch.testing.assert_close(packed.mean(states)[number], mine.mean(0))
        torch.testing.assert_close(packed.max(states)[number], mine.max(0).values)
    assert make([1000])[0].mean(torch.ones(1000, 1, dtype=torch.bfloat16)).item() == 1.0  # in float32


def test_without_last_asks_for_the_following_token():
    packed, sentences = make([3, 5, 2])
    read = packed.without_last()
    for number, sentence in enumerate(sentences):
        mine = read.sentence == number
        assert read.ids[mine].tolist() == sentence[:-1].tolist()
        assert read.targets[mine].tolist() == sentence[1:].tolist()


def test_borders_are_those_of_the_packed_row():
    packed, sentences = make([2, 5, 1])
    assert packed.cu_seqlens.tolist() == [0, 5, 7, 8]
    assert packed.cu_seqlens.dtype == torch.int32
    assert packed.longest == 5
    assert packed.ids[:5].tolist() == sentences[1].tolist()


def test_concatenation_keeps_order_and_targets():
    (a, first), (b, second) = make([2, 5], targets=True), make([4, 1, 3], seed=1, targets=True)
    both = concatenate([a, b])
    for number, sentence in enumerate([*first, *second]):
        assert both.ids[both.sentence == number].tolist() == sentence.tolist()
    assert sorted(both.targets.tolist()) == sorted([*a.targets.tolist(), *b.targets.tolist()])
    assert concatenate([a]) is a
    assert set(concatenate([a, make([2])[0]]).targets.tolist()) == {IGNORED}


def inputs(packed, heads=2, size=4):
    generator = torch.Generator().manual_seed(0)
    shape = (packed.tokens, heads, size)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(3)]


@pytest.mark.parametrize("window", [None, 2, 20])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [LENGTHS, [6, 6]], ids=["mixed", "equal"])
def test_attention_equals_one_token_at_a_time(lengths, causal, window):
    packed, _ = make(lengths)
    in_order = sorted(lengths, reverse=True)
    states = inputs(packed)
    fast = packed_attention(*states, packed, causal=causal, window=window)
    slow = attention(*states, in_order, causal=causal, window=window)
    torch.testing.assert_close(fast, slow)
    weights = torch.randn(fast.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    tiny.assert_equal_gradients((fast * weights).sum(), (slow * weights).sum(), states)


def test_scaling_and_dropout_are_passed_on():
    packed, _ = make()
    query, key, value = inputs(packed)
    scaled = packed_attention(query, key, value, packed, scaling=1.0)
    torch.testing.assert_close(scaled, packed_attention(query * 2, key, value, packed))
    torch.manual_seed(0)
    first = packed_attention(query, key, value, packed, dropout=0.5)
    assert not torch.allclose(first, packed_attention(query, key, value, packed, dropout=0.5))


def test_torch_keeps_the_code_of_few_shapes_unless_the_user_says_how_many():
    names = ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    environment = {name: value for name, value in os.environ.items() if name not in names} | {names[0]: "7"}
    script = f"import os, selfsent.data.packed; print(*(os.environ[name] for name in {names}))"
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["7", "256"]
