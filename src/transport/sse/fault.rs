//! What an error of the HTTP library says about the server. The library has one type for everything and hides the
//! system's error and HTTP/2's within it.

use std::error::Error;
use std::io;

use crate::history::{AttemptOutcome, Cause};
use crate::transport::{is_reset, safe};

/// How much of an error's text is kept (bytes).
const TEXT: usize = 200;

/// Why an open stream ended.
pub(super) fn cause(error: &hyper::Error) -> Cause {
    match io_error(error) {
        Some(e) if is_reset(e) => Cause::Reset,
        // A chunked body without its last chunk, one shorter than announced, TLS without a goodbye.
        Some(e) if e.kind() == io::ErrorKind::UnexpectedEof => Cause::Cut,
        Some(e) if is_nonsense(e) => Cause::Protocol(text(error)),
        Some(e) => Cause::Io(safe(e.to_string().as_bytes(), TEXT)),
        None if error.is_incomplete_message() => Cause::Cut,
        None => Cause::Protocol(text(error)),
    }
}

/// How a request ended that got no answer.
pub(super) fn outcome(error: &hyper::Error) -> AttemptOutcome {
    let why = match io_error(error) {
        Some(e) if is_reset(e) => "reset instead of an answer".into(),
        Some(e) if e.kind() == io::ErrorKind::UnexpectedEof => "closed without an answer".into(),
        _ if error.is_incomplete_message() => "closed without an answer".into(),
        _ if error.is_parse() => safe(format!("not HTTP: {}", chain(error)).as_bytes(), TEXT),
        _ => text(error),
    };
    AttemptOutcome::Handshake { status: None, why }
}

/// What the body's decoder says of broken chunks.
fn is_nonsense(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
    )
}

fn io_error(error: &hyper::Error) -> Option<&io::Error> {
    causes(error).find_map(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .or_else(|| cause.downcast_ref::<h2::Error>()?.get_io())
    })
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn Error + 'static) = *error;
        error.source()
    })
}

fn text(error: &hyper::Error) -> Box<str> {
    safe(chain(error).as_bytes(), TEXT)
}

/// The innermost error says what happened, the outer ones only where the library was.
fn chain(error: &hyper::Error) -> String {
    causes(error)
        .last()
        .map_or_else(String::new, |e| match e.downcast_ref::<h2::Error>() {
            Some(e) => format!("HTTP/2: {e}"),
            None => e.to_string(),
        })
}
