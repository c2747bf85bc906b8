//! Tests of servers that require input, within and beyond the limits.

use super::*;
use crate::server::{ClientAnswer, ConnectionOptions, NoResponse, ServerRequest};
use crate::wire::{Id, Input, MemoryBudget, Output};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use tokio::sync::oneshot;

/// Conversation with a server that the test controls.
struct TestConversation {
    connection: ServerConnection,
    received: BufReader<PipeReader>,
    stdout: PipeWriter,
    client: BufReader<PipeReader>,
    /// Kept alive with the conversation.
    _kept: Vec<Box<dyn std::any::Any>>,
}

impl TestConversation {
    fn new() -> Self {
        let (received, stdin) = std::io::pipe().unwrap();
        let (from_server, stdout) = std::io::pipe().unwrap();
        let (to_client, client_pipe) = std::io::pipe().unwrap();
        let roots: Arc<dyn RootsSource> = Arc::new(crate::server::RootList::default());
        let supported = HashSet::from(["elicitation/create".to_owned()]);
        let (supported, client_supports) = watch::channel(supported);
        let (sampling, _) = mpsc::unbounded_channel();
        let client = Outbox::new(Output::new(client_pipe.into()).unwrap());
        let options = ConnectionOptions {
            stdout: Input::new(from_server.into()).unwrap(),
            client: client.clone(),
            memory: MemoryBudget::new(64, 16).allowance(1),
            roots: roots.clone(),
            client_supports: client_supports.clone(),
            sampling: sampling.clone(),
            log_invalid: Arc::new(drop),
        };
        let (connection, reader_task) = ServerConnection::start(Output::new(stdin.into()).unwrap(), options);
        let raw = |value: Value| to_raw_value(&value).unwrap();
        let meta =
            MetaFields::from_initialize(&raw(json!({ "capabilities": {}, "clientInfo": { "name": "c" } })))
                .unwrap();
        let client = ClientHandle { outbox: client, roots, client_supports, sampling };
        connection.set_stateless(StatelessServer::new(meta, client, &raw(json!({ "capabilities": {} }))));
        let kept: Vec<Box<dyn std::any::Any>> = vec![Box::new(supported), Box::new(reader_task)];
        let (received, client) = (BufReader::new(received), BufReader::new(to_client));
        Self { connection, received, stdout, client, _kept: kept }
    }

    fn ask(&self, method: &str) -> oneshot::Receiver<ServerAnswer> {
        let (send, answer) = oneshot::channel();
        let params = to_raw_value(&json!({ "name": "t", "requestState": "forged" })).unwrap();
        self.connection.forward_request(
            ServerRequest::unchecked(method, Some(params)),
            None,
            move |answer, _| drop(send.send(answer)),
        );
        answer
    }

    fn receives(&mut self) -> Value {
        read_line(&mut self.received)
    }

    fn answers(&mut self, to: &Value, result: &str) {
        writeln!(self.stdout, "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", to["id"]).unwrap();
    }
}

fn read_line(from: &mut BufReader<PipeReader>) -> Value {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_excessive_or_malformed_input_request_fails_the_call() {
    let mut conversation = TestConversation::new();
    let many: serde_json::Map<String, Value> =
        (0..33).map(|n| (n.to_string(), json!({ "method": "roots/list" }))).collect();
    let required = |fields: Value| {
        let mut result = json!({ "resultType": "input_required" });
        result.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        result.to_string()
    };
    for (method, result, because) in [
        ("tools/list", required(json!({ "requestState": "s" })), "`tools/list` does not accept input"),
        ("tools/call", required(json!({ "inputRequests": many })), "more than 32 requests"),
        ("tools/call", required(json!({ "requestState": "s".repeat(1 << 20) })), "its state is longer than"),
        ("tools/call", required(json!({ "inputRequests": { "a": "x" } })), "`a` is not a valid request"),
        (
            "tools/call",
            required(json!({ "inputRequests": { "a": { "method": "ping" } } })),
            "`ping` is not available",
        ),
        ("tools/call", r#"{"resultType":"later"}"#.to_owned(), "an unknown type"),
        (
            "tools/call",
            r#"{"resultType":"complete","resultType":"input_required"}"#.to_owned(),
            "its result is invalid",
        ),
        (
            "tools/call",
            r#"{"resultType":"input_required","inputRequests":{"a":1,"a":2}}"#.to_owned(),
            "its result is invalid",
        ),
    ] {
        let answer = conversation.ask(method);
        let received = conversation.receives();
        assert_eq!(received["params"].get("requestState"), None);
        conversation.answers(&received, &result);
        let ServerAnswer::Failed(NoResponse::InvalidInputRequest(why)) = answer.await.unwrap() else {
            panic!("{result}")
        };
        assert!(why.contains(because), "{why}");
    }
    let answer = conversation.ask("tools/call");
    let received = conversation.receives();
    conversation.answers(&received, r#"{"resultType":"complete","n":1.0}"#);
    let ServerAnswer::Response(Response::Result(result)) = answer.await.unwrap() else { panic!() };
    assert_eq!(result.get(), r#"{"resultType":"complete","n":1.0}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_has_the_answers_and_the_servers_state() {
    let mut conversation = TestConversation::new();
    let answer = conversation.ask("tools/call");
    let first = conversation.receives();
    let asked = r#"{"resultType":"input_required","requestState":"\u0073 1","inputRequests":{"a":{"method":"elicitation/create","params":{"requestedSchema":{"properties":{"x":{}}},"n":1.0}},"r":{"method":"roots/list"}}}"#;
    conversation.answers(&first, asked);
    let question = read_line(&mut conversation.client);
    assert_eq!(
        (&question["method"], &question["params"]),
        (
            &json!("elicitation/create"),
            &json!({ "requestedSchema": { "properties": { "x": {} } }, "n": 1.0 })
        )
    );
    let id = Id::from_string(question["id"].as_str().unwrap());
    let result = RawValue::from_string(r#"{"action":"accept","content":{"x":1.0}}"#.to_owned()).unwrap();
    let request = conversation.connection.take_client_request(&id).unwrap();
    assert!(conversation.connection.take_client_request(&id).is_none(), "it can be answered only once");
    let response = ClientAnswer::build(request.request(), &Response::Result(result));
    request.respond(response, None);
    let second = conversation.receives();
    assert_ne!(first["id"], second["id"]);
    assert_eq!(second["params"]["requestState"], "s 1");
    assert_eq!(
        second["params"]["inputResponses"]["a"],
        json!({ "action": "accept", "content": { "x": 1.0 } })
    );
    assert!(second["params"]["inputResponses"]["r"]["roots"].is_array(), "{second}");
    conversation.answers(&second, r#"{"content":[]}"#);
    assert!(matches!(answer.await.unwrap(), ServerAnswer::Response(Response::Result(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_request_with_our_id_is_refused_and_others_are_forwarded() {
    let mut conversation = TestConversation::new();
    let _answer = conversation.ask("tools/call");
    let first = conversation.receives();
    let asks = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}"#;
    conversation.answers(&first, asks);
    let ours = read_line(&mut conversation.client)["id"].clone();
    for id in [ours, json!("its own")] {
        let asked = json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {} });
        writeln!(conversation.stdout, "{asked}").unwrap();
    }
    let refused = conversation.receives();
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("reserved for IronCurtain"), "{refused}");
    assert_eq!(read_line(&mut conversation.client)["id"], "its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn task_methods_of_a_handshake_client_are_refused() {
    let mut conversation = TestConversation::new();
    for (method, params) in [
        ("tools/call", json!({ "name": "t", "task": { "ttl": 1 } })),
        ("tasks/get", json!({ "taskId": "t" })),
        ("tasks/list", json!({})),
    ] {
        let (send, answer) = oneshot::channel();
        let params = to_raw_value(&params).unwrap();
        conversation.connection.forward_request(
            ServerRequest::unchecked(method, Some(params)),
            None,
            move |answer, _| drop(send.send(answer)),
        );
        let ServerAnswer::Response(Response::Error(error)) = answer.await.unwrap() else {
            panic!("{method}")
        };
        let expected = "does not support tasks of this protocol version; call without `task`";
        assert!(error.get().contains(expected), "{}", error.get());
    }
    let _answer = conversation.ask("tools/call");
    assert_eq!(conversation.receives()["method"], "tools/call");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_fails_when_its_server_exits_during_an_input_request() {
    let mut conversation = TestConversation::new();
    let answer = conversation.ask("tools/call");
    let first = conversation.receives();
    conversation.answers(
        &first,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}"#,
    );
    let question = read_line(&mut conversation.client);
    drop(conversation.stdout);
    assert!(matches!(answer.await.unwrap(), ServerAnswer::Failed(NoResponse::ServerExited(_))));
    let over = read_line(&mut conversation.client);
    assert_eq!(
        (&over["method"], &over["params"]["requestId"]),
        (&json!("notifications/cancelled"), &question["id"])
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// An invalid request for input ends the call with exactly one response.
    #[test]
    fn every_result_leads_to_one_response(kind in "[a-z_]{0,16}", state in "\\PC{0,20}", junk in any::<Option<i32>>()) {
        prop_assume!(kind != "input_required");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let mut conversation = TestConversation::new();
            let answer = conversation.ask("tools/call");
            let received = conversation.receives();
            conversation.answers(&received, &json!({ "resultType": kind, "requestState": state, "inputRequests": junk }).to_string());
            answer.await.unwrap();
        });
    }
}
