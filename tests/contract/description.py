"""openapi.yaml, read: its operations, and whether a value or an answer is what it says."""

import json
import re
from dataclasses import dataclass

import jsonschema
import yaml
from jsonschema.validators import extend

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
OF_HTTP = {"content-type", "content-length", "date", "connection"}  # headers that need no word


def pattern(_validator, expression, value, _schema):
    """As ECMA 262 has it: Python's '$' would match before a last line end too."""
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", expression), value):
        yield jsonschema.ValidationError(f"{value[:100]!r} does not match {expression}")


Validator = extend(jsonschema.Draft202012Validator, {"pattern": pattern})


@dataclass
class Operation:
    id: str
    method: str
    path: str
    parameters: list  # without references
    body: dict  # media type -> its object; empty: it takes none
    scope: str  # that a token must have; "": never one
    open: bool  # needs none, unless told --metrics-token
    responses: dict  # status -> response object without references, and its name if it was one; see every_answer
    tags: list

    @property
    def target(self):
        """The path of a request: with the examples of what stands in braces."""
        return re.sub(r"\{(\w+)\}", lambda m: next(
            p["example"] for p in self.parameters if p["in"] == "path" and p["name"] == m[1]), self.path)

    @staticmethod
    def needs(parameter):
        """Without it nothing is answered, unless another one is given in its place."""
        return parameter.get("required") or "x-required-unless" in parameter

    def required(self):
        """Examples of the query parameters without which there is no question."""
        return {p["name"]: p["example"] for p in self.in_query().values() if self.needs(p)}

    def in_query(self):
        return {p["name"]: p for p in self.parameters if p["in"] == "query"}

    def example_body(self):
        """The first example of a JSON body; None: it takes none."""
        media = self.body.get("application/json")
        return media and json.dumps(next(iter(media["examples"].values()))["value"]).encode()


class Description:
    def __init__(self, text):
        self.text = text
        self.document = yaml.safe_load(text)
        self.resolver = jsonschema.RefResolver("", self.document)
        self.every_answer = self.document["x-every-answer"]["headers"]
        self.operations = [self._operation(path, method, item[method], item.get("parameters", []))
                           for path, item in self.document["paths"].items()
                           for method in METHODS if method in item]

    def resolve(self, node):
        while "$ref" in node:
            node = self.resolver.resolve(node["$ref"])[1]
        return node

    def _operation(self, path, method, node, of_path):
        parameters = {(p["name"], p["in"]): p for p in map(self.resolve, of_path + node.get("parameters", []))}
        responses = {int(status): {"name": r.get("$ref", "").rpartition("/")[2], **self.resolve(r)}
                     for status, r in node["responses"].items()}
        security = node.get("security", self.document["security"])
        scopes = [scope for way in security for scope in way.get("token", [])]
        assert len(scopes) == (0 if security in ([], [{}]) else 1), f"{path}: one scope, not {scopes}"
        return Operation(node["operationId"], method.upper(), path,
                         list(parameters.values()), self.resolve(node.get("requestBody", {})).get("content", {}),
                         "".join(scopes), {} in security, responses, node["tags"])

    def faults(self, schema, value):
        """What is wrong with a value; empty: nothing."""
        validator = Validator(schema, resolver=self.resolver, format_checker=jsonschema.FormatChecker())
        return [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:500]}" for e in validator.iter_errors(value)]

    def check(self, operation, response, head=False):
        """The answer is one that the document allows: its status, headers, media type and body."""
        where = f"{operation.method} {operation.path}: {response}"
        assert response.status in operation.responses, f"undocumented status: {where}"
        allowed = operation.responses[response.status]
        self.check_headers(allowed.get("headers", {}), response.headers, where)
        if "content" not in allowed:
            assert response.headers["Content-Type"] is None and response.body == b"", where
            return response
        media = response.headers["Content-Type"].partition(";")[0]
        assert media in allowed["content"], f"undocumented type {media}: {where}"
        if head:
            assert response.body == b"", where
            return response
        if media.startswith("image/"):
            return response
        text = response.body.decode()
        value = json.loads(text) if media.endswith("json") else text
        assert not (faults := self.faults(allowed["content"][media]["schema"], value)), f"{faults} {where}"
        if media == "application/problem+json":
            assert (value["status"], value["message"]) == (response.status, value["detail"]), where
        return response

    def check_headers(self, own, headers, where):
        """The headers are those that every answer has, and those of its response: no other, and none of the required is missing."""
        documented = {name.lower(): self.resolve(header) for name, header in {**self.every_answer, **own}.items()}
        names = {name.lower() for name in headers.keys()}
        assert names <= documented.keys() | OF_HTTP, f"undocumented headers {names - documented.keys()}: {where}"
        for name, header in documented.items():
            assert name in names or not header.get("required"), f"no {name}: {where}"
            if name in names:
                value = headers[name]
                if header["schema"]["type"] == "integer":
                    value = int(value)
                assert not (faults := self.faults(header["schema"], value)), f"{name}: {faults} {where}"

    # Everything in the document, with its place

    def nodes(self, node=None, place="#"):
        node = self.document if node is None else node
        if isinstance(node, dict):
            yield place, node
        for name, child in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(child, (dict, list)):
                yield from self.nodes(child, f"{place}/{name}")

    def schemas(self):
        """Every schema object, nested ones too."""
        for place, node in self.nodes():
            parent, _, name = place.rpartition("/")
            if (name == "schema" or parent.endswith(("/schemas", "/properties", "/oneOf", "/anyOf"))
                    or (name == "items" and not parent.endswith("/properties"))) and "/value" not in place:
                yield place, node

    def examples(self):
        """(place, schema, value) of every example, default and const."""
        for place, node in self.nodes():
            if isinstance(node.get("schema"), dict):
                if "example" in node:
                    yield place + "/example", node["schema"], node["example"]
                for name, example in node.get("examples", {}).items():
                    yield f"{place}/examples/{name}", node["schema"], example["value"]
        for place, schema in self.schemas():
            for value in schema.get("examples", []):
                yield place + "/examples", schema, value
            if "default" in schema:
                yield place + "/default", schema, schema["default"]
