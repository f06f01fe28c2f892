"""A web server of the tests' own: files in memory, and the faults that others have."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Quiet(BaseHTTPRequestHandler):
    """Keeps connections, and tells nobody of requests."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def say(self, value, status=200):
        """Answer with JSON."""
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def running(handler):
    """A server of a handler, until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def served():
    """The address of a server, and a dictionary of what it serves: path -> bytes.

    A path may also hold a number, the status that it is answered with. Under `/whole/` it sends whole files alone,
    under `/cut/` it hangs up halfway. Who asks for what stands in the dictionary under `asked`.
    """
    files = {"asked": []}

    class Handler(Quiet):
        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, body):
            path = self.path.partition("?")[0]
            files["asked"].append((self.command, self.path, self.headers.get("Range")))
            found = files.get(path, 404)
            if isinstance(found, int):
                self.send_response(found)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start, end = 0, len(found)
            asked = self.headers.get("Range")
            if asked and not path.startswith("/whole/"):
                first, last = asked.removeprefix("bytes=").split("-")
                start, end = int(first), min(end, int(last) + 1)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(found)}")
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(end - start))
            if not path.startswith("/plain/"):
                self.send_header("ETag", f'"{hash(found)}"')
            if path.endswith("/"):
                self.send_header("Content-Type", "text/html")
            self.end_headers()
            if body:
                sent = found[start:end]
                self.wfile.write(sent[: len(sent) // 2] if path.startswith("/cut/") else sent)
            if path.startswith("/cut/"):
                self.close_connection = True

    with running(Handler) as server:
        yield f"http://127.0.0.1:{server.server_port}", files


def answered(text):
    """What an OpenAI-compatible server sends."""
    return json.dumps({"choices": [{"message": {"content": text}}]}).encode()


@contextmanager
def answering(reply):
    """A server: `reply(number, question, headers)` gives status, body and headers; yields address and questions."""
    asked, lock = [], threading.Lock()

    class Handler(Quiet):
        def do_POST(self):
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                asked.append((self.path, question, dict(self.headers)))
                number = len(asked)
            status, body, headers = reply(number, question, self.headers)
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(sum(map(len, body)) if isinstance(body, list) else len(body)))
                self.end_headers()
                for part in body if isinstance(body, list) else [body]:
                    self.wfile.write(part)
                    self.wfile.flush()
                    if isinstance(body, list):
                        time.sleep(0.05)
            except OSError:  # the other side has hung up
                self.close_connection = True

    with running(Handler) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked


def finished(coroutine):
    """The result of a coroutine, in a thread: a browser of other tests may have left a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
