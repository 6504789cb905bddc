//! URL templates as text: which placeholders stand in them, and what must be hidden before they are shown or stored.
//!
//! Nothing is expanded here: `{env:..}` and `{file:..}` stay as they were written.

/// What may stand in the clients' words, besides the names that a profile captures.
pub(super) const TARGET: [&str; 8] = [
    "after", "cursor", "client", "n", "port", "env:", "file:", "col:",
];

/// What may stand in the URLs that herd itself calls.
pub(super) const OWN: [&str; 3] = ["port", "env:", "file:"];

/// What a hidden part becomes.
const HIDDEN: &str = "***";

/// A piece of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// With its braces.
    Placeholder(&'a str),
}

/// The placeholders of an environment variable or a file in a template.
pub(super) fn outside_texts(template: &str) -> Vec<&str> {
    let pieces = pieces(template).into_iter();
    let found = pieces.filter_map(|piece| match piece {
        Piece::Placeholder(p) if is(p, "env:") || is(p, "file:") => Some(p),
        _ => None,
    });
    found.collect()
}

/// What stands before the `@` of a URL, and its query's values.
pub(super) fn private_parts(url: &str) -> (Option<&str>, Vec<&str>) {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let path = outside(url, authority, &['/', '?', '#']).unwrap_or(url.len());
    let user = url[authority..path].rfind('@');
    let user = user.map(|at| &url[authority..authority + at]);
    let query = outside(url, path, &['?']).map_or("", |at| &url[at + 1..]);
    let values = query.split('&').filter_map(|pair| pair.split_once('='));
    (user, values.map(|(_, value)| value).collect())
}

/// Cuts a template into its pieces: the innermost braces are placeholders, so that one can stand in JSON; a brace
/// without its other is text.
fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((from, to)) = rest
        .find('}')
        .map(|close| (rest[..close].rfind('{').unwrap_or(close), close + 1))
    {
        if !rest[from..].starts_with('{') {
            pieces.push(Piece::Text(&rest[..to]));
            rest = &rest[to..];
            continue;
        }
        pieces.push(Piece::Text(&rest[..from]));
        pieces.push(Piece::Placeholder(&rest[from..to]));
        rest = &rest[to..];
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// Whether a template holds this placeholder (`"port"`, or `"env:"` for any of its kind).
pub(super) fn holds(template: &str, name: &str) -> bool {
    pieces(template)
        .iter()
        .any(|piece| matches!(piece, Piece::Placeholder(p) if is(p, name)))
}

fn is(placeholder: &str, name: &str) -> bool {
    let inner = inner(placeholder);
    if name.ends_with(':') {
        inner.len() > name.len() && inner.starts_with(name)
    } else {
        inner == name
    }
}

/// What stands in the braces, without the form that it asks for.
fn inner(placeholder: &str) -> &str {
    let inner = &placeholder[1..placeholder.len() - 1];
    let forms = ["|json", "|url"];
    let plain = forms.iter().find_map(|form| inner.strip_suffix(form));
    plain.unwrap_or(inner)
}

/// The first thing in braces (or brace) that none of `known` names.
pub(super) fn stranger<'a>(template: &'a str, known: &[&str]) -> Option<&'a str> {
    pieces(template).into_iter().find_map(|piece| match piece {
        Piece::Text(text) => text
            .contains(['{', '}'])
            .then_some(text.trim_start_matches(|c| c != '{' && c != '}')),
        Piece::Placeholder(p) => (!known.iter().any(|name| is(p, name))).then_some(p),
    })
}

/// The template with every placeholder replaced by something harmless of the right kind, to try whether it is a URL.
pub(super) fn filled(template: &str) -> String {
    pieces(template)
        .into_iter()
        .map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Placeholder(_) => "1",
        })
        .collect()
}

/// Whether a template resumes by itself.
pub(crate) fn resumes(template: &str) -> bool {
    holds(template, "after") || holds(template, "cursor")
}

/// The columns of a clients' file that a template asks for.
pub(crate) fn columns(template: &str) -> impl Iterator<Item = &str> {
    pieces(template)
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Placeholder(p) if is(p, "col:") => Some(&inner(p)["col:".len()..]),
            _ => None,
        })
}

/// The first of `wanted` from `start` on that doesn't stand in braces.
fn outside(template: &str, start: usize, wanted: &[char]) -> Option<usize> {
    let mut inside = false;
    template[start..].char_indices().find_map(|(at, c)| {
        match c {
            '{' => inside = true,
            '}' => inside = false,
            _ => {}
        }
        (!inside && wanted.contains(&c)).then_some(start + at)
    })
}

/// A URL as it may be shown and stored: userinfo and query values hidden, placeholders kept. `names` are placeholders that
/// the profile knows.
pub(crate) fn masked(url: &str, names: &[&str]) -> String {
    let Some(authority) = url.find("://").map(|at| at + 3) else {
        return url.to_owned();
    };
    let path = outside(url, authority, &['/', '?', '#']).unwrap_or(url.len());
    let host = url[authority..path]
        .rfind('@')
        .map_or(authority, |at| authority + at);
    let query = outside(url, path, &['?', '#']).unwrap_or(url.len());
    let mut shown = url[..authority].to_owned();
    if host > authority {
        shown += &hidden(&url[authority..host], names);
    }
    shown += &url[host..query];
    for part in url[query..].split_inclusive(['?', '&', '#']) {
        let (part, end) = match part.char_indices().last() {
            Some((at, '?' | '&' | '#')) => part.split_at(at),
            _ => (part, ""),
        };
        match part.split_once('=') {
            Some((key, value)) => shown = format!("{shown}{key}={}", hidden(value, names)),
            None => shown += &hidden(part, names),
        }
        shown += end;
    }
    shown
}

/// A header line as it may be shown and stored: its value hidden, placeholders kept.
pub(crate) fn masked_header(line: &str, names: &[&str]) -> String {
    match line.split_once(':') {
        Some((name, value)) => format!("{name}: {}", hidden(value.trim(), names)),
        None => hidden(line, names),
    }
}

/// The text with everything but its placeholders hidden. A literal beside a placeholder is hidden too: a token's prefix
/// is part of the token.
pub(crate) fn hidden(text: &str, names: &[&str]) -> String {
    let mut shown = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Placeholder(p) if TARGET.iter().chain(names).any(|name| is(p, name)) => {
                shown += p;
            }
            Piece::Text("") => {}
            Piece::Text(_) | Piece::Placeholder(_) if shown.ends_with(HIDDEN) => {}
            Piece::Text(_) | Piece::Placeholder(_) => shown += HIDDEN,
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn userinfo_and_query_values_are_hidden_but_placeholders_stay() {
        let cases = [
            ("ws://h/live?after={after}", "ws://h/live?after={after}"),
            ("ws://u:p@h:1/l", "ws://***@h:1/l"),
            (
                "ws://h/?token=abc&after={after}&k",
                "ws://h/?token=***&after={after}&***",
            ),
            (
                "ws://h/?t={env:T}&u=x{env:U}",
                "ws://h/?t={env:T}&u=***{env:U}",
            ),
            ("ws://u:p@x@h?a=b=c", "ws://***@h?a=***"),
            ("ws://{file:/a@b}@h/", "ws://{file:/a@b}@h/"),
            ("ws://h/#a=b", "ws://h/#a=***"),
            ("ws://h/?a=1?b=2", "ws://h/?a=***?b=***"),
            ("no url", "no url"),
        ];
        for (url, wanted) in cases {
            assert_eq!(masked(url, &[]), wanted, "{url}");
            assert_eq!(masked(wanted, &[]), wanted, "masking twice");
        }
        assert_eq!(
            masked_header("Authorization: Bearer abc", &[]),
            "Authorization: ***"
        );
        assert_eq!(
            masked_header("Authorization: {env:TOKEN}", &[]),
            "Authorization: {env:TOKEN}"
        );
        let json = r#"X: {"key":"abc","more":{"a":"{env:A}"}}"#;
        assert_eq!(masked_header(json, &[]), "X: ***{env:A}***");
        assert_eq!(masked_header("X: {abc}", &[]), "X: ***");
        assert_eq!(masked_header("X: {abc}", &["abc"]), "X: {abc}");
        let kept = "ws://h/?s={sid|url}&c={cursor|json}&t={col:token}";
        assert_eq!(masked(kept, &["sid"]), kept);
    }

    #[test]
    fn a_placeholder_can_stand_in_json() {
        assert!(holds(r#"{"n":{seq},"m":{}}"#, "seq"));
        assert!(!holds(r#"{"n":"{seq"}"#, "seq"));
    }

    #[test]
    fn it_is_known_what_a_template_asks_for() {
        assert!(resumes("ws://h/?c={cursor|url}") && resumes("{after}"));
        assert!(!resumes("ws://h/?after=1"));
        let asked: Vec<_> = columns("ws://{col:a}/{n}{col:b|json}").collect();
        assert_eq!(asked, ["a", "b"]);
    }

    #[test]
    fn unknown_placeholders_are_found() {
        assert_eq!(stranger("ws://h/{after}{n}{env:A}", &TARGET), None);
        assert_eq!(stranger("ws://h/{afer}", &TARGET), Some("{afer}"));
        assert_eq!(stranger("ws://h/{env:}", &TARGET), Some("{env:}"));
        assert_eq!(stranger("ws://h/x{after", &TARGET), Some("{after"));
        assert_eq!(stranger("ws://h/a}b", &TARGET), Some("}"));
        assert_eq!(stranger("http://h/{after}", &OWN), Some("{after}"));
    }
}
