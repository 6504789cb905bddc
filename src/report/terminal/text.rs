//! Words, numbers and lines for a page of 80 columns. Nothing here knows what they mean.

use std::time::Duration;

use crate::report::escape::width;

/// Columns of the page.
pub(super) const COLUMNS: usize = 80;

/// Whether the report uses colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI colours.
    Always,
}

/// How a piece of text is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Title,
    Quiet,
    Good,
    Doubtful,
    Bad,
}

impl Tone {
    /// Wraps text in this tone's ANSI sequence.
    pub(super) fn paint(self, colour: Colour, text: &str) -> String {
        let code = match self {
            Self::Plain => return text.into(),
            Self::Title => "1",
            Self::Quiet => "2",
            Self::Good => "32",
            Self::Doubtful => "33",
            Self::Bad => "31",
        };
        match colour {
            Colour::Never => text.into(),
            Colour::Always if text.trim().is_empty() => text.into(),
            Colour::Always => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}

/// A blank at which no line is broken: it keeps a number and its unit together, and is a plain blank on the page.
pub(super) const TIE: char = '\u{a0}';

/// Text with a tone.
pub(super) type Span<'a> = (Tone, &'a str);

/// The page under construction.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    colour: Colour,
}

impl Page {
    pub(super) fn new(colour: Colour) -> Self {
        Self {
            text: String::new(),
            colour,
        }
    }

    /// A line of several tones; blanks at its end are left out.
    pub(super) fn line(&mut self, spans: &[Span<'_>]) {
        let mut spans = spans.to_vec();
        while let Some((_, text)) = spans.last_mut() {
            *text = text.trim_end();
            if !text.is_empty() {
                break;
            }
            spans.pop();
        }
        for (tone, text) in spans {
            self.text += &tone.paint(self.colour, &text.replace(TIE, " "));
        }
        self.text.push('\n');
    }

    pub(super) fn blank(&mut self) {
        self.line(&[]);
    }

    /// A label in the margin and text beside it, wrapped and indented; a label as wide as the margin makes it wider.
    pub(super) fn entry(&mut self, label: Span<'_>, indent: usize, text: Span<'_>) {
        let indent = indent.max(width(label.1) + "  ".len() + " ".len());
        for (n, line) in wrap(text.1, COLUMNS - indent).iter().enumerate() {
            let label = if n == 0 { label } else { (Tone::Plain, "") };
            let margin = format!("{:<indent$}", format!("  {}", label.1));
            self.line(&[(label.0, &margin), (text.0, line)]);
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Breaks text at blanks so that no line is wider than `columns`; a longer word is broken inside.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let wide = width(word);
        let line = lines.last_mut().filter(|line| !line.is_empty());
        match line {
            Some(line) if used + 1 + wide <= columns => {
                line.push(' ');
                line.push_str(word);
                used += 1 + wide;
                continue;
            }
            Some(_) => lines.push(String::new()),
            None => {}
        }
        used = 0;
        for c in word.chars() {
            let wide = width(c.encode_utf8(&mut [0; 4]));
            if used + wide > columns && used > 0 {
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
            used += wide;
        }
    }
    lines
}

/// A count with its thousands apart: `1,000`.
pub(super) fn count(n: impl Into<u64>) -> String {
    let digits = n.into().to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count and its noun: `1 client`, `2 clients`.
pub(super) fn counted(n: impl Into<u64>, noun: &str) -> String {
    let n = n.into();
    let plural = if n == 1 { "" } else { "s" };
    format!("{}{TIE}{noun}{plural}", count(n))
}

/// A count and a word that has no plural: `3 lost`.
pub(super) fn tied(n: impl Into<u64>, word: &str) -> String {
    format!("{}{TIE}{word}", count(n))
}

/// Milliseconds as people read them, three digits: `0.12 ms`, `152 ms`, `1.52 s`, `152 s`.
pub(super) fn ms(ms: f64) -> String {
    if !ms.is_finite() {
        return "?".into();
    }
    let (value, unit) = if ms.abs() < 999.5 {
        (ms, "ms")
    } else {
        (ms / 1e3, "s")
    };
    let size = value.abs();
    let digits = if size < 9.995 {
        2
    } else if size < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.digits$}{TIE}{unit}")
}

/// The same for a duration.
pub(super) fn duration(d: Duration) -> String {
    ms(d.as_secs_f64() * 1e3)
}

/// Bytes as people read them: `86 MB`.
pub(super) fn bytes(n: u64) -> String {
    format!("{:.0}{TIE}MB", n as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_read_easily() {
        let counts = [0u32, 999, 1_000, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        let read: Vec<_> = [0.0, 0.123, 9.996, 152.4, 999.6, 1_523.0, 99_960.0]
            .map(|t| ms(t).replace(TIE, " "))
            .into();
        assert_eq!(
            read,
            [
                "0.00 ms", "0.12 ms", "10.0 ms", "152 ms", "1.00 s", "1.52 s", "100 s"
            ]
        );
    }

    #[test]
    fn a_long_word_is_broken() {
        assert_eq!(wrap("ab cdefgh i", 4), ["ab", "cdef", "gh i"]);
        assert_eq!(wrap("", 4), [""]);
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_nothing_is_lost(text in "[a-z東 ]{0,80}", columns in 2usize..20) {
            let lines = wrap(&text, columns);
            prop_assert!(lines.iter().all(|line| width(line) <= columns));
            let letters = |s: &str| s.replace(' ', "");
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
