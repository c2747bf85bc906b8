//! The suite's rows, grouped by target.

mod kernel;
mod lifetime;
mod load;
mod namespaces;
mod network;
mod persistence;
mod processes;
mod proxied;
mod reading;
mod sockets;
mod writing;

use crate::row::Group;

pub(crate) const ALL: &[&Group] = &[
    &writing::GROUP,
    &reading::GROUP,
    &processes::GROUP,
    &sockets::GROUP,
    &kernel::GROUP,
    &namespaces::GROUP,
    &network::GROUP,
    &proxied::GROUP,
    &persistence::GROUP,
    &load::GROUP,
    &lifetime::GROUP,
];
