"""`make audit` fails where a package has a weakness, and nowhere else."""

import pytest

import audit

WEAK = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2.0"]}
SOUND, UNKNOWN = {"name": "a", "version": "1", "vulns": []}, {"name": "a", "skip_reason": "not found on PyPI"}


@pytest.mark.parametrize(
    ("answers", "accepted", "status", "said"),
    [
        ([SOUND, SOUND], {}, 0, "0 weaknesses in 2 packages, 0 of them unknown"),
        ([UNKNOWN], {}, 0, "nothing could be asked: not found on PyPI"),
        ([SOUND, UNKNOWN], {}, 0, "0 weaknesses in 2 packages, 1 of them unknown"),
        ([SOUND, {**SOUND, "name": "b", "vulns": [WEAK]}], {}, 1, "b 1: PYSEC-1, mended in 2.0"),
        ([SOUND, {**SOUND, "vulns": [WEAK]}], {"CVE-1": "reads no XML"}, 0, "0 weaknesses"),
    ],
)
def test_the_status_is_that_of_what_was_found(monkeypatch, capsys, answers, accepted, status, said):
    monkeypatch.setattr(audit, "asked", lambda pins: answers[: len(pins)])
    assert audit.audit(["a==1", "b==1"], accepted) == status
    assert said in capsys.readouterr().out


def test_what_pip_audit_cannot_say_is_no_answer(monkeypatch):
    monkeypatch.setattr(
        audit.subprocess, "run", lambda *_, **__: type("Done", (), {"stdout": "", "stderr": "no route"})
    )
    assert audit.asked(["a==1"]) == [{"name": "a==1", "skip_reason": "no route"}]
