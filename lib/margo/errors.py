"""The one exception whose message is meant for the user."""

LONGEST = 300  # letters shown of a fault


class MargoError(Exception):
    """Something the user can mend; the message names the item, what was found and what was expected."""


def refuse(faults: list[str], heading: str, most: int | None = None) -> None:
    """Raise one MargoError that lists ``faults`` (``most`` of them) under ``heading``, one alone in a single line; do
    nothing without any."""
    if faults:
        more = len(faults) - most if most else 0
        shown = [fault if len(fault) <= LONGEST else f"{fault[:LONGEST]}..." for fault in faults[:most]]
        shown += [f"... and {more} more"] * (more > 0)
        raise MargoError(f"{heading}: {shown[0]}" if len(faults) == 1 else
                         "\n  ".join([f"{heading}: {len(faults)} faults", *shown]))  # fmt: skip
