//! The MCP client of these tests. The modules of the fake servers add functions for their tools.

use ironcurtain_testkit::client as kit;
pub use ironcurtain_testkit::client::{Outcome, TIMEOUT};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::Command;

pub struct Client(kit::AgentClient);

impl Client {
    pub fn start(programs: &Path, home: &Path, server: &str) -> Self {
        Self(kit::AgentClient::start(programs, home, server))
    }

    pub fn spawn(command: Command, home: &Path) -> Self {
        Self(kit::AgentClient::spawn(command, home))
    }

    pub fn connect(programs: &Path, home: &Path, server: &str) -> Self {
        Self(kit::AgentClient::connect(programs, home, server))
    }

    pub fn connect_non_reading(programs: &Path, home: &Path, server: &str) -> Self {
        Self(kit::AgentClient::connect_without_reading(programs, home, server))
    }

    pub fn hang_up(self) {
        self.0.hang_up();
    }
}

impl Deref for Client {
    type Target = kit::AgentClient;

    fn deref(&self) -> &kit::AgentClient {
        &self.0
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut kit::AgentClient {
        &mut self.0
    }
}
