//! filesystem
fn main() {}
