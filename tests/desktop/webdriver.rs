//! Controls the app's page over WebDriver.
//!
//! - The app is a test build: its window listens at the address in `WEBKIT_INSPECTOR_SERVER`, to which
//!   `WebKitWebDriver` connects.
//! - Elements are found by XPath. A missing element is waited for. Clicks are not retried.

use crate::app::{App, command};
use crate::screen::{Screen, TIMEOUT, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// Key that contains an element's id in responses (W3C WebDriver, "Elements").
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The page to which a driver is connected.
pub(crate) struct Page {
    driver: u16,
    session: String,
}

impl Page {
    /// Starts the app with an open window, and the driver for its page.
    pub(crate) fn open(screen: &mut Screen) -> (App, Self) {
        let (driver, page) = (free_port(), free_port());
        let address = format!("{}:{page}", Ipv4Addr::LOCALHOST);
        let mut app = command(screen, &[]);
        app.env("TAURI_WEBVIEW_AUTOMATION", "true").env("WEBKIT_INSPECTOR_SERVER", &address);
        let app = App::spawn(&mut app);
        screen.spawn("WebKitWebDriver", &[&format!("--port={driver}"), &format!("--target={address}")]);
        screen.window("^IronCurtain$");
        until("the driver", || TcpStream::connect((Ipv4Addr::LOCALHOST, driver)).ok());
        let mut this = Self { driver, session: String::new() };
        let begun = this.call("POST", "/session", &json!({ "capabilities": {} }));
        let begun = begun.unwrap_or_else(|error| panic!("the window cannot be driven: {error}"));
        this.session = format!("/session/{}", begun["sessionId"].as_str().expect("a session"));
        (app, this)
    }

    /// Clicks the centre of an element with the driver's pointer. Presses a key first, so that the click does not count
    /// as the second press of a double click on another element at the same place.
    pub(crate) fn click(&self, path: &str) {
        let element = self.element(path);
        self.press_shift();
        self.ask("POST", &format!("/element/{element}/click"), &json!({}));
    }

    /// Presses the pointer button on an element, calls `between`, and releases the button.
    pub(crate) fn hold(&self, path: &str, between: impl FnOnce()) {
        let origin = json!({ ELEMENT: self.element(path) });
        self.press_shift();
        let to = json!({ "type": "pointerMove", "duration": 0, "origin": origin, "x": 0, "y": 0 });
        self.point(&json!([to, { "type": "pointerDown", "button": 0 }]));
        between();
        self.point(&json!([{ "type": "pointerUp", "button": 0 }]));
    }

    /// Returns the visible text of an element.
    pub(crate) fn text(&self, path: &str) -> String {
        until(&format!("the text of `{path}`"), || {
            // Searches again if the element has been redrawn.
            let text = format!("{}/element/{}/text", self.session, self.element(path));
            self.call("GET", &text, &Value::Null).ok()?.as_str().map(str::to_owned)
        })
    }

    /// Waits until an element contains `words`.
    pub(crate) fn says(&self, path: &str, words: &str) {
        until(&format!("`{path}` to say `{words}`"), || self.text(path).contains(words).then_some(()));
    }

    /// Runs a script in the page and returns its result.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }

    fn press_shift(&self) {
        let [down, up] = ["keyDown", "keyUp"].map(|what| json!({ "type": what, "value": "\u{e008}" }));
        let keys = json!({ "type": "key", "id": "keys", "actions": [down, up] });
        self.ask("POST", "/actions", &json!({ "actions": [keys] }));
    }

    fn point(&self, actions: &Value) {
        let mouse = json!({ "type": "pointer", "id": "mouse", "actions": actions });
        self.ask("POST", "/actions", &json!({ "actions": [mouse] }));
    }

    /// Waits for an element and returns its id.
    fn element(&self, path: &str) -> String {
        let wanted = json!({ "using": "xpath", "value": path });
        until(&format!("`{path}`"), || {
            let found = self.call("POST", &format!("{}/element", self.session), &wanted).ok()?;
            found[ELEMENT].as_str().map(str::to_owned)
        })
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.call(method, &format!("{}{path}", self.session), body);
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Sends a WebDriver request. Returns the response's value, or its error.
    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut driver = TcpStream::connect((Ipv4Addr::LOCALHOST, self.driver)).expect("the driver");
        driver.set_read_timeout(Some(TIMEOUT)).expect("a bound");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        driver.write_all((head + &body).as_bytes()).expect("a driver that listens");
        let mut answer = String::new();
        driver.read_to_string(&mut answer).expect("its answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer with a body");
        let value = serde_json::from_str::<Value>(body).expect("JSON")["value"].take();
        if head.starts_with("HTTP/1.1 200 ") { Ok(value) } else { Err(value.to_string()) }
    }
}

fn free_port() -> u16 {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    free.local_addr().expect("its number").port()
}
