//! Tests which requests complete a login.

use super::*;

fn at(authority: &str, path: &str) -> RedirectAddress {
    RedirectAddress { authority: authority.into(), port: 7, path: path.into() }
}

fn of(target: &str) -> String {
    let head = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n");
    match parse_redirect(&head, "s1", &at("127.0.0.1:7", "/callback")) {
        RedirectOutcome::Accepted(Callback { code, issuer, .. }) => {
            format!("{}, {}", code.as_str(), issuer.unwrap_or_default())
        }
        RedirectOutcome::Refused(why) => format!("refused: {why}"),
        RedirectOutcome::Other => "other".to_owned(),
    }
}

#[test]
fn only_a_code_with_the_state_of_this_login_is_an_answer() {
    assert_eq!(of("/callback?code=c1&state=s1"), "c1, ");
    assert_eq!(of("/callback?state=s1&iss=https%3A%2F%2Fa.example&code=c1"), "c1, https://a.example");
    for other in [
        "/callback?code=c1",
        "/callback?code=c1&state=s2",
        "/callback?code=c1&state=s1&state=s1",
        "/callback?code=a&code=b&state=s1",
        "/callback?code=c1&state=s1&iss=a&iss=b",
        "/callback?error=access_denied&error=x&state=s1",
        "/other?code=c1&state=s1",
        "//evil.example/callback?code=c1&state=s1",
        "/x/../callback?code=c1&state=s1",
    ] {
        assert_eq!(of(other), "other", "{other}");
    }
    assert_eq!(of("/callback?access_token=t1&state=s1"), "refused: it sent no code");
    assert_eq!(of("/callback?error=access_denied&state=s1"), "refused: access_denied");
}

#[tokio::test]
async fn a_request_of_another_user_is_refused_unread() {
    for (is_own, status) in [(false, "HTTP/1.1 400"), (true, "HTTP/1.1 200")] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let served =
            tokio::spawn(
                async move { serve(stream, is_own, "s1", &at(&address.to_string(), "/callback")).await },
            );
        if is_own {
            let head = format!("GET /callback?code=c1&state=s1 HTTP/1.1\r\nHost: {address}\r\n\r\n");
            client.write_all(head.as_bytes()).await.unwrap();
        }
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(status), "{answer}");
        assert_eq!(matches!(served.await.unwrap(), RedirectOutcome::Accepted(_)), is_own);
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_ends_after_five_minutes() {
    let (listener, began) = (CallbackListener::open(None).await.unwrap(), tokio::time::Instant::now());
    let late = listener.answer("s1").await.unwrap_err();
    assert!(matches!(late, LoginError::TimedOut(5)), "{late}");
    assert_eq!(began.elapsed().as_secs(), 300);
}

#[test]
fn a_request_for_another_host_is_not_an_answer() {
    let head = |host: &str| format!("GET /callback?code=c1&state=s1 HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let (random, registered) = (at("127.0.0.1:7", "/callback"), at("localhost:7", "/callback"));
    let is_answer = |host: &str, state: &str, address: &RedirectAddress| {
        matches!(parse_redirect(&head(host), state, address), RedirectOutcome::Accepted(_))
    };
    assert!(is_answer("127.0.0.1:7", "s1", &random) && !is_answer("evil.example:7", "s1", &random));
    assert!(!is_answer("127.0.0.1:7", "", &random));
    assert!(is_answer("localhost:7", "s1", &registered) && !is_answer("127.0.0.1:7", "s1", &registered));
    assert!(!is_answer("localhost:7", "s1", &at("localhost:7", "/other")));
}

#[tokio::test]
async fn a_registered_redirect_address_is_a_loopback_port() {
    let parsed = |text: &str| text.parse::<RedirectAddress>();
    for wrong in [
        "http://127.0.0.1/callback",
        "http://127.0.0.1:80/callback",
        "http://127.0.0.1:1023/callback",
        "http://0.0.0.0:3118/callback",
        "http://[::1]:3118/callback",
        "http://evil.example:3118/callback",
        "http://localhost.evil.example:3118/callback",
        "http://me@localhost:3118/callback",
        "https://localhost:3118/callback",
        "http://localhost:3118/callback?a=b",
        "http://localhost:3118/callback#a",
        "http://localhost:3118/a/../callback",
        "http://localhost:3118",
        "callback",
    ] {
        assert!(matches!(parsed(wrong), Err(LoginError::Redirect(_))), "{wrong}");
    }
    for right in ["http://localhost:3118/callback", "http://127.0.0.1:1024/", "http://localhost:65535/a/b"] {
        assert_eq!(parsed(right).unwrap().to_string(), right);
    }
    let free = CallbackListener::open(None).await.unwrap().address.port;
    let address = parsed(&format!("http://localhost:{free}/oauth/callback")).unwrap();
    let listener = CallbackListener::open(Some(address.clone())).await.unwrap();
    assert_eq!(listener.redirect(), format!("http://localhost:{free}/oauth/callback"));
    let taken = CallbackListener::open(Some(address)).await.unwrap_err();
    let expected = format!("failed to listen on port {free} of this computer for the browser's redirect");
    assert!(taken.to_string().starts_with(&expected), "another program has the port: {taken}");
}

#[tokio::test]
async fn a_redirect_to_localhost_is_received_on_both_loopback_addresses() {
    let squatter = TcpListener::bind("[::1]:0").await.unwrap();
    let port = squatter.local_addr().unwrap().port();
    let address = format!("http://localhost:{port}/callback").parse::<RedirectAddress>().unwrap();
    let refused = CallbackListener::open(Some(address.clone())).await.unwrap_err();
    assert!(matches!(refused, LoginError::Listen { .. }), "{refused}");
    let other = format!("http://127.0.0.1:{port}/callback").parse::<RedirectAddress>().unwrap();
    drop(CallbackListener::open(Some(other)).await.unwrap());
    drop(squatter);
    for loopback in ["127.0.0.1", "[::1]"] {
        let listener = CallbackListener::open(Some(address.clone())).await.unwrap();
        let browser = tokio::spawn(async move {
            let mut stream = TcpStream::connect(format!("{loopback}:{port}")).await.unwrap();
            let head = format!("GET /callback?code=c1&state=s1 HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        });
        assert_eq!(listener.answer("s1").await.unwrap().code.as_str(), "c1", "{loopback}");
        assert!(browser.await.unwrap().starts_with("HTTP/1.1 200"), "{loopback}");
    }
}
