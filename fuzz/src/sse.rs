//! The event stream parser: no bytes make it panic, and however they are cut it reads the same.
#![no_main]

use herd::transport::sse::parser::{Item, Oversize, Parser};
use libfuzzer_sys::fuzz_target;

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> (Vec<Item>, bool) {
    let mut parser = Parser::new(limit);
    let mut items = Vec::new();
    for mut piece in pieces {
        loop {
            match parser.read(&mut piece) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(Oversize) => return (items, false),
            }
        }
    }
    (items, true)
}

// The last byte says how the stream is cut, and by that how long a line may be.
fuzz_target!(|input: &[u8]| {
    let Some((&cut, bytes)) = input.split_last() else {
        return;
    };
    let limit = if cut < 128 { 1 << 16 } else { 24 };
    let whole = read([bytes], limit);
    assert_eq!(read(bytes.chunks(1), limit), whole);
    assert_eq!(read(bytes.chunks(usize::from(cut % 16) + 2), limit), whole);
    let (head, tail) = bytes.split_at(usize::from(cut).min(bytes.len()));
    assert_eq!(read([head, tail], limit), whole);
});
