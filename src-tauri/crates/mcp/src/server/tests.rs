//! Tests of the lines that a connection forwards, and of its limits.

use super::pending::MAX_CLIENT_REQUESTS;
use super::*;
use crate::wire::MemoryBudget;
use std::io::{BufRead, Write};
use std::time::Duration;

/// Server that the test controls: its input, its output, and the lines sent to the client.
struct Server {
    stdin: std::io::PipeReader,
    stdout: std::io::PipeWriter,
    client: std::io::PipeReader,
    connection: ServerConnection,
    /// Kept alive with the server.
    _kept: (ReaderTask, watch::Sender<HashSet<String>>),
}

fn server(client_supports: &[&str]) -> Server {
    let (stdin, to_server) = std::io::pipe().unwrap();
    let (from_server, stdout) = std::io::pipe().unwrap();
    let (client, to_client) = std::io::pipe().unwrap();
    let supported: HashSet<String> = client_supports.iter().map(|method| (*method).to_owned()).collect();
    let (supported, client_supports) = watch::channel(supported);
    let from_server = ConnectionOptions {
        stdout: Input::new(from_server.into()).unwrap(),
        client: Outbox::new(Output::new(to_client.into()).unwrap()),
        memory: MemoryBudget::new(8, 1).allowance(1),
        roots: Arc::new(RootList::default()),
        client_supports,
        sampling: mpsc::unbounded_channel().0,
        log_invalid: Arc::new(drop),
    };
    let (connection, reader_task) =
        ServerConnection::start(Output::new(to_server.into()).unwrap(), from_server);
    Server { stdin, stdout, client, connection, _kept: (reader_task, supported) }
}

#[tokio::test]
async fn a_server_that_does_not_read_is_not_read() {
    const PINGS: usize = 50_000;
    let Server { stdin, mut stdout, client: _client, connection: _connection, _kept } = server(&[]);
    let mut asking = tokio::task::spawn_blocking(move || {
        for n in 0..PINGS {
            writeln!(stdout, "{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"ping\"}}").unwrap();
        }
        stdout
    });
    assert!(
        tokio::time::timeout(Duration::from_secs(1), &mut asking).await.is_err(),
        "the connection kept reading"
    );
    // Every response is written once the server reads again.
    let answers = tokio::task::spawn_blocking(move || {
        std::io::BufReader::new(stdin).lines().take(PINGS).map_while(Result::ok).count()
    });
    assert_eq!(answers.await.unwrap(), PINGS);
    drop(asking.await.unwrap());
}

/// Answers a server request, if it is in flight.
fn answer(connection: &ServerConnection, id: u64) {
    if let Some(request) = connection.take_client_request(&Id::from(id)) {
        let response = Response::Result(RawValue::from_string("{}".to_owned()).unwrap());
        request.respond(ClientAnswer::unchecked(response), None);
    }
}

/// Reads the next message.
async fn next(from: &mut std::io::BufReader<std::io::PipeReader>) -> serde_json::Value {
    // Blocks in place so that the runtime continues and no second task reads the pipe.
    tokio::task::block_in_place(|| {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_server_requests_get_a_busy_error() {
    const METHOD: &str = "elicitation/create";
    let Server { stdin, mut stdout, client, connection, _kept } = server(&[METHOD]);
    let (mut stdin, mut client) = (std::io::BufReader::new(stdin), std::io::BufReader::new(client));
    let mut ask = |id: usize| {
        writeln!(stdout, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{METHOD}\",\"params\":{{}}}}")
            .unwrap();
    };
    for id in 0..MAX_CLIENT_REQUESTS {
        ask(id);
        assert_eq!(next(&mut client).await["id"], id);
    }
    ask(MAX_CLIENT_REQUESTS);
    let refused = next(&mut stdin).await;
    assert_eq!((refused["id"].as_u64(), refused["error"]["code"].as_i64()), (Some(256), Some(-32600)));
    assert!(refused["error"]["message"].as_str().unwrap().contains("256 other requests"), "{refused}");
    // An id in use is rejected.
    ask(3);
    assert_eq!(next(&mut stdin).await["id"], 3);
    // Each answer makes room for one request.
    answer(&connection, 0);
    assert_eq!(next(&mut stdin).await["id"], 0);
    ask(MAX_CLIENT_REQUESTS);
    assert_eq!(next(&mut client).await["id"], MAX_CLIENT_REQUESTS);
    // A cancellation also makes room, and a late answer to the cancelled request is dropped.
    let params = "{\"requestId\":1}";
    writeln!(stdout, "{{\"jsonrpc\":\"2.0\",\"method\":\"{CANCELLED}\",\"params\":{params}}}").unwrap();
    assert_eq!(next(&mut client).await["method"], CANCELLED);
    answer(&connection, 1);
    let again = MAX_CLIENT_REQUESTS + 1;
    writeln!(stdout, "{{\"jsonrpc\":\"2.0\",\"id\":{again},\"method\":\"{METHOD}\",\"params\":{{}}}}")
        .unwrap();
    assert_eq!(next(&mut client).await["id"], again);
    answer(&connection, 2);
    assert_eq!(next(&mut stdin).await["id"], 2);
}
