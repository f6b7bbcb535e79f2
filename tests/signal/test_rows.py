"""Products by rows: what they are, and that no row depends on the others."""

import numpy as np
import pytest

from margo.signal.rows import LANES, row_products, used_rows


def product(x, matrix):
    out = np.empty((len(x), matrix.shape[1]), x.dtype)
    row_products(x, matrix, used_rows(matrix), out)
    return out


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_row_is_the_same_to_the_bit_wherever_it_stands(kind):
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1000, (3 * LANES + 5, 26)).astype(kind)
    matrix = rng.normal(0, 1, (26, 13)).astype(kind)
    whole = product(x, matrix)
    assert np.allclose(whole, x.astype(np.float64) @ matrix, rtol=0, atol=1e5 * np.finfo(kind).eps)
    for count in range(1, 2 * LANES + 2):
        for first in (0, 1, LANES - 1, len(x) - count):
            assert np.array_equal(product(x[first : first + count], matrix), whole[first : first + count])


def test_zeros_at_the_ends_of_columns_are_passed_over():
    """Nothing that stands there matters: not even what is infinite."""
    matrix = np.array([[0, 0, 2], [1, 0, 3], [0, 0, 0], [4, 5, 0.0]])
    x = np.array([[np.inf, 2, 3, 4], [5, 6, 7, np.inf]])
    out = product(x, matrix)
    assert out[0, :2].tolist() == [18, 20] and out[1, 2] == 28
