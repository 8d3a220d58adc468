"""The reader of event streams, over pieces of every size."""

import pytest
from turngate.sse import Frame, Parser

STREAM = (
    '\ufeff: hello\n\nretry: 250\n\nid: 1\ndata: {"text": "£180.00 – naïve 😀"}\n\n'
    "id: 2\r\nevent: note\r\ndata: first\r\ndata:second\r\ndata:\r\n\r\n"
    "id\rdata: by CR\r\rdata\n\nignored: field\nid: 4\n\nid: 5\ndata: last\n\ndata: never finished"
).encode()
FRAMES = [
    Frame('{"text": "£180.00 – naïve 😀"}', "message", "1"),
    Frame("first\nsecond\n", "note", "2"),
    Frame("by CR", "message", ""),
    Frame("", "message", ""),
    Frame("last", "message", "5"),
]


def read(*pieces: bytes) -> list[Frame]:
    parser = Parser()
    return [frame for piece in pieces for frame in parser.feed(piece)]


def test_a_stream_in_one_piece_gives_its_frames() -> None:
    assert read(STREAM) == FRAMES


def test_the_pause_before_a_reconnection_is_what_the_stream_asks_for() -> None:
    parser = Parser()
    list(parser.feed(STREAM))
    assert parser.retry_ms == 250


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_pieces_of_any_size_give_the_same_frames(size: int) -> None:
    assert read(*(STREAM[at : at + size] for at in range(0, len(STREAM), size))) == FRAMES


def test_a_cut_at_any_byte_changes_nothing() -> None:
    for cut in range(len(STREAM) + 1):
        assert read(STREAM[:cut], STREAM[cut:]) == FRAMES, cut


def test_empty_pieces_change_nothing() -> None:
    pieces = [piece for byte in STREAM for piece in (b"", bytes([byte]), b"")]
    assert read(*pieces) == FRAMES
