//! Values of each client's own, such as tokens: a CSV file whose row k belongs to client k.
//!
//! It is read once, before the run, and only the columns that some template names are kept. They are secrets as a rule, so
//! nothing here can be shown, and no message holds a value.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::Error;
use crate::history::ClientId;
use crate::template::Row;

/// The columns that are asked for, in the order of their names.
#[derive(Clone, Default)]
pub(super) struct Columns {
    names: Vec<Box<str>>,
    /// Row by row.
    values: Vec<Option<Box<str>>>,
    /// Every value's hash, to know it again in what a server says; a second copy of all of them would cost too much.
    known: HashSet<u64>,
    /// The values' lengths, the longest first.
    lengths: Vec<usize>,
}

/// A shorter value would hide half of every text, and protects nothing.
const SHORTEST: usize = 6;

impl Columns {
    /// Reads the file for this many clients. `wanted` are the columns' names; an empty cell is a value that is unset.
    ///
    /// # Errors
    /// [`Error::Usage`] where the file can't be read, lacks a column or has fewer rows than clients.
    pub(super) fn read(file: &Path, wanted: &[&str], clients: u32) -> Result<Self, Error> {
        let bad = |what: &str| Error::Usage(format!("{}: {what}", file.display()));
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_path(file)
            .map_err(|e| bad(&format!("{}; name a readable CSV file", reason(&e))))?;
        let header = reader
            .headers()
            .map_err(|e| bad(&format!("{}; begin with a row of names", reason(&e))))?;
        let mut places = Vec::with_capacity(wanted.len());
        for name in wanted {
            let place = header.iter().position(|column| column == *name);
            // The names that there are aren't shown: a file without a row of names has a client's values in their place.
            places.push(place.ok_or_else(|| {
                bad(&format!(
                    "no column {name:?}; name it in the file's first row"
                ))
            })?);
        }
        let mut columns = Self {
            names: wanted.iter().map(|name| Box::from(*name)).collect(),
            values: Vec::new(),
            known: HashSet::new(),
            lengths: Vec::new(),
        };
        let mut rows = 0;
        let mut record = csv::StringRecord::new();
        while rows < clients {
            let more = reader.read_record(&mut record).map_err(|e| {
                bad(&format!(
                    "{}; give each client a row of all columns",
                    reason(&e)
                ))
            })?;
            if !more {
                return Err(bad(&format!(
                    "{rows} rows for {clients} clients; row k is client k's, so add rows or take fewer clients"
                )));
            }
            let cells = places.iter().map(|place| record.get(*place));
            columns
                .values
                .extend(cells.map(|cell| cell.filter(|cell| !cell.is_empty()).map(Box::from)));
            rows += 1;
        }
        columns.remember();
        Ok(columns)
    }

    fn remember(&mut self) {
        let values = self.values.iter().flatten();
        let mut lengths = BTreeSet::new();
        for value in values.filter(|value| value.len() >= SHORTEST) {
            self.known.insert(xxh3_64(value.as_bytes()));
            lengths.insert(value.len());
        }
        self.lengths = lengths.into_iter().rev().collect();
    }

    /// The text without any client's values: what one client is told may be another one's. Its time is that of the text's
    /// length times the number of different lengths of values.
    pub(super) fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let longest = |rest: &str| {
            let known = |length: &&usize| {
                let value = rest.as_bytes().get(..**length);
                value.is_some_and(|value| self.known.contains(&xxh3_64(value)))
            };
            self.lengths.iter().find(known).copied()
        };
        let (mut shown, mut kept, mut at) = (String::new(), 0, 0);
        while at < text.len() && !self.lengths.is_empty() {
            match longest(&text[at..]).filter(|length| text.is_char_boundary(at + length)) {
                Some(length) => {
                    shown = shown + &text[kept..at] + "***";
                    at += length;
                    kept = at;
                }
                None => at += text[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        match kept {
            0 => Cow::Borrowed(text),
            _ => Cow::Owned(shown + &text[kept..]),
        }
    }

    /// A client's row.
    pub(super) fn of(&self, client: ClientId) -> Row<'_> {
        let width = self.names.len();
        let from = (client.0 as usize - 1) * width;
        Row {
            names: &self.names,
            values: self.values.get(from..from + width).unwrap_or_default(),
        }
    }
}

/// What the parser says, without what it read.
fn reason(error: &csv::Error) -> String {
    let line = error.position().map(csv::Position::line);
    let what = match error.kind() {
        csv::ErrorKind::Io(e) => return format!("can't be read: {e}"),
        csv::ErrorKind::Utf8 { .. } => "not UTF-8",
        csv::ErrorKind::UnequalLengths { .. } => {
            "a row has another number of columns than the first"
        }
        _ => "not CSV",
    };
    line.map_or_else(|| what.to_owned(), |line| format!("line {line}: {what}"))
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.names.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, wanted: &[&str], clients: u32) -> Result<Columns, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Columns::read(file.path(), wanted, clients).map_err(|e| e.to_string())
    }

    #[test]
    fn row_k_belongs_to_client_k() {
        let text = "user,token,room\r\nann,t-1,a\r\nbob,\"t,2\",\r\n";
        let columns = read(text, &["token", "room"], 2).unwrap();
        assert_eq!(
            columns.of(ClientId(1)).values,
            [Some("t-1".into()), Some("a".into())]
        );
        assert_eq!(columns.of(ClientId(2)).values, [Some("t,2".into()), None]);
        assert_eq!(format!("{columns:?}"), "[\"token\", \"room\"]");
        assert!(Columns::default().of(ClientId(7)).values.is_empty());
    }

    #[test]
    fn any_clients_value_is_hidden_in_what_a_server_says() {
        let text = "token,room\ntoken-1,a\ntoken-one,a\ntokén-2,hall\n";
        let columns = read(text, &["token", "room"], 3).unwrap();
        for (said, shown) in [
            ("no token-1!", "no ***!"),
            ("token-onetoken-1", "******"),
            ("é tokén-2 in hall a", "é *** in hall a"),
            ("token-3", "token-3"),
            ("", ""),
        ] {
            assert_eq!(columns.hide(said), shown, "{said}");
        }
        assert_eq!(Columns::default().hide("token-1"), "token-1");
    }

    #[test]
    fn what_is_missing_is_named_and_no_value_shown() {
        for (text, wanted, word) in [
            ("s3cret,token\nann,x\n", "tok", "no column \"tok\""),
            ("token\ns3cret\n", "token", "1 rows for 2 clients"),
            ("user,token\nann,s3cret\ns3cret\n", "token", "line 3"),
            ("", "token", "no column"),
        ] {
            let said = read(text, &[wanted], 2).unwrap_err();
            assert!(said.contains(word), "{said}");
            assert!(!said.contains("s3cret"), "{said}");
        }
        let nowhere = Columns::read(Path::new("/nowhere/c.csv"), &[], 1).unwrap_err();
        assert!(nowhere.to_string().contains("/nowhere/c.csv"));
    }
}
