//! Tests hostile collectors: endless, misleading and malformed responses.

use crate::fake_collector::FakeCollector;
use crate::stage::{Fixture, eventually};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ironcurtain_export::{DeliveryError, Endpoint, probe};
use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

async fn probed(collector: &FakeCollector) -> Result<(), DeliveryError> {
    probe(&Endpoint::new(&collector.url(), []).unwrap()).await
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (collector, other) = (FakeCollector::start(), FakeCollector::start());
    probed(&collector).await.unwrap();
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        collector.answer(status, &format!("Location: {}/v1/logs\r\n", other.url()));
        let refused = probed(&collector).await;
        assert!(matches!(refused, Err(DeliveryError::Redirect(_))), "{refused:?}");
    }
    assert!(other.received().is_empty());
}

#[tokio::test]
async fn answers_that_are_not_otlp_are_not_a_success() {
    let collector = FakeCollector::start();
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 4\r\n\r\n\u{7f}\u{7f}\u{7f}\u{7f}",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        collector.behave(move |_, _| Some(answer.to_owned()));
        let refused = probed(&collector).await;
        assert!(matches!(refused, Err(DeliveryError::NotOtlp)), "{answer}: {refused:?}");
    }
    // In OTLP, only status 200 means success.
    for status in ["202 Accepted", "204 No Content"] {
        collector.answer(status, "Content-Type: application/x-protobuf\r\n");
        let refused = probed(&collector).await;
        assert!(matches!(refused, Err(DeliveryError::Status { .. })), "{status}: {refused:?}");
    }
    for garbage in
        ["\u{0}\u{1}\u{2}garbage\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", ""]
    {
        collector.behave(move |_, stream| {
            stream.write_all(garbage.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Both).unwrap();
            Some(String::new())
        });
        let refused = probed(&collector).await;
        assert!(matches!(refused, Err(DeliveryError::Http(_))), "{garbage:?}: {refused:?}");
    }
    collector.accept();
    probed(&collector).await.unwrap();
}

#[tokio::test]
async fn endless_answers_are_cut_off() {
    let collector = FakeCollector::start();
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 99999999999\r\n\r\n",
        // The response head has no end.
        "HTTP/1.1 200 OK\r\nX: ",
    ] {
        let written = Arc::new(AtomicU64::new(0));
        let count = written.clone();
        collector.behave(move |_, stream| {
            let _ = stream.write_all(head.as_bytes());
            while stream.write_all(&[b'a'; 65536]).is_ok() {
                count.fetch_add(65536, Ordering::Relaxed);
            }
            Some(String::new())
        });
        let refused = probed(&collector).await;
        assert!(matches!(refused, Err(DeliveryError::NotOtlp | DeliveryError::Http(_))), "{refused:?}");
        // Kernel buffers hold some megabytes.
        assert!(written.load(Ordering::Relaxed) < 64 << 20);
    }
}

#[tokio::test(start_paused = true)]
async fn collector_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let refused = probe(&Endpoint::new(&url, []).unwrap()).await;
    assert!(matches!(refused, Err(DeliveryError::Timeout)), "{refused:?}");
    drop(listener);
}

#[tokio::test]
async fn nothing_listens_and_recording_goes_on() {
    let mut fixture = Fixture::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let right = std::mem::replace(&mut fixture.collector.port, port);
    fixture.start();
    fixture.record(2000).await;
    let trouble = fixture.trouble.clone();
    let is_told =
        || trouble.lock().unwrap().as_ref().is_some_and(|text: &String| text.contains("failed to connect"));
    eventually("the user is notified", is_told).await;
    fixture.kill().await;
    fixture.collector.port = right;
    fixture.start();
    eventually("everything is sent", || fixture.collector.numbers().last() == Some(&2001)).await;
    fixture.stop().await;
    assert_eq!(fixture.collector.numbers(), (2..=2001).collect::<Vec<_>>());
}

#[tokio::test]
async fn headers_are_sent_and_not_shown() {
    let collector = FakeCollector::start();
    let headers = [("Authorization".to_owned(), "Bearer t0ken".to_owned())];
    let endpoint = Endpoint::new(&collector.url(), headers).unwrap();
    probe(&endpoint).await.unwrap();
    assert!(collector.received()[0].headers.contains(&"authorization: Bearer t0ken".to_owned()));
    assert!(!format!("{endpoint:?}").contains("t0ken"));
    let broken = [("X-Key".to_owned(), "a\nb".to_owned())];
    let refused = probe(&Endpoint::new(&collector.url(), broken).unwrap()).await;
    assert!(matches!(refused, Err(DeliveryError::Header(ref name)) if name == "X-Key"), "{refused:?}");
}

/// Replaces the text of the last entry and recomputes the entry's hash.
fn forge_last_entry(log: &std::path::Path) {
    let file = log.join(ironcurtain_audit::LOG_NAME);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.pop().unwrap().replace("is not exported", "was not written");
    let (open, _) = last.rsplit_once(",\"link\":\"").unwrap();
    let before: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    let prev = before["link"].as_str().unwrap();
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{prev}{open}").as_bytes());
    let link = URL_SAFE_NO_PAD.encode(digest.as_ref());
    let forged = format!("{}\n{open},\"link\":\"{link}\"}}\n", lines.join("\n"));
    assert_eq!(forged.len(), text.len());
    std::fs::OpenOptions::new().write(true).open(&file).unwrap().write_all(forged.as_bytes()).unwrap();
}

#[tokio::test]
async fn entry_that_another_program_forged_is_not_exported() {
    let mut fixture = Fixture::new().await;
    fixture.start();
    fixture.record(1).await;
    fixture.stop().await;
    fixture.record(2).await;
    forge_last_entry(&fixture.log());
    assert!(ironcurtain_audit::check(&fixture.log()).unwrap().intact(), "the file alone looks intact");
    fixture.start();
    let trouble = fixture.trouble.clone();
    let words = "entry 4 is not the one that was written";
    let is_told = || trouble.lock().unwrap().as_ref().is_some_and(|text: &String| text.contains(words));
    eventually("the user is notified", is_told).await;
    fixture.stop().await;
    assert_eq!(fixture.collector.numbers(), [2]);
}
