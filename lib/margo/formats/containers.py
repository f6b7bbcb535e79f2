"""Containers of audio: whether a file holds all the bytes of samples that its header declares.

libsndfile reads what is left of a file that was cut off and says nothing; here the chunks, blocks or pages are walked.
"""

import struct
from typing import NamedTuple

from margo.errors import MargoError

# kbit/s of MPEG audio, by (MPEG-1?, layer), from the second index on; the first is free, the last is forbidden
KILOBITS = {
    (True, 1): tuple(range(32, 449, 32)),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
KILOBITS[False, 3] = KILOBITS[False, 2]
UNKNOWN_LENGTH = (0, 0xFFFFFFFF, 0x7FFFFFFF, 0xFFFFFFFFFFFFFFFF)  # in headers of programs that wrote to a pipe
MOST_CHUNKS = 100_000


class Chunks(NamedTuple):
    """A file of chunks: a name and a size stand before the contents of each."""

    first: int  # byte at which the first begins
    order: str
    samples: tuple[bytes, ...]  # how the name of the chunk with the samples begins
    name_bytes: int = 4
    size_bytes: int = 4
    align: int = 2
    whole: bool = False  # sizes count name and size, too


RIFF, IFF = Chunks(12, "little", (b"data",)), Chunks(12, "big", (b"SSND", b"BODY"))
CHUNKS = {b"RIFF": RIFF, b"RF64": RIFF, b"RIFX": RIFF._replace(order="big"), b"FORM": IFF,
          b"caff": Chunks(8, "big", (b"data",), size_bytes=8, align=1),
          b"riff": Chunks(40, "little", (b"data",), name_bytes=16, size_bytes=8, align=8, whole=True)}  # fmt: skip


def shortfall(file, size: int) -> str:
    """What is lacking in an open file of ``size`` bytes, in words; empty where nothing is or its kind is not known."""
    file.seek(0)
    magic = file.read(4)
    if magic[:3] == b"ID3" or magic[:1] == b"\xff" and len(magic) == 4 and magic[1] & 0xE0 == 0xE0:
        return _mpeg(file, size, magic)
    walks = {b".snd": _au, b"dns.": _au, b"Crea": _voc, b"OggS": _ogg, **dict.fromkeys(CHUNKS, _chunks)}
    return walks[magic](file, size, magic) if magic in walks else ""


def plain_wave(file) -> tuple[int, int, int, int] | None:
    """``(rate, channels, bytes of a sample of all, bytes of samples)`` of PCM with the usual header; None of others.

    The header alone tells, which is ten times as fast as to have libsndfile open the file.
    """
    file.seek(0)
    head = file.read(44)
    if len(head) < 44 or head[:4] != b"RIFF" or head[8:16] != b"WAVEfmt " or head[36:40] != b"data":
        return None
    length, tag, channels, rate, _, unit, bits = struct.unpack("<IHHIIHH", head[16:36])
    data = int.from_bytes(head[40:], "little")
    known = length == 16 and tag == 1 and bits in (8, 16, 24, 32) and channels and data not in UNKNOWN_LENGTH
    return (rate, channels, unit, data) if known and unit == channels * bits // 8 else None


def _told(found: int, declared: int, unit: int = 0) -> str:
    if found >= declared:
        return ""
    what = "samples" if unit else "bytes of samples"
    return f"truncated: {found // (unit or 1)} {what} found, its header declares {declared // (unit or 1)}"


def _chunks(file, size: int, magic: bytes) -> str:
    layout, unit, long_size = CHUNKS[magic], 0, None
    at, head = layout.first, layout.name_bytes + layout.size_bytes
    for _ in range(MOST_CHUNKS):
        file.seek(at)
        raw = file.read(head)
        if len(raw) < head:
            break
        name, length = raw[:4], int.from_bytes(raw[layout.name_bytes :], layout.order)
        start = at + head
        if name.startswith(layout.samples):
            length = long_size if long_size is not None and length == 0xFFFFFFFF else length
            length -= head if layout.whole else 0
            return "" if length in UNKNOWN_LENGTH else _told(size - start, length, unit)
        if name == b"fmt " and layout.samples == RIFF.samples:
            unit = max(1, int.from_bytes(file.read(14)[12:], layout.order))
        if name == b"ds64":
            long_size = int.from_bytes(file.read(16)[8:], layout.order)
        after = start + length - (head if layout.whole else 0)
        if after < start:
            break
        at = after + -after % layout.align
    raise MargoError(f"{magic.decode()} file without a {layout.samples[0].decode()} chunk")


def _au(file, size: int, magic: bytes) -> str:
    order = "big" if magic == b".snd" else "little"
    start, length = (int.from_bytes(file.read(4), order) for _ in range(2))
    return "" if length in UNKNOWN_LENGTH[1:] else _told(size - start, length)


def _voc(file, size: int, magic: bytes) -> str:
    file.seek(20)
    at = int.from_bytes(file.read(2), "little")
    for _ in range(MOST_CHUNKS):
        file.seek(at)
        raw = file.read(4)
        if not raw or not raw[0]:
            return ""
        after = at + 4 + int.from_bytes(raw[1:], "little")
        if len(raw) < 4 or after > size:
            return _told(size - at - 4, after - at - 4) or "truncated: its last block is cut off"
        at = after
    raise MargoError(f"VOC file of more than {MOST_CHUNKS} blocks")


def _ogg(file, size: int, magic: bytes) -> str:
    at, ended = 0, {}  # stream -> has its last page been seen?
    while at < size:
        file.seek(at)
        head = file.read(27)
        table = file.read(head[26]) if len(head) == 27 else b""
        if head[:4] != magic:
            return "" if at else "truncated: no page"  # what follows the last page is no audio
        at += 27 + len(table) + sum(table)
        if len(head) < 27 or len(table) < head[26] or at > size:
            return "truncated: its last page is cut off"
        ended[head[14:18]] = bool(head[5] & 4)
    return "" if all(ended.values()) else "truncated: its last page is not there"


def _mpeg(file, size: int, magic: bytes) -> str:
    """Frames of MP3 follow each other to the end, or to a tag; their number may stand in the first of them."""
    at, found, declared = 0, 0, 0
    if magic[:3] == b"ID3":
        file.seek(5)
        flags, *sizes = file.read(5)
        at = 10 + sum(byte << shift for byte, shift in zip(sizes, (21, 14, 7, 0))) + 10 * bool(flags & 0x10)
    while True:
        file.seek(at)
        head = file.read(4 if found else 200)
        length = _mpeg_length(head)
        if not length:  # a tag, or nothing more
            return _told_frames(found, declared)
        if at + length > size:
            return _told_frames(found, declared) or "truncated: its last frame is cut off"
        if not found:
            mark = max(head.find(b"Xing"), head.find(b"Info"))
            if mark > 0 and len(head) >= mark + 12 and head[mark + 7] & 1:
                declared = int.from_bytes(head[mark + 8 : mark + 12], "big") + 1  # and the one that says so
        at, found = at + length, found + 1


def _told_frames(found: int, declared: int) -> str:
    return f"truncated: {found} frames found, its header declares {declared}" if found < declared else ""


def _mpeg_length(head: bytes) -> int:
    """Bytes of the frame that begins with ``head``; 0 where none does, or it does not say."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return 0
    version, layer, index = head[1] >> 3 & 3, 4 - (head[1] >> 1 & 3), head[2] >> 4
    rates = {3: 1, 2: 2, 0: 4}  # of MPEG-1, 2 and 2.5: what 44100, 48000, 32000 Hz are divided by
    if version not in rates or layer == 4 or not 0 < index < 15 or head[2] >> 2 & 3 == 3:
        return 0
    rate = (44100, 48000, 32000)[head[2] >> 2 & 3] // rates[version]
    bits, padding = 1000 * KILOBITS[version == 3, layer][index - 1], head[2] >> 1 & 1
    if layer == 1:
        return (12 * bits // rate + padding) * 4
    return (72 if layer == 3 and version != 3 else 144) * bits // rate + padding
