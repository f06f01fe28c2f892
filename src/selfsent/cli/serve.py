"""`selfsent serve`."""

from __future__ import annotations

import os
import re
from dataclasses import MISSING, dataclass
from pathlib import Path

from selfsent.cli.console import notice
from selfsent.cli.options import Asking
from selfsent.display import counted
from selfsent.errors import SettingsError, first_line, install
from selfsent.serving.limits import Limits
from selfsent.settings import setting

TOKEN = "SELFSENT_TOKEN"
"""Environment variable with the token that clients must send."""
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


@dataclass(kw_only=True)
class Serve(Limits, Asking):
    """Serve an index over HTTP, with a search page at /.

    POST /search and POST /v1/embeddings (as OpenAI's clients call it), GET /health and /openapi.json. It listens on
    this machine alone, unless --host says otherwise. (Needs the extra `serve`.)

      selfsent index build bundled tickets.csv --text-column body --id-column id --output tickets.index
      selfsent serve tickets.index
    """

    index: str = setting(MISSING, "the directory of an index", positional=True)
    host: str = setting("127.0.0.1", "address to listen on; 0.0.0.0 for all of this machine")
    port: int = setting(8000, "port; 0 for any that is free", minimum=0, maximum=65535)
    token_file: str | None = setting(None, f"file with the token that clients send (default: variable {TOKEN}, if any)")
    allowed_host: tuple[str, ...] = setting(
        (), "a host name that requests without a token may carry, besides localhost: that of a proxy", repeat=True
    )

    answer_rate: float | None = setting(
        None,
        "say that nothing is here, in place of poor hits, so that this share of queries that have an answer still get"
        " one, such as 0.9 (default: all hits, unless a request gives a rate)",
        above=0,
    )

    judge: str | None = setting(
        None,
        "ask on the page whether hits answer the query, and keep it in this .csv file, for evaluate --queries"
        " (default: nobody is asked)",
        metavar="FILE",
    )

    def run(self) -> None:
        """Serve."""
        from selfsent.cli.search import calibrated
        from selfsent.data.judgements import Judgements
        from selfsent.index import Index
        from selfsent.index.calibration import check_answer_rate

        if self.answer_rate is not None:
            check_answer_rate(self.answer_rate)
        token, local = self._token(), self.host in (*_LOCAL, "::1")
        try:
            from selfsent.serving.app import application
            from selfsent.serving.engine import Engine
            from selfsent.serving.judging import Judging
            from selfsent.serving.server import listen, serve
        except ImportError:
            raise SettingsError(f"serve needs a web server: {install('serve')}") from None
        listening, index = listen(self.host, self.port), Index(Path(self.index))
        judging = None if self.judge is None else Judging(index, Judgements(Path(self.judge)))
        encoder, query_map = self.encoder_of(index)
        engine = Engine(index, encoder, self.answer_rate, query_map)
        if self.answer_rate is not None:
            calibrated(index, encoder, self.answer_rate, index.lexical_weight).cutoff(self.answer_rate)
        if not token and not local:
            what = "search, encode and judge" if judging else "search and encode"
            notice(f"whoever reaches {self.host} may {what}: set {TOKEN}, or give --token-file")
        names = () if token or not local else (*_LOCAL, *map(str.lower, self.allowed_host))
        shown, port = f"[{self.host}]" if ":" in self.host else self.host, listening.getsockname()[1]
        notice(f"{counted(len(index), 'text')} of {self.index} at http://{shown}:{port}/ (Ctrl-C stops)")
        if judging:
            notice(f"judgements go to {self.judge}, which has {judging.about['judged']:,}")
        serve(application(engine, self, token, names, judging), listening, self.timeout)
        notice("stopped")

    def _token(self) -> str | None:
        """The token, if any.

        Raises:
            SettingsError: the file cannot be read, or the token is empty or has signs that no header can carry.
        """
        try:
            token = Path(self.token_file).read_text() if self.token_file else os.environ.get(TOKEN)
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"--token-file {self.token_file} cannot be read: {first_line(error)}") from error
        if token is not None and not re.fullmatch(r"[!-~]+", token := token.strip()):
            raise SettingsError(f"the token of --token-file or {TOKEN} must be one line of letters, digits and signs")
        return token
