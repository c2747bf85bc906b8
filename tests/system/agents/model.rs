//! A scripted model server that implements the APIs of the agent clients.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A model that requests one tool call. Dropping it kills its process.
pub struct Model {
    script: Child,
    port: u16,
    log: PathBuf,
}

impl Model {
    /// Starts a model that calls `tool` with these arguments as soon as a client offers the tool.
    pub fn start(tool: &str, arguments: &Value, log: &Path) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/agents/model.js");
        let mut script = Command::new("node")
            .arg(file)
            .args([tool, &arguments.to_string()])
            .arg(log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is installed");
        let mut port = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { script, port: port.trim().parse().unwrap(), log: log.to_path_buf() }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn forget(&self) {
        std::fs::write(&self.log, "").unwrap();
    }

    /// Returns the results that the model received for its calls.
    pub fn results(&self) -> Vec<String> {
        let log = std::fs::read_to_string(&self.log).unwrap();
        let told = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let results = told.flat_map(|turn| turn["results"].as_array().unwrap().clone());
        results.map(|result| result.as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}
