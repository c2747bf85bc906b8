//! Exports the audit log to an OpenTelemetry collector, writes it as OCSF, and signs its heads.
//!
//! - Reads the log independently of its writer, from a stored position. The log itself is the queue, so nothing is
//!   copied and no decision waits for a collector.
//! - INVARIANT: only the fields that [`names`] lists leave the machine. Arguments, summaries and reasons never do.
//! - Delivers at least once: the position advances only after the collector has accepted the entries. Each entry's
//!   hash is its stable id.
//! - Does not depend on policies, questions or sessions.

mod backoff;
mod batch;
mod delivery;
mod endpoint;
mod event;
mod exporter;
mod heads;
mod key;
mod key_store;
mod metrics;
pub mod names;
mod ocsf;
mod otlp;
mod paths;
mod reader;
mod state;

pub use backoff::{random, spread};
pub use delivery::{DeliveryError, probe};
pub use endpoint::{Endpoint, EndpointError};
pub use event::ExportedEvent;
pub use exporter::{Exporter, ExporterParts};
pub use heads::{CheckedHeads, HeadsError, HeadsFile, SIGN_EVERY, SignedHead, check_heads};
pub use key::{DeviceKey, DeviceKeyError, PublicKey};
pub use key_store::KeyStore;
pub use ocsf::{OcsfError, OcsfWritten, append_ocsf};
pub use otlp::sample;
pub use paths::{PathForm, PathKey};
pub use state::{ExportState, StateError};
