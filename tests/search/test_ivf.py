import faiss
import numpy as np
import pytest

from selfsent.errors import DataError
from selfsent.search import ivf
from selfsent.search.ivf import IVF, training_rows
from tiny import vectors_in_groups as in_groups


def filled(vectors):
    found = IVF.trained(vectors[: training_rows(len(vectors))], len(vectors))
    found.add(vectors, np.arange(len(vectors)))
    return found


def nearest(vectors, top):
    cosine = vectors @ vectors.T
    np.fill_diagonal(cosine, -2)
    return np.argsort(-cosine, axis=1)[:, :top]


def test_lists_are_searched_until_enough_is_found():
    vectors = in_groups(200, noise=1)
    lists = filled(vectors)
    recall = lists.tune(0.9, sample_size=2000)
    assert 1 <= lists.nprobe < lists.nlist
    found = lists.search(vectors, 11)[1]
    exact = nearest(vectors, 10)
    share = np.mean([len(set(a) & set(b)) for a, b in zip(found, exact, strict=True)]) / 10
    assert share == pytest.approx(recall, abs=0.01)
    assert recall >= 0.9
    fewer, probed = lists.tune(0.3, sample_size=2000), lists.nprobe
    assert lists.tune(1) == 1
    assert fewer < recall
    assert probed < lists.nprobe <= lists.nlist


def test_copies_hide_no_other_row():
    others = in_groups(30)
    vectors = np.concatenate([np.repeat(others[:1], 3000, axis=0), others[1:]])
    lists = filled(vectors)
    lists.tune(0.3)
    assert lists.search(others[1:], 1)[1][:, 0].tolist() == list(range(3000, len(vectors)))


def test_vectors_come_back_from_lists_and_from_a_file(tmp_path):
    vectors = in_groups(30)
    lists = filled(vectors)
    lists.write(tmp_path / "v")
    for each in (lists, IVF.read(tmp_path / "v"), IVF.read(tmp_path / "v", mapped=False)):
        np.testing.assert_allclose(each.take(np.arange(len(vectors))), vectors, atol=3e-4)
        np.testing.assert_allclose(each.take(np.array([70, 3, 299])), vectors[[70, 3, 299]], atol=3e-4)
    (tmp_path / "v").write_bytes(b"nothing")
    with pytest.raises(DataError, match="damaged"):
        IVF.read(tmp_path / "v")


def test_a_selection_is_all_that_is_searched():
    vectors = in_groups(30)
    lists, mask = filled(vectors), np.zeros(300, bool)
    mask[::7] = True
    lists.nprobe = 1
    found = lists.search(vectors[:5], 20, IVF.selector(mask), float(mask.mean()))[1]
    assert set(found.ravel().tolist()) - {-1} <= set(np.flatnonzero(mask).tolist())
    everything = lists.search(vectors[:5], 20, IVF.selector(mask), 1e-9)[1]
    expected = np.flatnonzero(mask)[np.argsort(-vectors[:5] @ vectors[mask].T, axis=1)[:, :20]]
    np.testing.assert_array_equal(np.sort(everything), np.sort(expected))


def test_lists_are_filled_again():
    vectors = in_groups(30)
    lists = filled(vectors)
    lists.take(np.array([1]))
    again = lists.emptied()
    assert len(again) == 0
    again.add(vectors[:40], np.arange(40))
    np.testing.assert_allclose(again.take(np.array([3, 39])), vectors[[3, 39]], atol=3e-4)


def test_vectors_of_fewer_bits_find_and_rank_nearly_the_same(tmp_path):
    vectors = in_groups(300, size=16, noise=1.0)
    lists = IVF.trained(vectors[: training_rows(len(vectors))], len(vectors), precision="int8")
    for start in range(0, len(vectors), 1000):
        lists.add(vectors[start : start + 1000], np.arange(start, start + 1000))
    assert lists.tune(0.99) >= 0.99
    lists.write(tmp_path / "v")
    again = IVF.read(tmp_path / "v")
    again.nprobe = lists.nlist
    cosine, rows = again.search(vectors[:100], 10)
    truth = np.argsort(-(vectors[:100] @ vectors.T), axis=1)[:, :10]
    assert np.mean([len({*a} & {*b}) / 10 for a, b in zip(rows, truth, strict=True)]) > 0.9
    assert (np.diff(cosine, axis=1) <= 0).all()
    np.testing.assert_allclose(cosine, np.take_along_axis(vectors[:100] @ vectors.T, rows, 1), atol=0.02)
    np.testing.assert_allclose(again.take(np.array([7, 3])), vectors[[7, 3]], atol=0.02)
    some = np.zeros(len(vectors), bool)
    some[:20] = True
    assert again.search(vectors[:3], 30, again.selector(some), 20 / 3000)[1].max() == 19
    assert (tmp_path / "v").stat().st_size / len(vectors) < 54  # with numbers, lists and centroids
    assert len(IVF.read(tmp_path / "v", mapped=False).emptied()) == 0


@pytest.mark.parametrize(("copies", "count"), [(0, 97), (1900, 97), (0, 2000), (0, 1)])
def test_k_means_of_two_levels_makes_as_many_lists_as_are_wanted(copies, count):
    vectors = in_groups(200)
    vectors[:copies] = vectors[0]
    centroids = ivf.centroids_of(vectors, count, 0)
    assert centroids.shape == (count, 16)
    np.testing.assert_allclose(np.linalg.norm(centroids, axis=1), 1, atol=1e-5)


def test_k_means_of_two_levels_tells_groups_apart_as_well_as_that_of_one():
    vectors = in_groups(200, noise=1)
    kinds = faiss.Clustering(16, 97), faiss.IndexFlatIP(16)
    kinds[0].spherical, kinds[0].niter, kinds[0].seed, kinds[0].min_points_per_centroid = True, 20, 1, 1
    kinds[0].train(vectors, kinds[1])
    one = kinds[1].search(vectors, 1)[0].mean()
    two = (vectors @ ivf.centroids_of(vectors, 97, 0).T).max(1).mean()
    assert two > 0.96 * one


@pytest.mark.parametrize("enough", [2, 3, 5, 9, 14, 20])
def test_no_more_lists_are_searched_than_an_eighth_above_what_is_enough(enough):
    lists, wanted = filled(in_groups(200, noise=1)), []
    for nprobe in (enough - 1, enough):
        lists.nprobe = nprobe
        wanted.append(recall_of(lists))
    assert lists.tune(sum(wanted) / 2) >= sum(wanted) / 2
    assert enough <= lists.nprobe <= enough * 8 / 7


def recall_of(lists):
    """The recall of the sample of `tune` at the present number of lists."""
    sample = np.sort(np.random.default_rng(0).permutation(len(lists))[: ivf.SAMPLE])
    vectors = lists.take(np.arange(len(lists)))
    found, exact = lists.search(vectors[sample], 11)[1], nearest(vectors, 10)[sample]
    return np.mean([len({*a} & {*b}) for a, b in zip(found.tolist(), exact.tolist(), strict=True)]) / 10
