//! Text with holes, such as a client's URL: `{after}`, `{client}`, `{n}`, `{port}`, `{env:NAME}`, `{file:PATH}`.
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
    After,
    Client,
    N,
    Port,
}

/// What is filled in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Values<'a> {
    /// The cursor; empty where there is none.
    pub after: &'a str,
    /// The client's number, from 1.
    pub client: u32,
    /// The supervised server's port; none leaves `{port}` as it stands.
    pub port: Option<u16>,
}

/// Where the text goes, which decides how the cursor (a server's text) is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A URL: every byte but RFC 3986's unreserved ones is percent-encoded.
    Url,
    /// A header's value: as it is, but control characters are percent-encoded.
    Header,
}

impl Template {
    /// Compiles a text. Braces that hold none of the known names are left alone.
    ///
    /// # Errors
    /// [`Error::Usage`] naming the environment variable or the file that can't be read.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::parse_with(text, |name| std::env::var(name).ok())
    }

    fn parse_with(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some(open) = rest.find('{') {
            literal.push_str(&rest[..open]);
            rest = &rest[open..];
            let hole = rest[1..].split_once('}').map(|(hole, _)| hole);
            let Some(part) = hole.map_or(Ok(None), |hole| part(hole, &env))? else {
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

    /// Whether the cursor goes into it.
    #[must_use]
    pub fn holds_after(&self) -> bool {
        self.parts.contains(&Part::After)
    }

    /// Fills it in.
    #[must_use]
    pub fn expand(&self, values: &Values<'_>, place: Place) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::After => {
                    let set = match place {
                        Place::Url => RESERVED,
                        Place::Header => CONTROLS,
                    };
                    // A header may hold text beyond ASCII, which the encoder would always encode.
                    match place {
                        Place::Header if !values.after.chars().any(char::is_control) => {
                            text.push_str(values.after);
                        }
                        _ => text.extend(percent_encode(values.after.as_bytes(), set)),
                    }
                }
                Part::Client => text.push_str(&values.client.to_string()),
                Part::N => text.push_str(&values.client.saturating_sub(1).to_string()),
                Part::Port => match values.port {
                    Some(port) => text.push_str(&port.to_string()),
                    None => text.push_str("{port}"),
                },
            }
        }
        text
    }
}

fn flush(parts: &mut Vec<Part>, literal: &mut String) {
    if !literal.is_empty() {
        parts.push(Part::Text(std::mem::take(literal).into()));
    }
}

fn part(hole: &str, env: impl Fn(&str) -> Option<String>) -> Result<Option<Part>, Error> {
    Ok(Some(match hole {
        "after" => Part::After,
        "client" => Part::Client,
        "n" => Part::N,
        "port" => Part::Port,
        _ => match hole.split_once(':') {
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
                Part::After => "{after}",
                Part::Client => "{client}",
                Part::N => "{n}",
                Part::Port => "{port}",
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expand(text: &str, after: &str, place: Place) -> String {
        let values = Values {
            after,
            client: 7,
            port: Some(8080),
        };
        let env = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        Template::parse_with(text, env)
            .unwrap()
            .expand(&values, place)
    }

    #[test]
    fn the_known_holes_are_filled_and_other_braces_left_alone() {
        for (text, expected) in [
            (
                "ws://h:{port}/?c={client}&n={n}&a={after}",
                "ws://h:8080/?c=7&n=6&a=17",
            ),
            ("{env:TOKEN}{after}{", "s3cret17{"),
            ("{}{x}{after", "{}{x}{after"),
            ("{{after}}", "{17}"),
            ("{\"n\":{n}}", "{\"n\":6}"),
            ("", ""),
        ] {
            assert_eq!(expand(text, "17", Place::Url), expected, "{text}");
        }
        let none = Template::parse("ws://h:{port}").unwrap();
        assert_eq!(
            none.expand(&Values::default(), Place::Url),
            "ws://h:{port}",
            "a port that isn't known stays visible"
        );
    }

    #[test]
    fn the_cursor_is_encoded_for_where_it_goes() {
        assert_eq!(
            expand("{after}", "a-b._~/+ &é%", Place::Url),
            "a-b._~%2F%2B%20%26%C3%A9%25"
        );
        assert_eq!(expand("{after}", "a/b é%", Place::Header), "a/b é%");
        assert_eq!(
            expand("{after}", "a\r\nX: y", Place::Header),
            "a%0D%0AX: y",
            "a server's id must not become a header of its own"
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = Template::parse_with("{env:NOT_SET}", |_| None).unwrap_err();
        assert!(error.to_string().contains("NOT_SET"), "{error}");
        let error = Template::parse("{file:/nowhere/at all}").unwrap_err();
        assert!(error.to_string().contains("/nowhere/at all"), "{error}");
        assert!(matches!(error, Error::Usage(_)));
    }

    #[test]
    fn a_file_is_read_without_its_last_line_break_and_never_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, "s3cret\r\n").unwrap();
        let template = Template::parse(&format!("Bearer {{file:{}}}", path.display())).unwrap();
        assert_eq!(
            template.expand(&Values::default(), Place::Header),
            "Bearer s3cret"
        );
        assert_eq!(format!("{template:?}"), "..");
    }

    proptest! {
        #[test]
        fn any_text_compiles_and_holes_apart_comes_back(text in "[a-z{}:]{0,30}") {
            let env = |_: &str| Some(String::new());
            if let Ok(template) = Template::parse_with(&text, env) {
                let expanded = template.expand(&Values::default(), Place::Url);
                if !["{after}", "{client}", "{n}", "{env:", "{file:"].iter().any(|h| text.contains(h)) {
                    prop_assert_eq!(expanded, text);
                }
            }
        }

        #[test]
        fn an_encoded_cursor_decodes_to_itself(after in any::<String>()) {
            let text = expand("{after}", &after, Place::Url);
            prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(&b)));
            let decoded = percent_encoding::percent_decode_str(&text).decode_utf8().unwrap().into_owned();
            prop_assert_eq!(decoded, after);
        }
    }
}
