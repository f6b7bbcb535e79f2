"""The chunk map: same results and order anywhere, dead workers cost a retry only."""

import os
import signal
from functools import partial

import pytest

from margo.errors import MargoError
from margo.runtime.parallel import map_chunks, place


def square(number):
    return number * number


def die_once(folder, number):
    """Kills its own process the first time it sees 3."""
    mark = folder / "died"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def always_die(number):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(number):
    raise MargoError(f"bad chunk {number}")


def test_results_come_in_chunk_order_in_any_place():
    expected = [square(number) for number in range(40)]
    for nj in (1, 2, 3):
        with place(nj) as where:
            assert list(map_chunks(square, range(40), where)) == expected


def test_a_dead_worker_costs_a_retry(tmp_path):
    said = []
    with place(2, say=said.append) as where:
        assert list(map_chunks(partial(die_once, tmp_path), range(20), where)) == [n * n for n in range(20)]
        assert list(map_chunks(square, range(5), where)) == [0, 1, 4, 9, 16]
    assert len(said) == 1 and "worker died" in said[0]


def test_a_chunk_that_always_kills_is_given_up():
    with place(2, say=lambda text: None) as where, pytest.raises(MargoError, match="died 3 times on chunk 0"):
        list(map_chunks(always_die, range(3), where))


def test_errors_of_a_chunk_reach_the_caller():
    with place(2) as where, pytest.raises(MargoError, match="bad chunk 0"):
        list(map_chunks(fail, range(3), where))


def test_number_of_jobs_is_checked():
    with pytest.raises(MargoError, match="--nj is 0"), place(0):
        pass


def test_a_dask_cluster_gives_the_same():
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        place(cluster=cluster.scheduler_address) as where,
    ):
        assert list(map_chunks(square, range(9), where)) == [square(n) for n in range(9)]
