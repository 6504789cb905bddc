//! Parses, calls, and turns the result into an exit code; the only place that may end the process.

fn main() {}
