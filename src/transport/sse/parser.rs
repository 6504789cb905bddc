//! The format of an event stream (WHATWG HTML 9.2.6), read in pieces of any size. It knows no HTTP and sets no cursor:
//! it tells which block holds which id, and what an event means is the profile's business.
//!
//! Line ends are ASCII, so no character spans two lines: text is decoded line by line, with the same replacements as
//! the standard's decoder makes in the whole.

use std::time::Duration;

/// The byte order mark that a stream may begin with.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What a stream's lines amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An event, or a block that only moves the last event id.
    Block(Block),
    /// `retry:`, how long to wait before a reconnect. It holds at once, whether or not its block is ever finished.
    Retry(Duration),
}

/// A block that a blank line has finished, unless it holds neither data nor id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// The value of its last `event:`; empty where it named none.
    pub event: String,
    /// The values of its `data:` lines, joined by line feeds.
    pub data: String,
    /// The `id:` of this very block, empty where it clears the last event id; none where it has no such line that
    /// counts.
    pub id: Option<String>,
    /// Whether it had a `data:` line: without one nothing is dispatched, and only the id counts.
    pub has_data: bool,
}

impl Block {
    /// The event's type: "message" where the block named none.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.event.is_empty() {
            "message"
        } else {
            &self.event
        }
    }

    fn size(&self) -> usize {
        self.event.len() + self.data.len() + self.id.as_ref().map_or(0, String::len)
    }
}

/// A line, or a block put together, was over the limit. Nothing can be read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oversize;

/// One stream's reader.
#[derive(Debug)]
pub struct Parser {
    /// The longest line, and the largest block put together (bytes).
    limit: usize,
    /// The beginning of a line whose end hasn't come yet.
    line: Vec<u8>,
    /// The last byte was a CR, which has ended its line: a LF right behind it belongs to it.
    after_cr: bool,
    /// The first line was read, and with it a byte order mark.
    begun: bool,
    /// What the lines since the last blank one say.
    block: Block,
}

impl Parser {
    /// At the beginning of a stream; no line and no block may have over `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_cr: false,
            begun: false,
            block: Block::default(),
        }
    }

    /// Reads up to the next item and leaves in `bytes` what comes behind it; none = all of them are read and finish
    /// nothing. What the stream's end finds unfinished is dropped with the parser, as the standard wants.
    ///
    /// # Errors
    /// [`Oversize`], after which the stream can't be read any further.
    pub fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<Item>, Oversize> {
        while let [first, ..] = *bytes {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                *bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|b| matches!(b, b'\r' | b'\n')) else {
                self.begin_line(std::mem::take(bytes))?;
                break;
            };
            let (line, rest) = bytes.split_at(end);
            self.after_cr = rest[0] == b'\r';
            *bytes = &rest[1..];
            let item = if self.line.is_empty() {
                self.finish_line(line)
            } else {
                self.begin_line(line)?;
                let whole = std::mem::take(&mut self.line);
                self.finish_line(&whole)
            }?;
            if item.is_some() {
                return Ok(item);
            }
        }
        Ok(None)
    }

    fn begin_line(&mut self, part: &[u8]) -> Result<(), Oversize> {
        self.within(self.line.len() + part.len())?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn finish_line(&mut self, mut line: &[u8]) -> Result<Option<Item>, Oversize> {
        self.within(line.len())?;
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.finish_block());
        }
        let (field, value) = match line.iter().position(|b| *b == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let block = &mut self.block;
        match field {
            b"data" => {
                if std::mem::replace(&mut block.has_data, true) {
                    block.data.push('\n');
                }
                block.data.push_str(&String::from_utf8_lossy(value));
            }
            b"event" => block.event = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                block.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => return Ok(retry(value).map(Item::Retry)),
            // Unknown, or a comment: a line that begins with a colon has an empty name.
            _ => {}
        }
        self.within(self.block.size())?;
        Ok(None)
    }

    fn finish_block(&mut self) -> Option<Item> {
        let block = std::mem::take(&mut self.block);
        (block.has_data || block.id.is_some()).then_some(Item::Block(block))
    }

    fn within(&self, size: usize) -> Result<(), Oversize> {
        if size > self.limit {
            return Err(Oversize);
        }
        Ok(())
    }
}

/// Milliseconds, as large as they come; none where it isn't digits alone.
fn retry(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let ms = value.iter().fold(0u64, |ms, digit| {
        ms.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    Some(Duration::from_millis(ms))
}

#[cfg(test)]
mod tests;
