import socket

from standin.serving import listener


def test_a_connection_sends_each_piece_at_once():
    # given a listener of the stand-in's
    with listener("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        # when somebody connects
        accepted, _ = listening.accept()
        # then what is written to them does not wait for an acknowledgement
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
