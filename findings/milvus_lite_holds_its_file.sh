#!/usr/bin/env bash
# milvus-lite 3.2.2 with pymilvus 3.0.2: `MilvusClient.close()` does not let go of the database file.
#
# Expected by most: after `close()` another process may open the file, as with SQLite or DuckDB.
# The first client starts a server of its own for the file, and `close()` ends the connection alone. The server lives as
# long as the process, and holds the file: another process fails to open it until the first one has ended.
#
# Seen: a second process fails while the first one, whose client is closed, is alive; after
# `server_manager_instance.release_server(path)` in the first one, the second opens the file and counts one row.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check milvus-lite==3.2.2 pymilvus==3.0.2
cat > "$folder/second.py" <<'PY'
import sys

from pymilvus import MilvusClient

client = MilvusClient(sys.argv[1])
client.load_collection("texts")
print(client.query("texts", filter="id >= 0", output_fields=["count(*)"])[0]["count(*)"])
PY
cat > "$folder/first.py" <<'PY'
import subprocess
import sys

from milvus_lite.server_manager import server_manager_instance
from pymilvus import MilvusClient

path, second = sys.argv[1:]


def opened_elsewhere():
    done = subprocess.run([sys.executable, second, path], capture_output=True, text=True, timeout=100)
    return done.returncode == 0 and done.stdout.split()[-1] == "1"


client = MilvusClient(path)
client.create_collection("texts", dimension=2)
client.insert("texts", [{"id": 1, "vector": [1.0, 0.0]}])
client.close()
closed = opened_elsewhere()
server_manager_instance.release_server(path)
released = opened_elsewhere()
print("opened elsewhere after close():", closed)
print("opened elsewhere after release_server():", released)
if closed or not released:
    sys.exit("the behaviour has changed")
PY
"$folder/venv/bin/python" "$folder/first.py" "$folder/texts.db" "$folder/second.py" 2> "$folder/errors" || { tail -5 "$folder/errors" >&2; exit 1; }
