"""HTK's parameter kinds and HCopy's configuration: its own files are made from its own settings."""

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.audio import read_audio
from margo.formats.htk import read_parameters
from margo.formats.htk_kinds import kind_of, kind_of_code, kinds_told, read_hcopy, same_kind, write_hcopy
from margo.signal.front_end import MfccOptions, describe
from margo.signal.mfcc import compute_features

MADE = ["MFCC_0_D_A_Z", "MFCC_E_D_A_Z", "MFCC_no_lifter", "MFCC_E_raw_off", "FBANK", "FBANK_power_band", "MELSPEC"]


@pytest.mark.parametrize("variant", MADE)
def test_hcopys_settings_make_hcopys_values(references, tmp_path, variant):
    folder = references / "htk" / "variants" / variant
    kind, options = read_hcopy(folder / "hcopy.conf")
    paths = sorted(folder.rglob("*.mfc"))[:3]
    assert paths
    for path in paths:
        x, _, code = read_parameters(path)
        samples, rate = read_audio(references / "htk" / "wav" / f"{path.stem}.wav")
        assert kind_of_code(code) == kind
        np.testing.assert_allclose(compute_features(samples, rate, options), x, rtol=1e-3, atol=5e-3)
    record = describe(options, rate)
    assert kind_of(record) == kind
    write_hcopy(tmp_path / "again.conf", record)
    assert read_hcopy(tmp_path / "again.conf") == (kind, options)


@pytest.mark.parametrize("variant", ["PLP_E_D_A", "LPCEPSTRA_E"])
def test_features_that_cannot_be_made_are_refused_by_their_kind(references, variant):
    with pytest.raises(MargoError, match=f"TARGETKIND is {variant}, expected MFCC, FBANK, MELSPEC"):
        read_hcopy(references / "htk" / "variants" / variant / "hcopy.conf")


def test_htks_defaults_hold_where_a_file_is_silent(tmp_path):
    (tmp_path / "c").write_text("TARGETKIND = MFCC_0_D # comment\nTARGETRATE = 125000\nHPARM: SOURCERATE = 625\n")
    kind, options = read_hcopy(tmp_path / "c")
    assert kind == "MFCC_D_0" and (options.window_ms, options.shift_ms, options.channels) == (25.6, 12.5, 20)
    assert (options.sample_rate, options.energy, options.deltas, options.cmvn) == (16000, "0", 1, "none")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("USEHAMMING = F", "USEHAMMING is False, expected True"),
        ("NUMCHANS = many", "NUMCHANS is 'many', expected a whole number"),
        ("ENORMALISE = 3", "ENORMALISE is 3, expected T or F"),
        ("CEPLIFT = 22", "line 3: CEPLIFT is not understood"),
        ("ACCWINDOW = 3", "ACCWINDOW is 3, expected DELTAWINDOW's 2"),
        ("TARGETKIND = MFCC_E_0", "energy and the zeroth cepstrum at once"),
        ("TARGETKIND = MFCC_E_N_D", "_N cannot be made here"),
        ("NUMCEPS = 30", "--cepstra is 30, expected 1 to channels"),
        ("NUMCHANS = 12.9", "NUMCHANS is '12.9', expected a whole number"),
        ("SOURCERATE = 0", "SOURCERATE is 0, expected 1 to 1e7"),
        ("SILFLOOR = nan", "SILFLOOR is 'nan', expected a number"),
        ("TARGETKIND = MFCC_Q", "_Q is no qualifier"),
        ("TARGETKIND = MFCC_E_A", "derivatives without those they are made of"),
        ("just words", "line 3: 'just words', expected KEY = value"),
    ],
)
def test_settings_that_cannot_be_kept_are_refused(tmp_path, line, said):
    (tmp_path / "c").write_text(f"TARGETKIND = MFCC_E_D_A\nTARGETRATE = 100000\n{line}\n")
    with pytest.raises(MargoError, match=said):
        read_hcopy(tmp_path / "c")


def test_kinds(tmp_path):
    assert kind_of_code(6 | 0o100 | 0o400 | 0o1000) == "MFCC_E_D_A" == same_kind("mfcc_A_D_E_K")
    assert kind_of_code(6 | 0o20000 | 0o4000 | 0o2000) == "MFCC_Z_0" == same_kind("MFCC_0_Z_C")
    with pytest.raises(MargoError, match="no kind has the number 60"):
        kind_of_code(60)
    assert kind_of(describe(MfccOptions(cmvn="speaker"), 8000)) is None  # HTK normalises by utterance alone
    assert kind_of(describe(MfccOptions(variant="kaldi"), 8000)) is None
    (tmp_path / "h").write_text("~o <VECSIZE> 39<NULLD><mfcc_e_d_a><DIAGC>")
    assert kinds_told(tmp_path / "h") == {"MFCC_E_D_A"}
