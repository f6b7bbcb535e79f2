"""Command lines and configuration files made from dataclasses of knobs."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from margo.knobs import Knobs, knob
from margo.runtime.options import parse


@dataclass(frozen=True)
class Base(Knobs):
    GROUP = "tuning"
    rate: float = knob(0.5, "a rate", unit="Hz", above=0, most=9)
    many: tuple[int, ...] = knob((1, 2), "several", least=0)


@dataclass(frozen=True)
class Options(Base):
    data: Path = knob(help="needed")
    hard: bool = knob(False, "a switch")
    kind: str = knob("a", "one of two", ("a", "b"))
    depth: int = knob(3, "of b", needs={"kind": ("b",)})
    start: str = knob("", "a start")
    states: int = knob(12, "where nothing is started from", needs={"start": False})
    weight: float = knob(1.0, "of the start", needs={"start": True})
    also: tuple[str, ...] = knob(("auto",), "of the start, too", needs={"start": True})


OTHER = '''
from dataclasses import dataclass
from margo.knobs import Knobs, knob
@dataclass(frozen=True)
class Options(Knobs):
    foo: int = knob(1, "foo", least=1)
'''


@pytest.fixture
def programs(tmp_path):
    for name in ("thing", "other", "third"):
        (tmp_path / f"{name}.py").write_text(OTHER if name == "other" else "")
    return {name: tmp_path / f"{name}.py" for name in ("thing", "other", "third")}


def read(*argv, programs=None):
    return parse("thing", "Does a thing.\n\nExample: thing --data x", Options, list(argv), programs)


def refusal(capsys, *argv, programs=None):
    """The one line that a wrong command line ends with."""
    with pytest.raises(SystemExit) as stopped:
        read(*argv, programs=programs)
    message = capsys.readouterr().err
    assert stopped.value.code == 2 and message.count("\n") == 1 and message.startswith("thing: ")
    return message


def test_defaults_and_values():
    assert read("--data", "x") == Options(data=Path("x"))
    given = read("--data", "x", "--rate", "2", "--many", "3", "4", "5", "--hard", "--kind", "b")
    assert given == Options(data=Path("x"), rate=2.0, many=(3, 4, 5), hard=True, kind="b")
    assert read("--data", "x", "--hard", "false").hard is False


WRONG = [  # on the command line, in a table, and what is said of both
    (["--rate", "fast"], "rate = 'fast'", "rate is 'fast', expected a number"),
    (["--rate", "nan"], "rate = nan", "expected a number"),
    (["--rate", "inf"], "rate = inf", "expected a number"),
    (["--rate", "0"], "rate = 0", "rate is 0.0, expected more than 0 and at most 9"),
    (["--rate", "9.5"], "rate = 9.5", "rate is 9.5, expected more than 0 and at most 9"),
    (["--many", "1", "-1"], "many = [1, -1]", "many is -1, expected at least 0"),
    (["--many", "1", "2.5"], "many = [1, 2.5]", "expected a whole number"),
    (["--kind", "c"], "kind = 'c'", "kind is c, expected one of a, b"),
    (["--hard", "maybe"], "hard = 'maybe'", "hard is 'maybe', expected true or false"),
    (["--rat", "1"], "rat = 1", "nearest: "),
    (["--depth", "4"], "depth = 4", "needs --kind b"),
    (["--weight", "2"], "weight = 2", "needs --start"),
]


@pytest.mark.parametrize("argv, table, says", WRONG)
def test_command_line_and_conf_are_refused_alike(argv, table, says, tmp_path, capsys):
    (tmp_path / "c.toml").write_text(f"[thing]\n{table}\n")
    assert says in refusal(capsys, "--data", "x", *argv)
    assert says in refusal(capsys, "--data", "x", "--conf", str(tmp_path / "c.toml"))


def test_values_made_in_python_are_checked_too():
    with pytest.raises(ValueError, match="--rate is 0, expected more than 0.*--many is -1.*--kind is c"):
        Options(data=Path("x"), rate=0, many=(1, -1), kind="c")


@pytest.mark.parametrize(
    "argv, says",
    [
        ([], "missing --data"),
        (["--data", "x", "--unknown", "1"], "no option --unknown"),
        (["--data", "x", "--rat", "1"], "no option --rat (nearest: --rate)"),
        (["--data", "x", "y"], "unexpected y"),
        (["--data", "x", "--conf", "nowhere.toml"], "nowhere.toml: no such file"),
        (["--data", "x", "--start", "y", "--states", "4"], "--states does nothing with --start"),
    ],
)
def test_wrong_command_lines_exit_2_with_one_line(argv, says, capsys):
    assert says in refusal(capsys, *argv)


def test_everything_wrong_is_said_at_once(tmp_path, capsys):
    (tmp_path / "c.toml").write_text("[thing]\nrate = 'x'\nspeed = 1\n[thingy]\na = 1\n")
    message = refusal(capsys, "--kind", "c", "--conf", str(tmp_path / "c.toml"), "--unknown", "1")
    for part in ("rate is 'x'", "no option speed", "[thingy] (nearest: thing)", "--kind is c", "missing --data",
                 "no option --unknown"):  # fmt: skip
        assert part in message


def test_conf_sets_options_and_the_command_line_wins(tmp_path, programs):
    conf, later = tmp_path / "c.toml", tmp_path / "d.toml"
    conf.write_text("[thing]\nrate = 3\nmany = [7]\n[other]\nfoo = 1\n")
    later.write_text("[thing]\nrate = 5\n")
    both = ("--data", "x", "--conf", str(conf))
    assert read(*both, programs=programs) == Options(data=Path("x"), rate=3.0, many=(7,))
    assert read(*both, "--rate", "4", programs=programs).rate == 4.0
    assert read(*both, "--conf", str(later), programs=programs).rate == 5.0


@pytest.mark.parametrize(
    "text, says",
    [
        ("[thing]\nrtae = 1", "[thing] has no option rtae (nearest: rate)"),
        ("[thing]\nrate = '3'", "expected a number"),
        ("[thing]\nkind = 3", "kind is 3, expected one of a, b"),
        ("[thing]\nkind = true", "kind is True, expected text"),
        ("[thing]\nrate = [1, 2]", "expected one value"),
        ("[thing", "Expected"),
        ("rate = 1", "rate stands outside of any table"),
        ("[thign]\nrate = 1", "no step is called [thign] (nearest: thing)"),
        ("[oter]\nfoo = 1", "no step is called [oter] (nearest: other)"),
        ("[other]\nfo = 1", "[other] has no option fo (nearest: foo)"),
        ("[other]\nfoo = 0", "[other] foo is 0, expected at least 1"),
    ],
)
def test_wrong_conf(tmp_path, capsys, text, says, programs):
    conf = tmp_path / "c.toml"
    conf.write_text(text)
    assert says in refusal(capsys, "--data", "x", "--conf", str(conf), programs=programs)


def test_a_shared_conf_may_lie_idle_where_a_later_source_rules_it_out(tmp_path, capsys):
    """Recipes give one file to several commands: states act in the first, which starts from nothing."""
    conf, later = tmp_path / "c.toml", tmp_path / "d.toml"
    conf.write_text("[thing]\nstates = 4\n")
    assert read("--data", "x", "--conf", str(conf), "--start", "y").states == 4
    later.write_text("[thing]\nstart = 'y'\n")
    assert read("--data", "x", "--conf", str(conf), "--conf", str(later)).start == "y"
    assert "does nothing" in refusal(capsys, "--data", "x", "--conf", str(later), "--conf", str(conf))
    assert read("--data", "x", "--start", "", "--states", "4").states == 4  # an empty text is none


def test_what_asks_for_nothing_needs_nothing(capsys):
    assert read("--data", "x", "--also", "none", "--weight", "0").also == ("none",)
    assert "--also needs --start" in refusal(capsys, "--data", "x", "--also", "nothing")


def test_help_says_all_there_is_to_know(capsys):
    with pytest.raises(SystemExit) as stopped:
        read("--help")
    text = " ".join(capsys.readouterr().out.split())
    assert not stopped.value.code
    for part in (
        "usage: thing --data PATH [options] Does a thing.",
        "files: --data PATH needed (required) tuning: --rate FLOAT a rate (Hz; more than 0 and at most 9; default: ",
        "several (at least 0; default: 1 2) settings:",
        "--kind a|b one of two (default: a)",
        "--depth INT of b (needs --kind b; default: 3)",
        "running: --help, -h show this and exit --conf FILE TOML file whose table [thing] sets options",
        "[true|false] a switch (default: false)",
    ):
        assert part in text
    assert text.endswith("example: thing --data x")


@dataclass(frozen=True)
class Listing:
    files: tuple[Path, ...] = knob(positional=True, help="files")
    json: bool = knob(False, help="a switch")
    ctm: bool = knob(False, help="another")


@pytest.mark.parametrize(
    "argv", ["--json a b", "a b --json", "--json true a b", "--ctm no --json a b", "--json=yes a b"]
)
def test_a_switch_does_not_swallow_the_file_behind_it(argv):
    assert parse("list", "Lists.", Listing, argv.split()) == Listing(files=(Path("a"), Path("b")), json=True)


@dataclass(frozen=True)
class Pair:
    model: Path = knob(help="model")
    a: Path = knob(positional=True, help="one")
    b: Path = knob(positional=True, help="other")


@pytest.mark.parametrize(
    "options, argv, said",
    [(Listing, "--json", "missing FILES"), (Pair, "", "missing --model, A, B"), (Pair, "x --model m", "missing B")],
)
def test_all_that_is_missing_is_said_at_once_by_its_name(capsys, options, argv, said):
    with pytest.raises(SystemExit):
        parse("list", "Lists.", options, argv.split())
    assert capsys.readouterr().err == f"list: {said} (see --help)\n"
    assert parse("list", "Lists.", Pair, ["x", "--model", "m", "y"]) == Pair(model=Path("m"), a=Path("x"), b=Path("y"))
