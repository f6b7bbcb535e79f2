"""Command lines made from dataclasses."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from margo.runtime.options import option, parse


@dataclass(frozen=True)
class Base:
    rate: float = option(0.5, help="a rate")
    many: tuple[int, ...] = option((1, 2), help="several")


@dataclass(frozen=True)
class Options(Base):
    data: Path = option(help="needed")
    hard: bool = option(False, help="a switch")
    kind: str = option("a", help="one of two", choices=("a", "b"))


def read(*argv):
    return parse("thing", "Does a thing.", Options, list(argv))


def test_defaults_and_values():
    assert read("--data", "x") == Options(data=Path("x"))
    given = read("--data", "x", "--rate", "2", "--many", "3", "4", "5", "--hard", "--kind", "b")
    assert given == Options(data=Path("x"), rate=2.0, many=(3, 4, 5), hard=True, kind="b")
    assert read("--data", "x", "--hard", "false").hard is False


@pytest.mark.parametrize(
    "argv, says",
    [
        ([], "missing --data"),
        (["--data", "x", "--unknown", "1"], "unrecognized arguments: --unknown"),
        (["--data", "x", "--rate", "fast"], "invalid float value: 'fast'"),
        (["--data", "x", "--kind", "c"], "invalid choice"),
        (["--data", "x", "--hard", "maybe"], "expected true or false"),
        (["--data", "x", "--rat", "1"], "unrecognized arguments: --rat"),
        (["--data", "x", "--conf", "nowhere.toml"], "nowhere.toml: no such file"),
    ],
)
def test_wrong_command_lines_exit_2_with_one_line(argv, says, capsys):
    with pytest.raises(SystemExit) as stopped:
        read(*argv)
    message = capsys.readouterr().err
    assert stopped.value.code == 2 and says in message and message.count("\n") == 1


def test_conf_sets_options_and_the_command_line_wins(tmp_path):
    conf = tmp_path / "c.toml"
    conf.write_text('[thing]\nrate = 3\nmany = [7]\n[other]\nfoo = 1\n')
    assert read("--data", "x", "--conf", str(conf)) == Options(data=Path("x"), rate=3.0, many=(7,))
    assert read("--data", "x", "--conf", str(conf), "--rate", "4").rate == 4.0


@pytest.mark.parametrize(
    "text, says",
    [
        ("[thing]\nspeed = 1", "no option speed"),
        ("[thing]\nrate = 'x'", "expected a number"),
        ("[thing", "Expected"),
    ],
)
def test_wrong_conf(tmp_path, capsys, text, says):
    conf = tmp_path / "c.toml"
    conf.write_text(text)
    with pytest.raises(SystemExit) as stopped:
        read("--data", "x", "--conf", str(conf))
    assert stopped.value.code == 2 and says in capsys.readouterr().err


def test_help_shows_each_default_once(capsys):
    with pytest.raises(SystemExit):
        read("--help")
    text = capsys.readouterr().out
    assert "a rate (default: 0.5)" in text and "several (default: 1 2)" in text and "Does a thing." in text


@dataclass(frozen=True)
class Listing:
    files: tuple[Path, ...] = option(positional=True, help="files")
    json: bool = option(False, help="a switch")
    ctm: bool = option(False, help="another")


@pytest.mark.parametrize(
    "argv", ["--json a b", "a b --json", "--json true a b", "--ctm no --json a b", "--json=yes a b"]
)
def test_a_switch_does_not_swallow_the_file_behind_it(argv):
    assert parse("list", "Lists.", Listing, argv.split()) == Listing(files=(Path("a"), Path("b")), json=True)


def test_missing_files_are_called_by_their_name(capsys):
    with pytest.raises(SystemExit):
        parse("list", "Lists.", Listing, ["--json"])
    assert "required: FILES" in capsys.readouterr().err
