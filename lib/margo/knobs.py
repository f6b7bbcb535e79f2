"""Settings as data: one declaration gives a default, its help, its bounds, choices and unit, and one check of them all.

A dataclass that inherits from :class:`Knobs` and declares its fields with :func:`knob` refuses bad values however it
was made, by the command line, a configuration file or Python, and names all of them at once.
"""

from dataclasses import MISSING, dataclass, field, fields

BOUNDS = {
    "least": ("at least {}", lambda value, bound: value >= bound),
    "above": ("more than {}", lambda value, bound: value > bound),
    "most": ("at most {}", lambda value, bound: value <= bound),
    "below": ("less than {}", lambda value, bound: value < bound),
}


def knob(default=MISSING, help: str = "", choices=None, *, unit: str = "", group: str = "", **bounds):
    """A field of :class:`Knobs`; without ``default`` it must be given.

    ``choices`` are all that it may be; ``least``, ``above``, ``most``, ``below`` bound a number (each number, where it
    takes several). ``group`` is the heading it stands under in ``--help``.
    """
    unknown = bounds.keys() - BOUNDS.keys()
    if unknown:
        raise TypeError(f"knob has no bound called {', '.join(sorted(unknown))}")
    metadata = {"help": help, "choices": choices, "unit": unit, "group": group, "bounds": bounds}
    return field(default=default, kw_only=True, metadata=metadata)


@dataclass(frozen=True)
class Knobs:
    """Settings that check themselves; a class with rules that bind several knobs adds them in :meth:`faults`."""

    def __post_init__(self):
        broken = self.faults()
        if broken:
            raise ValueError("; ".join(broken))

    def faults(self) -> list[str]:
        """All that is wrong, a sentence each."""
        return [fault for each in fields(self) for fault in value_faults(each, getattr(self, each.name))]


def value_faults(declared, value) -> list[str]:
    """What is wrong with ``value`` (or some of the values of a tuple) of the ``declared`` field."""
    name, metadata = "--" + declared.name.replace("_", "-"), declared.metadata
    if value is None or value == declared.default:
        return []
    faults = []
    for item in value if isinstance(value, tuple) else (value,):
        if metadata.get("choices") and item not in metadata["choices"]:
            faults.append(f"{name} is {item}, expected one of {', '.join(map(str, metadata['choices']))}")
        wanted = [text.format(bound) for key, bound in metadata.get("bounds", {}).items() for text, _ in [BOUNDS[key]]]
        if not all(BOUNDS[key][1](item, bound) for key, bound in metadata.get("bounds", {}).items()):
            faults.append(f"{name} is {item}, expected {' and '.join(wanted)}")
    return faults
