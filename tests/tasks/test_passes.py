"""What alignments tell of durations."""

from dataclasses import replace

import numpy as np

from margo.model.hmm import Unit, flat_start, left_to_right, whole_words
from margo.tasks.passes import Aligned, durations


def test_durations_by_word():
    hmms = flat_start(whole_words("ab"), 4, np.zeros(1), np.ones(1))
    done = [
        Aligned("u", 0.0, np.zeros(20, np.int32), (("a", 0, 4, 1.0), ("b", 4, 14, 1.0), ("a", 14, 20, 1.0)), ()),
        Aligned("v", 0.0, np.zeros(9, np.int32), (("a", 0, 9, 1.0),), ()),
    ]
    assert durations(hmms, {}, done) == [
        {"word": "a", "tokens": 3, "median_ms": 60.0, "at_minimum": 0.3333},
        {"word": "b", "tokens": 1, "median_ms": 100.0, "at_minimum": 0.0},
    ]


def test_the_shortest_path_through_a_word():
    hmms = flat_start(whole_words("ab"), 5, np.zeros(1), np.ones(1))
    assert hmms.least_frames("a") == 5
    skipping = [Unit(unit.name, unit.states, left_to_right(5, skip=0.1)) for unit in hmms.units]
    skipping = replace(hmms, units=tuple(skipping), lexicon={"ab": ("a", "b"), "b": ("b",)})
    assert skipping.least_frames("b") == 3 and skipping.least_frames("ab") == 6  # 1 3 5 and out
