"""A method's file is imported when it is used, and not with the others."""

import json
import subprocess
import sys

import pytest

import selfsent.methods
from selfsent.methods import OWN, get_method

CODE = """
import json, sys
from selfsent.methods import METHODS, get_method
found = [get_method("tsdae").name, "simcse" in METHODS]
print(json.dumps([found, sorted(m for m in sys.modules if m.startswith("selfsent.methods."))]))
"""


def test_a_method_is_imported_alone():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    found, files = json.loads(done.stdout)
    assert found == ["tsdae", True]
    assert "selfsent.methods.denoising" in files
    assert not {"selfsent.methods.simcse", "selfsent.methods.ct", "selfsent.methods.supervised"} & {*files}


def test_names_are_those_of_the_classes():
    assert len(OWN) == len([*OWN]) == 22
    for name, method in OWN.items():
        assert method.name == name
        assert getattr(selfsent.methods, method.options.__name__) is method.options
        assert get_method(name) is method
    with pytest.raises(KeyError):
        OWN["no-such"]
    with pytest.raises(AttributeError, match="no attribute 'NoSuch'"):
        _ = selfsent.methods.NoSuch
