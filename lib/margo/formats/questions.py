"""Questions about neighbours, for decision trees: Kaldi's questions.txt, the units of one set a line."""

from margo.errors import refuse
from margo.formats.reading import MOST, read_lines


def read_questions(path, units) -> list[frozenset[str]]:
    """Sets of ``units``, in the file's order, each once; a name that is no unit is a fault."""
    known, sets, faults = {*units}, {}, []
    for number, line in read_lines(path):
        names = line.split()
        faults += [f"line {number}: {name} is not a unit of the model" for name in names if name not in known]
        sets[frozenset(names)] = None
    faults += ["no questions"] * (not sets)
    refuse(faults, str(path), MOST)
    return [*sets]
