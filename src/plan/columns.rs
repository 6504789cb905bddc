//! Values of each client's own, such as tokens: a CSV file whose row k belongs to client k.
//!
//! It is read once, before the run, and only the columns that some template names are kept. They are secrets as a rule, so
//! nothing here can be shown, and no message holds a value.

use std::fmt;
use std::path::Path;

use crate::error::Error;
use crate::history::ClientId;
use crate::template::Row;

/// The columns that are asked for, in the order of their names.
#[derive(Clone, Default)]
pub(super) struct Columns {
    names: Vec<Box<str>>,
    /// Row by row.
    values: Vec<Option<Box<str>>>,
}

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
        Ok(columns)
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
