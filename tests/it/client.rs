//! One client against servers that misbehave in every way that a socket allows.
//!
//! Real sockets never meet a paused clock: it jumps to the next timer whenever nothing is ready, so a limit of seconds
//! would pass while the system is still carrying the bytes. The limits here are real and short.
#![expect(
    clippy::unwrap_used,
    reason = "clippy knows test functions, but not the servers and helpers that they share"
)]

mod coming_back;
mod dialling;
mod frames;
mod reading;
pub(crate) mod rig;
mod streams;
mod talking;
