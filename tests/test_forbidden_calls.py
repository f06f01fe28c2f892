"""Nothing in the library opens a pickle, unpacks an archive, or runs what a file or a text says."""

import ast
from pathlib import Path

import pytest

import selfsent

MODULES = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "subprocess", "tarfile", "zipfile", "xml"}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "torch.load", "shutil.unpack_archive"}
CALLS |= {f"yaml.{name}" for name in ("load", "load_all", "full_load", "unsafe_load", "Loader", "UnsafeLoader")}
CALLS |= {"pd.read_pickle", "pandas.read_pickle", "tempfile.mktemp"}
FALSE = {"shell", "allow_pickle", "trust_remote_code"}
"""Arguments that may be nothing but False."""


def forbidden(code):
    """Line and name of each forbidden import, call and argument."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names if each.name.partition(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module] if module.partition(".")[0] in MODULES else []
            names += [name for each in node.names if (name := f"{module}.{each.name}") in CALLS]
        elif isinstance(node, ast.Attribute | ast.Name):
            names = [name] if (name := ast.unparse(node)) in CALLS else []
        elif isinstance(node, ast.keyword):
            names = [node.arg] if node.arg in FALSE and ast.unparse(node.value) != "False" else []
            names += [node.arg] if node.arg == "weights_only" and ast.unparse(node.value) != "True" else []
        elif isinstance(node, ast.Dict):  # options that are passed on
            given = zip(node.keys, node.values, strict=True)
            keys = [ast.unparse(key).strip("'") for key, value in given if key and ast.unparse(value) != "False"]
            names = [key for key in keys if key in FALSE]
        else:
            continue
        found += [(node.lineno, name) for name in names]
    return found


@pytest.mark.parametrize(
    "code",
    [
        *("import pickle", "from pickle import loads", "import os\nos.system(text)", "eval(text)", "exec(text)"),
        *("from torch import load", "torch.load(path)", "torch.load(path, weights_only=False)", "yaml.load(text)"),
        *("np.load(path, allow_pickle=True)", "run(text, shell=True)", "run(text, shell=wanted)", "import tarfile"),
        *("AutoModel.from_pretrained(path, trust_remote_code=ours)", "{'trust_remote_code': True}"),
        *("import xml.etree.ElementTree", "yaml.Loader(text)", "call = eval"),
    ],
)
def test_what_is_forbidden_is_found(code):
    assert forbidden(code)


def test_what_only_looks_like_it_is_not():
    fine = (
        "model.eval()\nre.compile(x)\nself.load(x)\nnp.load(x, allow_pickle=False)\nyaml.safe_load(x)\n{'shell': False}"
    )
    assert forbidden(fine) == []


def test_the_library_has_none_of_it():
    folder = Path(selfsent.__file__).parent
    files = sorted(folder.rglob("*.py"))
    assert len(files) > 200
    found = [(str(file.relative_to(folder)), *each) for file in files for each in forbidden(file.read_text())]
    assert found == []
