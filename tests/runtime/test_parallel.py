"""The chunk map: same results and order anywhere, dead workers cost a retry only."""

import os
import signal
import subprocess
import sys
import threading
import traceback
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


DELAYS = {3: 0.05, 6: 0.1, 9: 0.15, 12: 0.2, 15: 0.25}  # one of them falls into the sending, on any machine


def die_while_sending(folder, number):
    """A result far larger than any pipe's buffer, and a death while it is on its way."""
    mark = folder / f"died {number}"
    if number in DELAYS and not mark.exists():
        mark.touch()
        result = os.urandom(1000) * 160_000
        threading.Timer(DELAYS[number], os.kill, (os.getpid(), signal.SIGKILL)).start()
        return result
    return number * number


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


@pytest.mark.parametrize("jobs", [2, 3])
def test_a_worker_that_dies_while_it_sends_costs_a_retry(tmp_path, jobs):
    """In a process of its own, which can be ended if it hangs."""
    program = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[2]); import test_parallel as t\n"
        "from functools import partial\n"
        "from margo.runtime.parallel import map_chunks, place\n"
        "with place(int(sys.argv[3]), say=lambda words: None) as where:\n"
        "    got = list(map_chunks(partial(t.die_while_sending, pathlib.Path(sys.argv[1])), range(18), where))\n"
        "print(all(each == n * n or n in t.DELAYS and len(each) == 160_000_000 for n, each in enumerate(got)))\n"
    )
    command = [sys.executable, "-c", program, tmp_path, os.path.dirname(__file__), str(jobs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.stdout == "True\n", done.stderr


def test_a_chunk_that_always_kills_is_given_up():
    with (
        place(2, say=lambda text: None) as where,
        pytest.raises(MargoError, match=r"died 3 times on chunk [01] \(killed by signal 9, as .* runs out\): run"),
    ):
        list(map_chunks(always_die, range(3), where))


def test_workers_that_nobody_waits_for_are_ended_and_others_take_their_place():
    with place(2) as where:
        for number, result in enumerate(map_chunks(square, range(1000), where)):
            assert result == number * number
            if number == 5:
                break
        assert list(map_chunks(square, range(5), where)) == [0, 1, 4, 9, 16]


def unlucky(number):
    raise KeyError(square)  # with where it happened


def unsendable(number):
    return lambda: number


class Odd:
    """What can be sent, but not made again."""

    def __reduce__(self):
        return unlucky, (1,)


def odd(number):
    return Odd()


@pytest.mark.parametrize("function, says", [(unsendable, "cannot be sent"), (odd, "cannot be read")])
def test_what_cannot_be_sent_or_read_is_told(function, says):
    with place(2) as where, pytest.raises(RuntimeError, match=says):
        list(map_chunks(function, range(3), where))


def test_workers_that_are_not_waited_for_say_nothing(capfd):
    """A worker whose answer is still on its way when the parent has had enough."""
    for _ in range(20):
        with place(2) as where, pytest.raises(RuntimeError):
            list(map_chunks(odd, range(3), where))
    assert capfd.readouterr().err == ""


def test_an_error_tells_where_in_the_worker_it_was_raised():
    with place(2) as where, pytest.raises(KeyError) as error:
        list(map_chunks(unlucky, range(3), where))
    assert "in unlucky" in "".join(traceback.format_exception(error.value))


def test_errors_of_a_chunk_reach_the_caller():
    with place(2) as where, pytest.raises(MargoError, match="bad chunk 0"):
        list(map_chunks(fail, range(3), where))


def test_number_of_jobs_is_checked():
    with pytest.raises(MargoError, match="--nj is 0"), place(0):
        pass
