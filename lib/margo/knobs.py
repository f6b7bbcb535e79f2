"""Settings as data: one declaration gives a default, its help, its bounds, choices and unit, and one check of them all.

A dataclass that inherits from :class:`Knobs` and declares its fields with :func:`knob` refuses bad values however it
was made, by the command line, a configuration file or Python, and names all of them at once.
"""

import math
import types
import typing
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path

BOUNDS = {
    "least": ("at least {}", lambda value, bound: value >= bound),
    "above": ("more than {}", lambda value, bound: value > bound),
    "most": ("at most {}", lambda value, bound: value <= bound),
    "below": ("less than {}", lambda value, bound: value < bound),
}
WANTED = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path"}
TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def knob(
    default=MISSING, help: str = "", choices=None, *, unit: str = "", group: str = "", positional: bool = False,
    needs: dict | None = None, **bounds,
):  # fmt: skip
    """A field of :class:`Knobs`; without ``default`` it must be given.

    ``choices`` are all that it may be; ``least``, ``above``, ``most``, ``below`` bound a number (each number, where it
    takes several). ``group`` is the heading it stands under in ``--help``; a ``positional`` one has no name on the
    command line. ``needs`` says when it acts, by other knobs: ``{"labels": True, "init": False, "kind": ("a", "b")}``:
    where labels are given, init is not, and kind is one of the two. A command line that sets it elsewhere is refused.
    """
    unknown = bounds.keys() - BOUNDS.keys()
    if unknown:
        raise TypeError(f"knob has no bound called {', '.join(sorted(unknown))}")
    metadata = {"help": help, "choices": choices, "unit": unit, "group": group, "positional": positional}
    return field(default=default, kw_only=True, metadata={**metadata, "needs": needs or {}, "bounds": bounds})


@dataclass(frozen=True)
class Knobs:
    """Settings that check themselves; a class with rules that bind several knobs adds them in :meth:`faults`."""

    GROUP: typing.ClassVar[str] = ""
    """Heading in ``--help`` of the class's knobs that name none of their own"""

    def __post_init__(self):
        broken = self.faults()
        if broken:
            raise ValueError("; ".join(broken))

    def faults(self) -> list[str]:
        """All that is wrong, a sentence each."""
        return [fault for each in fields(self) for fault in value_faults(each, getattr(self, each.name))]


def flag(name: str) -> str:
    """The option of the command line that sets the knob ``name``."""
    return "--" + name.replace("_", "-")


def kind_of(hint) -> tuple[type, bool]:
    """``(kind of one value, many?)`` of a type hint: ``int``, ``Path | None``, ``tuple[str, ...]``."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    if typing.get_origin(hint) is tuple:
        return typing.get_args(hint)[0], True
    return hint, False


def typed(kind: type, value):
    """``value``, as TOML and JSON have it, as a ``kind``; raises ValueError where it is something else."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    number = whole or isinstance(value, float) and math.isfinite(value)
    fits = {int: whole, float: number, bool: isinstance(value, bool)}
    if not fits.get(kind, number or isinstance(value, str)):  # a number may stand where a word may
        raise ValueError(f"is {value!r}, expected {WANTED.get(kind, kind.__name__)}")
    return kind(value)


def spoken(kind: type, text: str):
    """The ``text`` of a command line as a ``kind``; raises ValueError where it does not say one."""
    try:
        value = TRUTHS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        value = None
    if value is None or isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"is {text!r}, expected {WANTED.get(kind, kind.__name__)}")
    return value


def limits(declared) -> str:
    """The bounds of a knob in words, such as ``at least 0 and less than 1``."""
    return " and ".join(BOUNDS[key][0].format(bound) for key, bound in declared.metadata.get("bounds", {}).items())


def value_faults(declared, value, name: str = "") -> list[str]:
    """What is wrong with ``value`` (or some of the values of a tuple) of the ``declared`` field."""
    name, metadata = name or flag(declared.name), declared.metadata
    if value is None or value == declared.default:
        return []
    faults = []
    for item in value if isinstance(value, tuple) else (value,):
        if metadata.get("choices") and item not in metadata["choices"]:
            faults.append(f"{name} is {item}, expected one of {', '.join(map(str, metadata['choices']))}")
        if not all(BOUNDS[key][1](item, bound) for key, bound in metadata.get("bounds", {}).items()):
            faults.append(f"{name} is {item}, expected {limits(declared)}")
    return faults
