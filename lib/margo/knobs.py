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
LARGEST_WHOLE = 10**18 - 1  # so that it is one in numpy, too
LARGEST = 3.4028234663852886e38  # of float32: features and audio are held in it, and more would be infinite there
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


def brief(value) -> str:
    """``value`` as messages show it: on one line, and cut short."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def whole(text: str) -> int:
    """The whole number that ``text`` says in ASCII digits, at most ``LARGEST_WHOLE``; else a ValueError."""
    digits = text.strip(" ")
    digits = digits[1:] if digits[:1] in ("+", "-") else digits
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise ValueError(f"is {brief(text)}, expected a whole number")
    return int(text)


def real(text: str) -> float:
    """The number that ``text`` says in ASCII, which must be finite in float32 too; else a ValueError."""
    try:
        value = float(text) if text.isascii() and "_" not in text and len(text) <= 400 else math.nan
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST:
        raise ValueError(f"is {brief(text)}, expected a number" + f" up to {LARGEST:.3g}" * (abs(value) > LARGEST))
    return value


def is_number(value) -> bool:
    """Neither true nor false, and finite in float32."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def is_whole(value) -> bool:
    return type(value) is int and abs(value) <= LARGEST_WHOLE


def typed(kind: type, value):
    """``value``, as TOML and JSON have it, as a ``kind``; raises ValueError where it is something else."""
    number = is_number(value)
    text = isinstance(value, str) and "\0" not in value
    fits = {int: is_whole(value), float: number, bool: isinstance(value, bool), Path: text}
    if not fits.get(kind, number or text):  # a number may stand where a word may
        raise ValueError(f"is {brief(value)}, expected {WANTED.get(kind, kind.__name__)}")
    return kind(value)


def spoken(kind: type, text: str):
    """The ``text`` of a command line as a ``kind``; raises ValueError where it does not say one, or is not UTF-8, which
    no log could name (Python has surrogates for such bytes)."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"is {brief(text)}, expected UTF-8")
    if kind is bool and text.lower() not in TRUTHS:
        raise ValueError(f"is {brief(text)}, expected {WANTED[bool]}")
    return {bool: lambda text: TRUTHS[text.lower()], int: whole, float: real}.get(kind, kind)(text)


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
