"""The one exception whose message is meant for the user."""


class MargoError(Exception):
    """Something the user can mend; the message names the item, what was found and what was expected."""


def refuse(faults: list[str], heading: str) -> None:
    """Raise one MargoError that lists all ``faults`` under ``heading``; do nothing when there are none."""
    if faults:
        raise MargoError("\n  ".join([f"{heading}: {len(faults)} fault{'s' * (len(faults) > 1)}", *faults]))
