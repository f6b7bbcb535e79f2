"""Edit alignment against brute force, kaldialign and sclite."""

import re
import shutil
import subprocess
from functools import cache

import kaldialign
import numpy as np
import pytest

from margo.score.align import GAP_COST, NOTHING, SUBSTITUTION_COST, align


def random_strings(generator, count, symbols="abcdefghijk", longest=12, shortest=0):
    lengths = generator.integers(shortest, longest + 1, count)
    return [[symbols[i] for i in generator.integers(0, len(symbols), length)] for length in lengths]


def noisy(generator, string, symbols="abcdefghijk"):
    """A hypothesis such as a recogniser makes: mostly right."""
    out = []
    for symbol in string:
        kind = generator.random()
        out += [] if kind < 0.1 else [symbols[generator.integers(len(symbols))] if kind < 0.3 else symbol]
        out += [symbols[generator.integers(len(symbols))]] if kind > 0.9 else []
    return out or ["a"]


def cost(alignments, n):
    gaps = alignments.insertions[n] + alignments.deletions[n]
    return GAP_COST * gaps + SUBSTITUTION_COST * alignments.substitutions[n]


def enumerated(reference, hypothesis):
    """Every alignment of two short strings, as operations from the end: M match, S, I, D. Exhaustive on purpose."""

    @cache
    def ways(i, j):
        if i == j == 0:
            return ("",)
        found = []
        if i and j:
            operation = "M" if reference[i - 1] == hypothesis[j - 1] else "S"
            found += [operation + rest for rest in ways(i - 1, j - 1)]
        if j:
            found += ["I" + rest for rest in ways(i, j - 1)]
        if i:
            found += ["D" + rest for rest in ways(i - 1, j)]
        return tuple(found)

    return ways(len(reference), len(hypothesis))


def operations(alignments, n):
    def name(reference, hypothesis):
        if reference is None:
            return "I"
        return "D" if hypothesis is None else "M" if reference == hypothesis else "S"

    return "".join(name(*pair) for pair in alignments.pairs(n))


def test_least_cost_and_the_stated_tie_rule_by_enumerating_all_alignments():
    generator = np.random.default_rng(1)
    references = random_strings(generator, 150, "abc", longest=5)
    hypotheses = random_strings(generator, 150, "abc", longest=5)
    alignments = align(references, hypotheses)
    ties = 0
    for n, (reference, hypothesis) in enumerate(zip(references, hypotheses)):
        price = {"M": 0, "S": SUBSTITUTION_COST, "I": GAP_COST, "D": GAP_COST}
        ways = enumerated(tuple(reference), tuple(hypothesis))
        least = min(sum(price[o] for o in way) for way in ways)
        cheapest = [way for way in ways if sum(price[o] for o in way) == least]
        # The rule as an order: read from the end, match or substitution before insertion before deletion.
        expected = min(cheapest, key=lambda way: [{"M": 0, "S": 0, "I": 1, "D": 2}[o] for o in way])
        ties += len(cheapest) > 1
        assert operations(alignments, n)[::-1] == expected
    assert ties > 20


def test_alignment_keeps_both_strings():
    generator = np.random.default_rng(2)
    references, hypotheses = random_strings(generator, 300), random_strings(generator, 300)
    alignments = align(references, hypotheses)
    for n in range(300):
        pairs = alignments.pairs(n)
        assert [r for r, _ in pairs if r is not None] == references[n]
        assert [h for _, h in pairs if h is not None] == hypotheses[n]
    assert np.array_equal(alignments.lengths, [len(r) for r in references])


def test_cost_equals_kaldialign_and_errors_are_at_least_the_edit_distance():
    generator = np.random.default_rng(3)
    references, hypotheses = random_strings(generator, 500), random_strings(generator, 500)
    alignments = align(references, hypotheses)
    for n, (reference, hypothesis) in enumerate(zip(references, hypotheses)):
        theirs = kaldialign.edit_distance(reference, hypothesis, sclite_mode=True)
        assert cost(alignments, n) == 3 * (theirs["ins"] + theirs["del"]) + 4 * theirs["sub"]
        assert alignments.errors[n] >= kaldialign.edit_distance(reference, hypothesis)["total"]


def test_costs_decide_totals():
    """Four errors at unit costs, five at sclite's: the cheaper alignment need not be the one with fewer errors."""
    reference, hypothesis = list("bccdf"), list("dafd")
    assert kaldialign.edit_distance(reference, hypothesis)["total"] == 4
    assert list(align([reference], [hypothesis]).errors) == [5]


def test_swapping_the_sides_swaps_insertions_and_deletions_in_total_cost():
    generator = np.random.default_rng(4)
    one, other = random_strings(generator, 400), random_strings(generator, 400)
    there, back = align(one, other), align(other, one)
    assert [cost(there, n) for n in range(400)] == [cost(back, n) for n in range(400)]
    assert np.array_equal(there.insertions - there.deletions, back.deletions - back.insertions)


def test_empty_strings():
    alignments = align([[], ["a"], []], [["a", "b"], [], []])
    assert list(alignments.insertions) == [2, 0, 0]
    assert list(alignments.deletions) == [0, 1, 0]
    assert list(alignments.errors) == [2, 1, 0]
    assert alignments.hypothesis[-1] == NOTHING
    assert len(align([], [])) == 0


@pytest.mark.parametrize("kind", ["independent", "few symbols", "noisy"])
def test_equal_to_sclite_on_1000_random_pairs(kind, tmp_path):
    program = [shutil.which("sclite")] if shutil.which("sclite") else [shutil.which("sctk"), "sclite"]
    if program[0] is None:
        pytest.skip("sclite is not installed (Debian: apt-get install sctk)")
    generator = np.random.default_rng(5)
    symbols = "abcd" if kind == "few symbols" else "abcdefghijk"
    references = random_strings(generator, 1000, symbols, shortest=1)
    if kind == "noisy":
        hypotheses = [noisy(generator, string) for string in references]
    else:
        hypotheses = random_strings(generator, 1000, symbols, shortest=1)
    for name, strings in (("ref", references), ("hyp", hypotheses)):
        lines = [f"{' '.join(string)} (s_{n:04d})\n" for n, string in enumerate(strings)]
        (tmp_path / f"{name}.trn").write_text("".join(lines))
    subprocess.run(
        [*program, "-r", "ref.trn", "trn", "-h", "hyp.trn", "trn", "-i", "spu_id", "-o", "pralign", "-n", "out"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    counts = re.findall(
        r"\(s_(\d+)\)\s+Scores: \(#C #S #D #I\) (\d+) (\d+) (\d+) (\d+)", (tmp_path / "out.pra").read_text()
    )
    theirs = np.array(sorted([int(value) for value in row] for row in counts))
    alignments = align(references, hypotheses)
    ours = np.column_stack([alignments.correct, alignments.substitutions, alignments.deletions, alignments.insertions])
    assert len(theirs) == 1000
    assert alignments.errors.sum() == theirs[:, 2:].sum()
    assert np.array_equal(ours, theirs[:, 1:])
