"""Credentials never leave an address, whatever form they have."""

import pytest

from newfound.redaction import redacted


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("https://user:SECRET@host:8/v1", "https://***@host:8/v1"),
        ("https://SECRET@host", "https://***@host"),
        ("https://host/v1?api_key=SECRET&v=SECRET", "https://host/v1?api_key=***&v=***"),
        ("https://host/v1?SECRET", "https://host/v1?***"),
        ("https://host/v1#SECRET", "https://host/v1#***"),
        ("https://u:SEC@RET@host/v1", "https://***@host/v1"),
        ("https://u:SEC/RET@host/v1", "https://***@host/v1"),
        ("https://u:SEC?RET@host/v1", "https://***@host/v1"),
        ("https://u:SEC#RET@host/v1", "https://***@host/v1"),
        ("https://host/@model/v1", "https://host/@model/v1"),
        ("http://[::1]:80/v1@x", "http://[::1]:80/v1@x"),
        ("--name-with=http://h/?key=SECRET", "--name-with=http://h/?key=***"),
        ("see 'http://h/?key=SECRET'; try again", "see 'http://h/?key=***'; try again"),
        ("http://a?k=SECRET and http://SECRET@b", "http://a?k=*** and http://***@b"),
        ("C:\\texts.csv a@b.example", "C:\\texts.csv a@b.example"),
    ],
)
def test_credentials_are_removed_and_the_rest_stays(address: str, expected: str) -> None:
    assert redacted(address) == expected
    assert redacted(expected) == expected
