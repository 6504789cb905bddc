//! Makes untrusted text safe to show. Whatever a server sent, or a scenario quotes, goes through here before a terminal
//! sees it: one function, so that nothing is safe by accident.

use std::fmt::Write;

/// Text on one line that can't move the cursor, change colours, reverse the reading order or hide itself: every such
/// character is shown as its escape. Text wider than `columns` is cut, with `…` in the last column.
#[must_use]
pub fn safe(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len().min(columns));
    let mut used = 0;
    // Where a cut would leave room for the mark.
    let mut fits = 0;
    for c in text.chars() {
        let before = out.len();
        push(&mut out, c);
        used += width(&out[before..]);
        if used > columns {
            out.truncate(fits);
            if columns > 0 {
                out.push('…');
            }
            return out;
        }
        if used < columns {
            fits = out.len();
        }
    }
    out
}

fn push(out: &mut String, c: char) {
    // Writing to a string can't fail.
    let _ = match c {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        c if acts(c) => write!(out, "\\u{{{:x}}}", u32::from(c)),
        c => out.write_char(c),
    };
}

/// Whether a character does something else than stand there.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// How many columns a safe text takes; from the first wide script on (Hangul) every character is taken for a wide one,
/// except the marks that herd itself draws with. Too wide is safe, too narrow would break the layout.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars()
        .map(|c| match c {
            '\u{2000}'..='\u{259f}' => 1,
            c if c >= '\u{1100}' => 2,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_acts_is_shown_and_what_stands_is_kept() {
        assert_eq!(safe("a\u{1b}[31mb", 80), "a\\u{1b}[31mb");
        assert_eq!(safe("a\r\n\tb", 80), "a\\r\\n\\tb");
        assert_eq!(safe("\u{202e}gpj.exe", 80), "\\u{202e}gpj.exe");
        assert_eq!(
            safe("\u{9b}2J\u{7f}\u{feff}", 80),
            "\\u{9b}2J\\u{7f}\\u{feff}"
        );
        assert_eq!(safe(r#"{"a":"é 東"}"#, 80), r#"{"a":"é 東"}"#);
    }

    #[test]
    fn long_text_is_cut_where_it_says() {
        assert_eq!(safe("abcdef", 6), "abcdef");
        assert_eq!(safe("abcdefg", 6), "abcde…");
        assert_eq!(safe("東東東", 5), "東東…");
        assert_eq!(safe("\u{1b}\u{1b}", 7), "\\u{1b}…");
        assert_eq!(safe("ab", 1), "…");
        assert_eq!(safe("ab", 0), "");
    }

    proptest! {
        #[test]
        fn nothing_that_acts_gets_through(text in any::<String>(), columns in 0usize..40) {
            let safe = safe(&text, columns);
            prop_assert!(!safe.chars().any(acts));
            prop_assert!(width(&safe) <= columns);
        }
    }
}
