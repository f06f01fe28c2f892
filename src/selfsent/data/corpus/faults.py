"""One-line messages for the exceptions of fsspec's drivers."""

from __future__ import annotations

import re
from typing import Any

from selfsent.errors import first_line

_KEYS = {
    **dict.fromkeys(("s3", "s3a"), "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    **dict.fromkeys(("gs", "gcs"), "run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS"),
    **dict.fromkeys(("az", "abfs", "abfss"), "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"),
    "hf": "run hf auth login, or set HF_TOKEN",
}
_FORBIDDEN = "Credential|Forbidden|AccessDenied|Unauthorized|RefreshError|GatedRepo"
_CUT = "Payload|Reset|IncompleteRead|ServerDisconnected|ContentLength|RemoteProtocol"
_AWAY = "Connect|Timeout|gaierror|DNS|Endpoint"


def why(error: BaseException, protocol: str) -> str:
    """The message for an exception that a driver raised.

    Args:
        error: of whatever class; a library may have wrapped what was first.
        protocol: such as `s3`.
    """
    chain = [error]
    while cause := chain[-1].__cause__ or (None if chain[-1].__suppress_context__ else chain[-1].__context__):
        chain.append(cause)
    if any(isinstance(each, ImportError) for each in chain):
        return f"reading {protocol}:// needs a driver: {first_line(error)}"  # fsspec says which
    codes = [code for each in chain for code in _codes(each)]
    kinds = " ".join([*(type(each).__name__ for each in chain), *map(str, codes)])
    statuses = [code for code in codes if isinstance(code, int) and 400 <= code < 600]
    if "RepositoryNotFound" in kinds:
        return f"not found, or private: check the name, or {_KEYS['hf']}"
    refused = {401, 403} & {*statuses} or any(isinstance(each, PermissionError) for each in chain)
    if refused or re.search(_FORBIDDEN, kinds):
        keys = _KEYS.get(protocol)
        return "access denied: credentials are missing, or do not reach this" + (f" ({keys})" if keys else "")
    if re.search(_CUT, kinds):
        return f"the connection was cut ({first_line(chain[-1])}): run the same command again"
    if {404, 410} & {*statuses}:
        return "not found"
    if statuses:
        return f"the server answered {statuses[-1]}: try again later"
    if re.search(_AWAY, kinds):  # first, as fsspec says of any web address that it does not reach that it is not there
        return f"cannot be reached: {first_line(chain[-1])}"
    if re.search("NotFound|NoSuch", kinds):
        return "not found"
    return f"cannot be read: {first_line(error)}"


def _codes(error: BaseException) -> list[Any]:
    """Status and error codes of an exception, wherever the library keeps them."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore's
        told = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return [told, response.get("Error", {}).get("Code")]
    return [getattr(error, "status", None), getattr(response, "status_code", None), getattr(error, "code", None)]
