//! Tasks of this workspace.

fn main() {}
