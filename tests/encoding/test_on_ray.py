"""Ray is started for real: about a minute, more on a busy machine."""

import os
import signal
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import slow

import tiny

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = pytest.mark.full
ray.cloudpickle.register_pickle_by_value(slow)  # no machine of a cluster has the module

COUNT, MODEL = 100, "bundled"
SMALL = {"object_store_memory": 100 << 20, "include_dashboard": False}


@pytest.fixture
def place(tmp_path):
    """A folder with `in.parquet`, a hold on the work, and room for process numbers."""
    texts = tiny.make_sentences(COUNT)
    pq.write_table(pa.table({"text": texts, "id": range(COUNT)}), tmp_path / "in.parquet", row_group_size=30)
    (tmp_path / "pids").mkdir()
    (tmp_path / "hold").touch()
    return tmp_path


def wait_for(what, patience=1200):
    end = time.monotonic() + patience
    while not (found := what()):
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.1)
    return found


def pids(place, count):
    """The numbers of so many processes at work."""
    return wait_for(lambda: len(here := list((place / "pids").iterdir())) >= count and [int(p.name) for p in here])


def check(place):
    """Each row is there once, in its place, and nothing else."""
    table = pq.read_table(place / "out")
    assert table["id"].to_pylist() == table["row"].to_pylist() == [*range(COUNT)]
    assert table["text"].to_pylist() == (texts := tiny.make_sentences(COUNT))
    assert table["embedding"].to_pylist() == slow.vectors_of(texts).tolist()
    assert all(path.name.startswith(("part-", "_manifest")) for path in (place / "out").glob("[!.]*"))


@pytest.fixture
def cluster():
    """Two machines of one core each, and this process connected to them."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, connect=False, head_node_args={"num_cpus": 1, **SMALL})
    ray.init(address=made.address, log_to_driver=False)  # to the first, as long as it is alone
    second = made.add_node(num_cpus=1, **SMALL)
    yield made, second
    ray.shutdown()
    made.shutdown()


def test_a_process_is_killed_and_then_a_whole_machine(cluster, place):
    made, second = cluster
    found = []
    run = threading.Thread(target=lambda: found.extend(slow.encode(MODEL, place)), daemon=True)
    run.start()
    victim = pids(place, 2)[0]
    os.kill(victim, signal.SIGKILL)
    pids(place, 3)  # another one has begun in its place
    made.remove_node(second, allow_graceful=False)
    (place / "hold").unlink()
    run.join(1200)
    assert not run.is_alive()
    assert len(found) == len(set(found)) == COUNT // slow.ROWS
    check(place)
    assert slow.encode(MODEL, place) == []  # a call that finds nothing missing
