"""The environment that tests run in: what may change what they see is left out, also for the processes they start."""

import os
import time

OWN = ("SELFSENT_DATA", "SELFSENT_CONTRACT_RESULTS")
"""What tests are told by the environment."""
FOREIGN = (
    *("HF_", "HUGGINGFACE_", "HUGGING_FACE_", "TRANSFORMERS_", "SELFSENT_"),
    *("OPENAI_", "AWS_", "ORT_", "TTY_", "LC_"),
)
NAMES = (
    *("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM", "PYTHONWARNINGS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR"),
    *("LANG", "LANGUAGE", "XDG_CACHE_HOME", "PYTHONIOENCODING", "PYTHONOPTIMIZE", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"),
)


def leave():
    """Forget the settings of this machine; before libraries read them."""
    for name in list(os.environ):
        if name.upper() in NAMES or (name.startswith(FOREIGN) and name not in OWN):
            del os.environ[name]
    os.environ.update(TZ="UTC", LC_ALL="C.UTF-8", PYTHONUTF8="1")
    if hasattr(time, "tzset"):
        time.tzset()
