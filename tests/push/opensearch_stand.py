"""A stand-in for OpenSearch, by the forms of its documentation: bulk, search_after, k-NN scripts, rank features."""

import json
from contextlib import contextmanager

import numpy as np

from web import Quiet, running


class Stand(Quiet):
    """Answers as the documentation says; what is not there is an error."""

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        name, _, action = self.path.strip("/").partition("/")
        held = self.server.held
        if self.command == "PUT" and not action:
            held[name] = {"mappings": json.loads(body)["mappings"], "rows": {}}
            return self.say({"acknowledged": True})
        if name not in held:
            return self.say({"error": {"type": "index_not_found_exception"}}, 404)
        rows, fields = held[name]["rows"], held[name]["mappings"]["properties"]
        match self.command, action:
            case "HEAD", "":
                return self.say({})
            case "GET", "_mapping":
                return self.say({name: {"mappings": held[name]["mappings"]}})
            case "POST", "_refresh":
                return self.say({"_shards": {"failed": 0}})
            case "POST", "_bulk":
                assert body.endswith("\n")
                return self.say(bulk(rows, fields, map(json.loads, body.splitlines())))
            case "POST", "_search":
                return self.say({"hits": {"hits": searched(rows, json.loads(body))}})
        return self.say({"error": {"type": "illegal_argument_exception"}}, 400)

    do_GET = do_PUT = do_POST = do_HEAD = handle_any


def bulk(rows, fields, lines):
    items = []
    for line in lines:
        [(action, about)] = line.items()
        if action == "delete":
            rows.pop(about["_id"])
        else:
            row = rows[about["_id"]] = next(lines)
            assert {*row} <= {*fields}
            assert len(row["embedding"]) == fields["embedding"]["dimension"]
            assert all(weight > 0 for weight in row.get("words", {}).values())
        items.append({action: {"_id": about["_id"], "status": 200}})
    return {"errors": False, "items": items}


def searched(rows, asked):
    if "sort" in asked:
        [(field, _)] = asked["sort"][0].items()
        after = asked.get("search_after", [-1])[0]
        found = sorted((row for row in rows.values() if row[field] > after), key=lambda row: row[field])
        return [{"_source": row, "sort": [row[field]]} for row in found[: asked["size"]]]
    query = asked["query"]["bool"]
    [wanted] = [each["term"] for each in query["filter"]]
    found = [row for row in rows.values() if all(row[name] == value for name, value in wanted.items())]
    found.sort(key=lambda row: -sum(score(row, part) for part in query["should"]))
    left = asked["_source"]["excludes"]
    kept = [{name: value for name, value in row.items() if name not in left} for row in found[: asked["size"]]]
    return [{"_source": row} for row in kept]


def score(row, part):
    if "rank_feature" in part:
        about = part["rank_feature"]
        assert about["linear"] == {}
        field, _, name = about["field"].partition(".")
        return about["boost"] * row.get(field, {}).get(name, 0.0)
    script = part["script_score"]["script"]
    assert (script["lang"], script["source"]) == ("knn", "knn_score")
    assert script["params"]["space_type"] == "cosinesimil"
    one, other = np.array(row[script["params"]["field"]]), np.array(script["params"]["query_value"])
    lengths = np.linalg.norm(one) * np.linalg.norm(other)
    return 1 + one @ other / lengths if lengths else 1.0


@contextmanager
def served():
    """A server on a free port of this machine, in a thread."""
    with running(Stand) as server:
        server.held = {}
        yield server
