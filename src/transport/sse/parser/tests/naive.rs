//! A reader that sees the whole text at once, written from the standard's words and from nothing of the parser's.

use std::time::Duration;

use super::super::{Block, Item};

/// The standard's words, for a stream that is there as a whole.
pub(super) fn naive(bytes: &[u8]) -> Vec<Item> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop(); // Not ended.
    let mut items = Vec::new();
    let (mut data, mut event, mut id) = (String::new(), String::new(), None);
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            _ if line.is_empty() => {
                let has_data = !data.is_empty();
                if has_data || id.is_some() {
                    items.push(Item::Block(Block {
                        event: event.clone(),
                        data: data.strip_suffix('\n').unwrap_or_default().into(),
                        id: id.take(),
                        has_data,
                    }));
                }
                data.clear();
                event.clear();
            }
            "event" => event = value.into(),
            "data" => data = data + value + "\n",
            "id" if !value.contains('\0') => id = Some(value.into()),
            "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                let ms = value.parse().unwrap_or(u64::MAX);
                items.push(Item::Retry(Duration::from_millis(ms)));
            }
            _ => {}
        }
    }
    items
}
