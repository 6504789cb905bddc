//! An event stream over HTTP seen by a client: whole blocks, and one cause for its end.
//!
//! HTTP is hyper's; the socket beneath it (`sse/socket.rs`), the request and what counts as an answer (`sse/http.rs`),
//! where a redirect leads (`sse/redirect.rs`) and the stream's format (`sse/parser.rs`) are herd's. What an event means,
//! and which id is the cursor, is the profile's business.

mod fault;
mod http;
pub mod parser;
pub mod redirect;
mod socket;

use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::Bytes;

use self::http::Body;
use self::parser::{Block, Item, Oversize, Parser};
use super::Limits;
use crate::history::Cause;

pub use http::{Answer, Reply, open};

/// An open stream.
#[derive(Debug)]
pub struct Connection(
    // Boxed: every future that a connection passes through would otherwise have room for it.
    Box<Stream>,
);

#[derive(Debug)]
struct Stream {
    body: Body,
    /// What came of the body and wasn't read yet.
    unread: Bytes,
    parser: Parser,
    /// Pieces of the body so far.
    signs: u64,
    /// The last `retry:`, and whether it was handed on.
    retry: Option<(Duration, Told)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Yes,
    No,
}

impl Connection {
    fn new(body: Body, limits: Limits) -> Self {
        Self(Box::new(Stream {
            body,
            unread: Bytes::new(),
            parser: Parser::new(limits.message),
            signs: 0,
            retry: None,
        }))
    }

    /// The next block, or why there is none any more: everything that arrived before a reset is told first. Comments
    /// and `retry:` are read in passing.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Block, Cause>> {
        let stream = &mut *self.0;
        loop {
            match stream.item() {
                Ok(Some(Item::Block(block))) => return Poll::Ready(Ok(block)),
                Ok(Some(Item::Retry(delay))) => stream.note(delay),
                Err(Oversize) => return Poll::Ready(Err(Cause::Oversize)),
                Ok(None) => match ready!(stream.body.poll_chunk(cx)) {
                    Some(Ok(chunk)) => {
                        stream.signs += u64::from(!chunk.is_empty());
                        stream.unread = chunk;
                    }
                    Some(Err(error)) => return Poll::Ready(Err(fault::cause(&error))),
                    None => return Poll::Ready(Err(Cause::Eof)),
                },
            }
        }
    }

    /// How many pieces of the body have come, comments and all.
    pub fn signs(&self) -> u64 {
        self.0.signs
    }

    /// The delay that the last `retry:` line named, once for each change. Ask after every
    /// [`Connection::poll_next`], one that found nothing included: the line needs no event to go with it.
    pub fn take_retry(&mut self) -> Option<Duration> {
        let (delay, told) = self.0.retry.as_mut()?;
        (std::mem::replace(told, Told::Yes) == Told::No).then_some(*delay)
    }
}

impl Stream {
    fn item(&mut self) -> Result<Option<Item>, Oversize> {
        let mut rest = &self.unread[..];
        let item = self.parser.read(&mut rest);
        // At its end this lets go of the buffer, which the next read can then use again.
        self.unread = self.unread.slice(self.unread.len() - rest.len()..);
        item
    }

    fn note(&mut self, delay: Duration) {
        if self.retry.is_none_or(|(known, _)| known != delay) {
            self.retry = Some((delay, Told::No));
        }
    }
}
