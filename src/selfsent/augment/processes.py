"""External programs that map each text to one text, through standard input and output."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, NoReturn

from selfsent.errors import MakerError

_PIPE = 1 << 16
_TOO_MANY = "gave more answers than there were texts"
_LONGEST_ANSWER = 1 << 24
"""Bytes of the longest answer accepted; texts are at most a quarter of it."""


class Program:
    """A running program, in a process group of its own that ends with it.

    Args:
        name: what errors call it.
        command: the program and its arguments.
        end: the byte that ends a text, in and out.
        patience: seconds without a byte after which it counts as hung.

    Raises:
        MakerError: it cannot be started.
    """

    def __init__(self, name: str, command: Sequence[str], end: bytes, patience: float) -> None:
        self.name, self.end, self.patience = name, end, patience
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 — lives as long as the program
        try:
            # Its own session: Ctrl-C reaches selfsent alone, which then kills the whole process group.
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise MakerError(f"{name} cannot be started: {error.strerror or error}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        os.set_blocking(self._in.fileno(), False)

    def answers(self, texts: Sequence[str], last: bool = False) -> list[str]:
        """One answer a text.

        Args:
            texts: (n,) without the byte that ends a text.
            last: nothing more will be asked: the program may hold back its answers until its input ends.

        Raises:
            MakerError: it hangs, ends too early, or gives more or fewer answers than there are texts.
        """
        # Output before the question belongs to earlier texts: all views would be shifted.
        early = [] if last else select.select([self._out], [], [], 0)[0]
        if early and os.read(self._out.fileno(), _PIPE):
            self._fail(_TOO_MANY)
        waiting = memoryview(b"".join(text.encode() + self.end for text in texts))
        got, count, begun, ended = bytearray(), 0, 0, False
        while not ended and (last or count < len(texts)):
            readable, writable, _ = select.select([self._out], [self._in] if waiting else [], [], self.patience)
            if not readable and not writable:
                self._fail(f"has not answered for {self.patience:g} seconds")
            if writable:
                waiting = self._write(waiting)
            if last and not waiting and not self._in.closed:
                self._in.close()
            if readable:
                part = os.read(self._out.fileno(), _PIPE)
                ended = not part
                count += part.count(self.end)
                begun = len(part.rpartition(self.end)[2]) + (0 if self.end in part else begun)
                got += part
                # Endless output would fill the memory.
                if count > len(texts):
                    self._fail(_TOO_MANY)
                if begun > _LONGEST_ANSWER:
                    self._fail(f"gave an answer of more than {_LONGEST_ANSWER >> 20} MB")
        answers = bytes(got).removesuffix(self.end).split(self.end) if got else []
        if len(answers) != len(texts):
            self._fail(f"gave {len(answers)} answers to {len(texts)} texts")
        try:
            return [answer.decode() for answer in answers]
        except UnicodeDecodeError:
            self._fail("gave an answer that is not UTF-8")

    def _write(self, waiting: memoryview) -> memoryview:
        try:
            return waiting[os.write(self._in.fileno(), waiting[:_PIPE]) :]
        except BlockingIOError:
            return waiting
        except BrokenPipeError:  # what it has to say, if anything, is read next
            return waiting[:0]

    def _fail(self, what: str) -> NoReturn:
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        raise MakerError(f"{self.name} {what}" + (f"; it says: {said[-1][:200]}" if said else ""))

    def close(self) -> None:
        """End the program and whatever it started."""
        for stream in (self._in, self._out, self._errors):
            stream.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
