// A model that requests one tool call and then reports the result, with the APIs of four vendors.
//
// - Usage: node model.js TOOL ARGUMENTS LOG [PORT]. Prints its port, and serves until standard input is closed.
// - TOOL is a suffix of the tool's name, because clients add prefixes. ARGUMENTS is a JSON object.
// - LOG receives one JSON object per continued conversation: the offered tools and each returned result.
// - Requests without that tool (titles, summaries, warm-ups) get a one-word answer.
"use strict";
const fs = require("node:fs");
const http = require("node:http");

const [wanted, args, log, port] = process.argv.slice(2);

/** Returns the text inside an API's content value. */
function text(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(text).join("\n");
  if (value && typeof value === "object") {
    return text(value.text ?? value.content ?? value.output ?? value.error ?? JSON.stringify(value));
  }
  return "";
}

/** For each API: the tools that a request offers, the results that it contains, and the response format. */
const interfaces = {
  anthropic: {
    tools: (request) => (request.tools ?? []).map((tool) => tool.name),
    results: (request) =>
      request.messages
        .flatMap((message) => (Array.isArray(message.content) ? message.content : []))
        .filter((part) => part.type === "tool_result")
        .map((part) => text(part.content)),
    call: (name) => anthropic("tool_use", { type: "tool_use", id: "toolu_1", name, input: {} }, { type: "input_json_delta", partial_json: args }),
    say: (words) => anthropic("end_turn", { type: "text", text: "" }, { type: "text_delta", text: words }),
  },
  responses: {
    tools: (request) =>
      (request.tools ?? []).flatMap((tool) => (tool.type === "namespace" ? tool.tools.map((inner) => `${tool.name} ${inner.name}`) : [tool.name ?? tool.type])),
    results: (request) =>
      (Array.isArray(request.input) ? request.input : [])
        .filter((item) => item.type === "function_call_output")
        .map((item) => text(item.output)),
    call: (name) => {
      const [tool, namespace] = name.split(" ").reverse();
      const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: tool, arguments: args, status: "completed" };
      return responses(namespace ? { ...call, namespace } : call);
    },
    say: (words) =>
      responses({ type: "message", id: "msg_1", role: "assistant", status: "completed", content: [{ type: "output_text", text: words, annotations: [] }] }),
  },
  chat: {
    tools: (request) => (request.tools ?? []).map((tool) => tool.function?.name),
    results: (request) => request.messages.filter((message) => message.role === "tool").map((message) => text(message.content)),
    call: (name) => chat({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name, arguments: args } }] }, "tool_calls"),
    say: (words) => chat({ content: words }, "stop"),
  },
  gemini: {
    tools: (request) => (request.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []).map((tool) => tool.name),
    results: (request) =>
      request.contents
        .flatMap((content) => content.parts ?? [])
        .filter((part) => part.functionResponse)
        .map((part) => text(part.functionResponse.response)),
    call: (name) => gemini({ functionCall: { name, args: JSON.parse(args) } }),
    say: (words) => gemini({ text: words }),
  },
};

function anthropic(reason, block, delta) {
  const message = { id: "msg_1", type: "message", role: "assistant", model: "stand-in", content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
  const events = [
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: block },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ];
  const filled = delta.text === undefined ? { ...block, input: JSON.parse(args) } : { ...block, text: delta.text };
  return { events, whole: { ...message, content: [filled], stop_reason: reason } };
}

function responses(item) {
  const usage = { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 };
  const response = { id: "resp_1", object: "response", created_at: 0, model: "stand-in", status: "completed", output: [item], usage };
  const spoken = item.content?.[0].text;
  const events = [
    { type: "response.created", response: { ...response, status: "in_progress", output: [], usage: null } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress" } },
    ...(spoken === undefined ? [] : [{ type: "response.output_text.delta", item_id: item.id, output_index: 0, content_index: 0, delta: spoken }]),
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response },
  ];
  return { events, whole: response };
}

function chat(delta, reason) {
  const base = { id: "chat_1", created: 0, model: "stand-in" };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const chunk = (piece, finish_reason) => ({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta: piece, finish_reason }] });
  return {
    events: [chunk({ role: "assistant", ...delta }, null), { ...chunk({}, reason), usage }],
    last: "[DONE]",
    whole: { ...base, object: "chat.completion", choices: [{ index: 0, message: { role: "assistant", content: null, ...delta }, finish_reason: reason }], usage },
  };
}

function gemini(part) {
  const whole = {
    candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    modelVersion: "stand-in",
  };
  return { events: [whole], whole };
}

/** Returns the API that serves a request path. */
function spoken(path) {
  if (path.endsWith("/messages")) return interfaces.anthropic;
  if (path.endsWith("/responses")) return interfaces.responses;
  if (path.endsWith("/chat/completions")) return interfaces.chat;
  if (/:(stream)?generateContent$/i.test(path)) return interfaces.gemini;
  return undefined;
}

function answer(path, request) {
  const maker = spoken(path);
  if (!maker) return undefined;
  const tools = maker.tools(request);
  const results = maker.results(request);
  const tool = tools.find((name) => name?.endsWith(wanted));
  fs.appendFileSync(log, `${JSON.stringify({ tools, results })}\n`);
  if (tool && results.length === 0) return maker.call(tool);
  return maker.say(results.length > 0 ? `It said: ${results.join("; ")}` : "Hello");
}

function serve(request, response, body) {
  const path = new URL(request.url, "http://localhost").pathname;
  const asked = request.method === "POST" && body ? JSON.parse(body) : {};
  const said = request.method === "POST" ? answer(path, asked) : undefined;
  if (!said) {
    response.writeHead(path.endsWith("/models") ? 200 : 404, { "content-type": "application/json" });
    return response.end(JSON.stringify({ object: "list", data: [{ id: "stand-in", object: "model" }], input_tokens: 1 }));
  }
  const streams = asked.stream === true || path.endsWith(":streamGenerateContent");
  if (!streams) {
    response.writeHead(200, { "content-type": "application/json" });
    return response.end(JSON.stringify(said.whole));
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of said.events) {
    response.write(`${event.type ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
  }
  return response.end(said.last ? `data: ${said.last}\n\n` : "");
}

const server = http.createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => serve(request, response, Buffer.concat(pieces).toString()));
});
server.listen(Number(port ?? 0), "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
