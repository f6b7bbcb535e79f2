"""What files of results say of themselves."""

import re


def commands(text: str) -> list[str]:
    """The lines of the first block of code: how the file was made."""
    return text.split("```")[1].strip().splitlines()


def sections(text: str) -> set[str]:
    """Headings of tables; which of several numbers of mixtures a plot is of does not matter."""
    return {re.sub(r"_\d+", "_N", line) for line in text.splitlines() if line.startswith("## ")}
