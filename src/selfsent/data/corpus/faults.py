"""What went wrong with a file elsewhere, in a line, whichever library said it."""

from __future__ import annotations

from collections.abc import Iterator

_DRIVERS = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    **dict.fromkeys(("oci", "ocilake"), "ocifs"),
    **{"hf": "huggingface_hub", "smb": "smbprotocol", "oss": "ossfs", "webhdfs": "requests", "hdfs": "pyarrow"},
}
"""Protocol -> the package that reads it."""
_KEYS = {
    **dict.fromkeys(("s3", "s3a"), "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    **dict.fromkeys(("gs", "gcs"), "run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS"),
    **dict.fromkeys(("az", "abfs", "abfss"), "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"),
    "hf": "run hf auth login, or set HF_TOKEN",
}
_FORBIDDEN = ("Credential", "Forbidden", "AccessDenied", "Unauthorized", "RefreshError", "GatedRepo")
_ABSENT = ("NotFound", "NoSuch")
_CUT = ("Payload", "Reset", "IncompleteRead", "ServerDisconnected", "ContentLength", "RemoteProtocol")
_AWAY = ("Connect", "Timeout", "gaierror", "DNS", "Endpoint")


def why(error: BaseException, protocol: str) -> str:
    """What to tell of an error that a driver raised.

    Args:
        error: of whatever class; a library may have wrapped what was first.
        protocol: such as `s3`.
    """
    chain = list(_chain(error))
    if any(isinstance(each, ImportError) for each in chain):
        package = _DRIVERS.get(protocol)
        return f"reading {protocol}:// needs " + (f"a driver: pip install {package}" if package else _line(error))
    statuses = [status for each in chain if (status := _status(each))]
    kinds = [name for each in chain for name in (type(each).__name__, *_code(each))]
    if _is(kinds, ("RepositoryNotFound",)):
        return f"not found, or private: check the name, or {_KEYS['hf']}"
    if any(status in (401, 403) for status in statuses) or _is(kinds, _FORBIDDEN) or _isa(chain, PermissionError):
        keys = _KEYS.get(protocol)
        return "access denied: credentials are missing, or do not reach this" + (f" ({keys})" if keys else "")
    if _is(kinds, _CUT):
        return f"the connection was cut ({_line(chain[-1])}): run the same command again"
    if any(status in (404, 410) for status in statuses):
        return "not found"
    if statuses:
        return f"the server answered {statuses[-1]}: try again later"
    if _is(kinds, _AWAY):  # first, as fsspec says of any web address that it does not reach that it is not there
        return f"cannot be reached: {_line(chain[-1])}"
    if _is(kinds, _ABSENT):
        return "not found"
    return f"cannot be read: {_line(error)}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it came of."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _is(kinds: list[str], signs: tuple[str, ...]) -> bool:
    return any(sign in kind for kind in kinds for sign in signs)


def _isa(chain: list[BaseException], kind: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
    return any(isinstance(each, kind) for each in chain)


def _status(error: BaseException) -> int | None:
    """The status that a web server answered, wherever a library keeps it."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore's
        return _number(response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
    return _number(getattr(error, "status", None)) or _number(
        getattr(response, "status_code", None) or getattr(error, "code", None)
    )


def _code(error: BaseException) -> list[str]:
    response = getattr(error, "response", None)
    return [str(response.get("Error", {}).get("Code"))] if isinstance(response, dict) else []


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and 400 <= value < 600 else None


def _line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
