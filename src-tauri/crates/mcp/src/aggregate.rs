//! Several servers as one: the names, the addresses and the ids by which a client sees them.
//!
//! - Pure: no server is asked here and no client is answered. The trusted process moves the messages.

mod catalogue;
mod initialize;
mod lists;
mod names;
mod qualified;
mod tables;

pub use catalogue::Catalogue;
pub use initialize::{InitializeError, InitializeRequest};
pub use lists::{CatalogueKind, ListEntries, Lists};
pub use names::{LONGEST, may_be_of};
pub use qualified::qualified;
pub use tables::{OwnRequest, RequestTables, RoutedRequest};
