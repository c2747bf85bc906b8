"""The server that the conformance suite requires, with a tool, resource or prompt for each scenario."""

import json
import sys
import time

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
RED = {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def text(words):
    return {"type": "text", "text": words}


def resource(uri, kind, words):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


def member(*names):
    return [{"const": value, "title": title} for value, title in names]


def form(**properties):
    return {"type": "object", "properties": properties, "required": []}


DEFAULTS = form(
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)
ENUMS = form(
    untitledSingle={"type": "string", "enum": ["option1", "option2", "option3"]},
    titledSingle={"type": "string", "oneOf": member(("value1", "First"), ("value2", "Second"))},
    legacyEnum={"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
    untitledMulti={"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}},
    titledMulti={"type": "array", "items": {"anyOf": member(("value1", "First"), ("value2", "Second"))}},
)
USER = form(username={"type": "string"}, email={"type": "string"})
PLAIN = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [RED],
    "test_audio_content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}],
    "test_embedded_resource": [resource("test://embedded-resource", "text/plain", "embedded")],
    "test_multiple_content_types": [text("several:"), RED, resource("test://mixed", "application/json", "{}")],
}
ASKING = {
    "test_elicitation": USER,
    "test_elicitation_sep1034_defaults": DEFAULTS,
    "test_elicitation_sep1330_enums": ENUMS,
}
OTHERS = ["test_tool_with_logging", "test_tool_with_progress", "test_error_handling", "test_sampling"]
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
PROMPTS = {
    "test_simple_prompt": ([], lambda a: text("This is a simple prompt for testing.")),
    "test_prompt_with_arguments": (["arg1", "arg2"], lambda a: text(f"{a.get('arg1')} {a.get('arg2')}")),
    "test_prompt_with_embedded_resource": (["resourceUri"], lambda a: resource(a.get("resourceUri", "test://r"), "text/plain", "r")),
    "test_prompt_with_image": ([], lambda a: RED),
}
last = 0


def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def ask(method, params):
    global last
    last += 1
    say(id=f"ask-{last}", method=method, params=params)
    for line in sys.stdin:
        m = json.loads(line)
        if m.get("id") == f"ask-{last}":
            return m.get("result", m.get("error"))


def tools():
    argument = {"test_elicitation": "message", "test_sampling": "prompt"}
    for name in [*PLAIN, *ASKING, *OTHERS]:
        names = [argument[name]] if name in argument else []
        schema = {"type": "object", "properties": {n: {"type": "string"} for n in names}}
        yield {"name": name, "description": name, "inputSchema": schema}
    yield {"name": "json_schema_2020_12_tool", "description": "keeps its schema", "inputSchema": SCHEMA}


def call(name, arguments, token):
    if name in PLAIN:
        return PLAIN[name]
    if name in ASKING:
        message = arguments.get("message", "tell me")
        return [text("User response: " + json.dumps(ask("elicitation/create", {"message": message, "requestedSchema": ASKING[name]})))]
    if name == "test_sampling":
        messages = [{"role": "user", "content": text(arguments["prompt"])}]
        return [text("LLM response: " + json.dumps(ask("sampling/createMessage", {"messages": messages, "maxTokens": 100})))]
    if name == "test_error_handling":
        raise ValueError("This tool intentionally returns an error for testing")
    for step in range(3):
        if name == "test_tool_with_logging":
            say(method="notifications/message", params={"level": "info", "data": f"step {step}"})
        elif token is not None:
            say(method="notifications/progress", params={"progressToken": token, "progress": step * 50, "total": 100})
        time.sleep(0.05)
    return [text("done")]


def read(uri):
    if uri == "test://static-binary":
        return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": PIXEL}]}
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"This is {uri} for testing."}]}


def answer(method, params):
    if method == "initialize":
        able = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}, "logging": {}, "completions": {}}
        return {"protocolVersion": params["protocolVersion"], "capabilities": able, "serverInfo": {"name": "conformance", "version": "1"}}
    if method == "tools/list":
        return {"tools": list(tools())}
    if method == "tools/call":
        try:
            token = params.get("_meta", {}).get("progressToken")
            return {"content": call(params["name"], params.get("arguments", {}), token)}
        except ValueError as problem:
            return {"isError": True, "content": [text(str(problem))]}
    if method == "resources/list":
        kinds = [("test://static-text", "text/plain"), ("test://static-binary", "image/png")]
        return {"resources": [{"uri": uri, "name": uri, "description": uri, "mimeType": kind} for uri, kind in kinds]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "template"}]}
    if method == "resources/read":
        return read(params["uri"])
    if method == "prompts/list":
        named = lambda names: [{"name": name, "description": name, "required": True} for name in names]
        return {"prompts": [{"name": n, "description": n, "arguments": named(names)} for n, (names, _) in PROMPTS.items()]}
    if method == "prompts/get":
        _, content = PROMPTS[params["name"]]
        return {"messages": [{"role": "user", "content": content(params.get("arguments", {}))}]}
    if method == "completion/complete":
        return {"completion": {"values": [], "total": 0, "hasMore": False}}
    return {}


for line in sys.stdin:
    m = json.loads(line)
    if "id" in m and "method" in m:
        say(id=m["id"], result=answer(m["method"], m.get("params", {})))
