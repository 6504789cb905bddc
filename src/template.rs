//! Text with holes, such as a client's URL: `{cursor}` (`{after}` is the same), `{client}`, `{n}`, `{port}`, `{env:NAME}`,
//! `{file:PATH}`, `{col:NAME}` of the clients' file, and names that whoever compiles it knows. `{name|json}` is filled in as a JSON string, `{name|url}`
//! percent-encoded, wherever it stands.
//!
//! A template is compiled once, before the run: a variable or file that is missing is found then. It may hold secrets
//! from then on, so it is never shown. It knows nothing of URLs, clients or sockets.

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_encode};

use crate::error::Error;

/// Everything but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A compiled template.
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Hole(Hole, Form),
    /// A column of the clients' file.
    Column(Box<str>, Form),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hole {
    Cursor,
    Client,
    N,
    Port,
    /// The name's place among those given at the compilation.
    Named(usize),
}

/// How a hole asks to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As the place wants it.
    Plain,
    Json,
    Url,
}

/// What is filled in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Values<'a> {
    /// The cursor, where there is one.
    pub cursor: Option<&'a str>,
    /// The client's number, from 1.
    pub client: u32,
    /// The supervised server's port; none leaves `{port}` as it stands.
    pub port: Option<u16>,
    /// What the names hold that were given at the compilation, in their order; one that is missing is unset.
    pub named: &'a [Option<Box<str>>],
    /// The client's own row of a file; a column that isn't in it leaves its hole as it stands.
    pub row: Row<'a>,
}

/// A row of a file of values, with the names of its columns. The values are secrets as a rule.
#[derive(Clone, Copy, Default)]
pub struct Row<'a> {
    /// The columns' names.
    pub names: &'a [Box<str>],
    /// Their values in the same order; one that is missing is unset.
    pub values: &'a [Option<Box<str>>],
}

impl Row<'_> {
    /// A column's place.
    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| **known == *name)
    }
}

impl fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.names.fmt(f)
    }
}

/// Where the text goes, which decides how a server's text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A URL: every byte but RFC 3986's unreserved ones is percent-encoded.
    Url,
    /// A header's value: as it is, but control characters are percent-encoded.
    Header,
    /// A frame or a body: as it is.
    Text,
}

impl Template {
    /// Compiles a text. Braces that hold none of the known names are left alone.
    ///
    /// # Errors
    /// [`Error::Usage`] naming the environment variable or the file that can't be read.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::compile(text, &[])
    }

    /// Compiles a text that may hold these names too.
    ///
    /// # Errors
    /// As of [`Template::parse`].
    pub fn compile(text: &str, names: &[&str]) -> Result<Self, Error> {
        Self::parse_with(text, names, |name| std::env::var(name).ok())
    }

    fn parse_with(
        text: &str,
        names: &[&str],
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some(open) = rest.find('{') {
            literal.push_str(&rest[..open]);
            rest = &rest[open..];
            let hole = rest[1..].split_once('}').map(|(hole, _)| hole);
            let Some(part) = hole.map_or(Ok(None), |hole| part(hole, names, &env))? else {
                literal.push('{');
                rest = &rest[1..];
                continue;
            };
            match part {
                Part::Text(text) => literal.push_str(&text),
                part => {
                    flush(&mut parts, &mut literal);
                    parts.push(part);
                }
            }
            rest = &rest[hole.map_or(0, str::len) + 2..];
        }
        literal.push_str(rest);
        flush(&mut parts, &mut literal);
        Ok(Self { parts })
    }

    /// Fills it in; what is unset leaves nothing, but for the port, whose hole stays visible.
    #[must_use]
    pub fn expand(&self, values: &Values<'_>, place: Place) -> String {
        self.fill(values, place).0
    }

    /// Fills it in; none where something that stands in it is unset.
    #[must_use]
    pub fn expand_whole(&self, values: &Values<'_>, place: Place) -> Option<String> {
        let (text, whole) = self.fill(values, place);
        whole.then_some(text)
    }

    fn fill(&self, values: &Values<'_>, place_of: Place) -> (String, bool) {
        let (mut text, mut whole) = (String::new(), true);
        for part in &self.parts {
            let (hole, form) = match part {
                Part::Text(literal) => {
                    text.push_str(literal);
                    continue;
                }
                Part::Column(name, form) => {
                    let Some(place) = values.row.place(name) else {
                        text.extend(["{col:", name, "}"]);
                        continue;
                    };
                    let value = values.row.values.get(place).and_then(Option::as_deref);
                    whole &= value.is_some();
                    write(&mut text, value.unwrap_or_default(), *form, place_of);
                    continue;
                }
                Part::Hole(hole, form) => (*hole, *form),
            };
            match hole {
                Hole::Client => text.push_str(&values.client.to_string()),
                Hole::N => text.push_str(&values.client.saturating_sub(1).to_string()),
                Hole::Port => match values.port {
                    Some(port) => text.push_str(&port.to_string()),
                    None => text.push_str("{port}"),
                },
                Hole::Cursor | Hole::Named(_) => {
                    let value = match hole {
                        Hole::Named(place) => values.named.get(place).and_then(Option::as_deref),
                        _ => values.cursor,
                    };
                    whole &= value.is_some();
                    write(&mut text, value.unwrap_or_default(), form, place_of);
                }
            }
        }
        (text, whole)
    }
}

/// Writes a server's text so that it can't become more than a value of its place.
fn write(text: &mut String, value: &str, form: Form, place: Place) {
    match (form, place) {
        (Form::Json, _) => text.push_str(&serde_json::Value::from(value).to_string()),
        (Form::Url, _) | (Form::Plain, Place::Url) => {
            text.extend(percent_encode(value.as_bytes(), RESERVED));
        }
        // The encoder would always encode what is beyond ASCII, which a header may hold.
        (Form::Plain, Place::Header) if value.chars().any(char::is_control) => {
            text.extend(percent_encode(value.as_bytes(), CONTROLS));
        }
        (Form::Plain, Place::Header | Place::Text) => text.push_str(value),
    }
}

fn flush(parts: &mut Vec<Part>, literal: &mut String) {
    if !literal.is_empty() {
        parts.push(Part::Text(std::mem::take(literal).into()));
    }
}

fn part(
    hole: &str,
    names: &[&str],
    env: impl Fn(&str) -> Option<String>,
) -> Result<Option<Part>, Error> {
    let (name, form) = match hole.split_once('|') {
        Some((name, "json")) => (name, Form::Json),
        Some((name, "url")) => (name, Form::Url),
        _ => (hole, Form::Plain),
    };
    let known = match name {
        "after" | "cursor" => Some(Hole::Cursor),
        "client" => Some(Hole::Client),
        "n" => Some(Hole::N),
        "port" => Some(Hole::Port),
        _ => names.iter().position(|n| *n == name).map(Hole::Named),
    };
    Ok(Some(match known {
        Some(hole) => Part::Hole(hole, form),
        None => match hole.split_once(':') {
            Some(("col", _)) if name.len() > "col:".len() => {
                Part::Column(name["col:".len()..].into(), form)
            }
            Some(("env", name)) => match env(name) {
                Some(value) => Part::Text(value.into()),
                None => {
                    return Err(Error::Usage(format!(
                        "the environment variable {name:?} of {{{hole}}} is not set (or not UTF-8); set it"
                    )));
                }
            },
            Some(("file", path)) => match std::fs::read_to_string(path) {
                // Editors and `echo` end a file with a line break that no secret holds.
                Ok(text) => Part::Text(text.trim_end_matches(['\r', '\n']).into()),
                Err(e) => {
                    return Err(Error::Usage(format!(
                        "can't read the file of {{{hole}}}: {e}; name a file that holds the text"
                    )));
                }
            },
            _ => return Ok(None),
        },
    }))
}

impl fmt::Debug for Template {
    /// Shows the holes only: what stands around them may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            f.write_str(match part {
                Part::Text(_) => "..",
                Part::Column(..) => "{col}",
                Part::Hole(Hole::Cursor, _) => "{cursor}",
                Part::Hole(Hole::Client, _) => "{client}",
                Part::Hole(Hole::N, _) => "{n}",
                Part::Hole(Hole::Port, _) => "{port}",
                Part::Hole(Hole::Named(_), _) => "{name}",
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
