//! The sandbox as it really is: bubblewrap, namespaces and mounts, seen by a program that runs in it.

mod harness;

mod calls;
mod ends;
mod grants;
mod runtimes;
mod taking_back;
mod user;
mod view;
