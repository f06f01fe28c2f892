"""`selfsent publish`."""

from __future__ import annotations

import sys
from dataclasses import MISSING, dataclass

from selfsent.cli.console import notice
from selfsent.cli.options import Command
from selfsent.display import counted
from selfsent.settings import setting


@dataclass(kw_only=True)
class Publish(Command):
    """Put the model of a run on the Hugging Face hub, with its card, and without a word of the text.

    The files of the model and its card are all that is sent. The repository is private, unless --public is given.

      selfsent publish runs/tickets me/tickets
    """

    model: str = setting(MISSING, "the directory of a run", positional=True)
    repository: str = setting(MISSING, "where to put it, as user/name", positional=True)
    public: bool = setting(False, "all may read it")
    licence: str | None = setting(None, "as the hub spells it, such as apache-2.0 (default: that of the base)")
    update: bool = setting(False, "put a new version into a repository that is there")
    texts_read: bool = setting(
        False, "send the record of what it has read too: hashes that tell whether a sentence was among them"
    )

    def run(self) -> None:
        """Publish it."""
        from huggingface_hub.utils.tqdm import disable_progress_bars

        from selfsent.report.publish import publish

        if not sys.stderr.isatty():
            disable_progress_bars()
        how = self.values("public", "licence", "update", "texts_read")
        address, files = publish(self.model, self.repository, **how)
        seen = "as before" if self.update else "for all" if self.public else "private"
        notice(f"{address} ({seen}): {counted(len(files), 'file')}, {', '.join(files)}")
