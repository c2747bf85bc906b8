//! Presents several servers as one: maps the names, URIs and ids that the client sees.
//!
//! - Pure: sends nothing. The trusted process forwards the messages.

mod catalogue;
mod initialize;
mod lists;
mod names;
mod qualified_uri;
mod tables;

pub use catalogue::Catalogue;
pub use initialize::{InitializeError, InitializeRequest};
pub use lists::{CatalogueKind, ListEntries, Lists};
pub use names::{MAX_NAME_LEN, may_belong_to};
pub use tables::{OwnRequest, RequestTables, RoutedRequest};
