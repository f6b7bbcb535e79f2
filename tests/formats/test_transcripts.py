"""Transcripts and symbol maps."""

import pytest

from margo.errors import MargoError
from margo.formats.transcripts import map_symbols, read_symbol_map, read_transcripts, read_utt2spk, write_transcripts


def test_round_trip_with_an_empty_transcript(tmp_path):
    table = {"b": ("zwei", "drei"), "a": (), "ü": ("x",)}
    write_transcripts(tmp_path / "hyp", table)
    assert (tmp_path / "hyp").read_text(encoding="utf-8") == "a\nb zwei drei\nü x\n"
    assert read_transcripts(tmp_path / "hyp") == table


def test_foreign_line_ends_are_accepted(tmp_path):
    (tmp_path / "hyp").write_bytes(b"\xef\xbb\xbfa one  two\r\n\r\nb three\n")
    assert read_transcripts(tmp_path / "hyp") == {"a": ("one", "two"), "b": ("three",)}


def test_all_faults_are_named_with_their_lines(tmp_path):
    (tmp_path / "hyp").write_bytes(b"a one\na two\nb \xff\n")
    with pytest.raises(MargoError) as error:
        read_transcripts(tmp_path / "hyp")
    assert "line 2: a is there already" in str(error.value) and "line 3: byte 0xff" in str(error.value)
    with pytest.raises(MargoError, match="no such file"):
        read_transcripts(tmp_path / "nowhere")


def test_utt2spk_takes_one_speaker(tmp_path):
    (tmp_path / "utt2spk").write_text("a s1\nb s2 s3\n")
    with pytest.raises(MargoError, match="b: found 2 speakers"):
        read_utt2spk(tmp_path / "utt2spk")


def test_symbol_map(tmp_path):
    path = tmp_path / "map.toml"
    path.write_text('[map]\nix = "ih"\nq = ""\n')
    assert map_symbols(["ix", "q", "aa", "ih"], read_symbol_map(path)) == ("ih", "aa", "ih")
    path.write_text('[map]\nix = "ih ah"\nq = 3\n')
    with pytest.raises(MargoError, match="2 faults"):
        read_symbol_map(path)
    path.write_text('ix = "ih"\n')
    with pytest.raises(MargoError, match="no map"):
        read_symbol_map(path)
