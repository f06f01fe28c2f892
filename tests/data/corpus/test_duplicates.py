import numpy as np
from hypothesis import given, settings, strategies as st

from selfsent.data.corpus.duplicates import KeySet, hash_keys


def random_keys(count, seed=0, distinct=2**63):
    keys = np.random.default_rng(seed).integers(1, distinct, count, dtype=np.uint64)
    return keys * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(1, 50) | st.integers(2**64 - 50, 2**64 - 1))))
def test_keys_are_found_and_numbered_as_by_a_dictionary(batches):
    keys, known = KeySet(), {}
    for batch in batches:
        array = np.array(batch, dtype=np.uint64)
        first = [key not in known and batch.index(key) == place for place, key in enumerate(batch)]
        numbers = [known.setdefault(key, len(known)) for key in batch]
        assert [each.tolist() for each in keys.number(array)] == [numbers, first]
    assert len(keys) == len(known)


def test_growth_keeps_keys_and_numbers():
    keys = random_keys(200_000, distinct=60_000)
    keyset, known = KeySet(), {}
    for batch in np.array_split(keys, 30):
        expected = [known.setdefault(key, len(known)) for key in batch.tolist()]
        assert keyset.number(batch)[0].tolist() == expected
    assert len(keyset) == len(known)
    assert not keyset.number(keys)[1].any()


def test_equal_low_bits_collide_and_still_work():
    keys = (np.arange(1500, dtype=np.uint64) << np.uint64(32)) | np.uint64(7)
    keyset = KeySet()
    assert keyset.number(keys)[1].all()
    assert not keyset.number(keys[::-1])[1].any()


def test_memory_stays_below_26_bytes_a_key_at_any_size():
    keyset = KeySet()
    for seed in range(40):
        keyset.number(random_keys(8192, seed))
        if len(keyset) > 100_000:
            assert keyset.nbytes / len(keyset) < 26


def test_no_value_hashes_to_the_mark_of_a_free_slot():
    assert hash_keys([0, 1, "text"], 3).all()
