import pytest

from selfsent.errors import RunError
from selfsent.training import agreement
from selfsent.training.agreement import check_agreement, first_difference


@pytest.fixture
def together(monkeypatch):
    """Pretend that processes on machines a, b, ... ask for these things."""

    def ask(*asked):
        monkeypatch.setattr(agreement, "gathered", lambda mine: list(zip("abc", asked, strict=False)))
        check_agreement(asked[0])

    return ask


def wanted(fingerprint="1f", base="bundled", rate=0.1):
    return {"base": base, "settings": {"rate": rate}, "corpus": {"source": base, "fingerprint": fingerprint}}


def test_the_same_things_by_other_names_agree(together):
    together(wanted())
    together(wanted(), wanted(base="/elsewhere/bundled"), wanted())


def test_the_first_that_differs_is_named(together):
    with pytest.raises(RunError) as raised:
        together(wanted(), wanted(), wanted(fingerprint="2e"))
    assert str(raised.value) == (
        "process 2 on c has another corpus fingerprint (2e) than process 0 on a (1f): give all machines the same files,"
        " encoders and options"
    )
    with pytest.raises(RunError, match=r"process 1 on b has another settings rate \(0\.2\)"):
        together(wanted(), wanted(rate=0.2))


def test_a_difference_in_words():
    assert first_difference(wanted(), wanted()) is None
    assert first_difference(wanted(), wanted("2e")) == "corpus fingerprint was 1f, now 2e"
    assert first_difference({"a": 1}, {"b_c": 2}, but=("a",)) == "b c was not given, now 2"
