"""The texts of errors on their way to a client."""

import pytest

pytestmark = pytest.mark.usefixtures("way")


def test_bytes_that_are_not_utf_8_come_as_text(processes, addresses):
    address, = addresses(1)
    processes.server({"a": [address]}, "a")
    client = processes.python("""
        import sys
        import tensorflow as tf
        number = tf.string_to_number(tf.placeholder(tf.string, name="s"))
        with tf.Session("grpc://" + sys.argv[1]) as session:
            for text in [b"caf\\xe9", "caf\\u00e9"]:
                try:
                    session.run(number, {"s:0": text})
                except tf.errors.InvalidArgumentError as e:
                    print("refused", ascii(e.message))
        """, address)
    assert client.wait() == 0, client.output
    first, second = client.lines("refused")
    assert r"caf\\xe9" in first  # How ascii() shows one backslash.
    assert r"caf\xe9" in second and r"caf\\xe9" not in second
