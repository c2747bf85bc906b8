//! Tests the server from the client's side, as a real process with real files.
#![cfg(unix)]

#[cfg(test)]
mod client;
#[cfg(test)]
mod files;
#[cfg(test)]
mod official_client;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod roots;
