"""Peak of memory of a pass over 100 hours of features beside that over one hour, for each criterion (scale.py tells of
what; an hour of utterances is listed again and again). Passes run two at a time, the longest first."""

import os
from concurrent.futures import ThreadPoolExecutor

from scale import memory

CRITERIA = ("lme", "mmi", "mce", "ml")


def entries():
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # processes on cores of their own
        yield from pool.map(memory, CRITERIA)
