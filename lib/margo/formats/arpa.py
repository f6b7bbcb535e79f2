"""Language models as ARPA files, 1- to 3-grams."""

import math

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_text
from margo.formats.reading import MOST, read_lines
from margo.knobs import brief, real, whole
from margo.model.ngram import END, START, Ngram

TEN = math.log(10)
LONGEST = 3
HIGHEST = 1e-3  # a log probability may be above 0 by rounding


def read_arpa(path) -> Ngram:
    """The n-gram of an ARPA file; what stands before ``\\data\\`` is not looked at. Every line that is not what its
    section says, counts that do not hold, and histories whose own n-gram is not there are told at once."""
    declared, found, log_backoffs, faults, section = {}, {}, {}, [], None
    for number, line in read_lines(path):
        text = line.strip()
        if section is None or text == "\\end\\":
            section = "data" if text == "\\data\\" else "end" if section is not None else None
        elif text.startswith("\\") and text.endswith("-grams:"):
            section = text[1:-7]
            if section not in declared:
                faults.append(f"line {number}: {brief(text)}, not among the counts of \\data\\")
        elif section == "data":
            order, equals, count = text.removeprefix("ngram").partition("=")
            try:
                declared[str(whole(order.strip()))] = whole(count.strip())
            except ValueError:
                faults.append(f"line {number}: {brief(text)}, expected: ngram ORDER=COUNT")
        elif section != "end":
            faults += _entry(number, text, section, found, log_backoffs)
    if section != "end":
        raise MargoError(f"{path}: not an ARPA file: no {chr(92)}data{chr(92)} ... {chr(92)}end{chr(92)}")
    orders = sorted(map(int, declared))
    if orders != list(range(1, len(orders) + 1)) or not 1 <= len(orders) <= LONGEST:
        faults.append(f"orders {orders}, expected 1 to at most {LONGEST}")
    for order in orders:
        there = sum(len(key) == order for key in found)
        if there != declared[str(order)]:
            faults.append(f"{there} {order}-grams, its head says {declared[str(order)]}")
    faults += [f"no 1-gram of {END}"] * ((END,) not in found)
    histories = dict.fromkeys(key[:-1] for key in found if len(key) > 1)
    faults += [f"{' '.join(history)}: no backoff, which a {len(history)}-gram needs that longer ones begin with"
               for history in histories if history not in log_backoffs]  # fmt: skip
    refuse(faults, str(path), MOST)
    return Ngram(len(orders), found, log_backoffs)


def _entry(number: int, text: str, section: str, found: dict, log_backoffs: dict) -> list[str]:
    """Take a line of a section into the tables; returns what is wrong with it."""
    fields = text.split()
    order = int(section) if section.isdigit() else 0
    if len(fields) not in (order + 1, order + 2):
        return [f"line {number}: {brief(text)}, expected a log probability, {section} words, and perhaps a backoff"]
    key = tuple(fields[1 : order + 1])
    try:
        value, backoff = real(fields[0]), real(fields[order + 1]) if len(fields) > order + 1 else None
    except ValueError as error:
        return [f"line {number}: {brief(text)}: {error}"]
    if value > HIGHEST:
        return [f"line {number}: {brief(text)}: log probability {value:g}, expected at most 0"]
    if key in found:
        return [f"line {number}: {' '.join(key)} is there already"]
    found[key] = min(value, 0.0) * TEN
    if backoff is not None:
        log_backoffs[key] = backoff * TEN
    return []


def write_arpa(path, ngram: Ngram) -> None:
    """Write an ARPA file that :func:`read_arpa` reads the same, to nine digits."""
    table = dict(ngram.log_probs)
    table.setdefault((START,), -99 * TEN)
    lines = ["\\data\\"]
    orders = range(1, ngram.order + 1)
    lines += [f"ngram {order}={sum(len(key) == order for key in table)}" for order in orders]
    for order in orders:
        lines += ["", f"\\{order}-grams:"]
        for key in sorted(key for key in table if len(key) == order):
            backoff = ngram.log_backoffs.get(key)
            tail = "" if backoff is None else f"\t{backoff / TEN:.9g}"
            lines.append(f"{table[key] / TEN:.9g}\t{' '.join(key)}{tail}")
    write_text(path, "\n".join([*lines, "", "\\end\\", ""]))
