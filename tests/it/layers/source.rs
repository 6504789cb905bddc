//! herd's source as text, without what isn't code. It knows no rule.

#![expect(clippy::unwrap_used, reason = "what helps a test is a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One source file, as module path and code without comments, strings and tests.
pub(super) struct Module {
    pub(super) path: String,
    pub(super) code: String,
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

pub(super) fn modules() -> Vec<Module> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let texts: BTreeMap<String, String> = files
        .iter()
        .map(|file| {
            let name = file.strip_prefix(&src).unwrap().with_extension("");
            let path = name.iter().map(|s| s.to_str().unwrap()).collect::<Vec<_>>();
            (path.join("::"), std::fs::read_to_string(file).unwrap())
        })
        .collect();
    let tests: BTreeSet<String> = texts
        .iter()
        .flat_map(|(path, text)| test_modules(text).map(move |name| child(path, name)))
        .collect();
    texts
        .iter()
        .filter(|(path, _)| !tests.iter().any(|test| inside(path, test)))
        .map(|(path, text)| Module {
            path: path.clone(),
            code: code(text),
        })
        .collect()
}

fn child(parent: &str, name: &str) -> String {
    match parent {
        "lib" | "main" => name.to_owned(),
        parent => format!("{parent}::{name}"),
    }
}

/// Whether a module is another one or lies in it.
pub(super) fn inside(path: &str, outer: &str) -> bool {
    path == outer
        || path
            .strip_prefix(outer)
            .is_some_and(|rest| rest.starts_with("::"))
}

/// Modules that exist for tests only: `#[cfg(test)] mod name;`.
fn test_modules(text: &str) -> impl Iterator<Item = &str> {
    text.split("#[cfg(test)]").skip(1).filter_map(|after| {
        let line = after.trim_start().lines().next()?;
        line.rsplit_once("mod ")?.1.strip_suffix(';')
    })
}

/// The text without comments, string contents and inline test modules, which by custom end their file.
pub(super) fn code(text: &str) -> String {
    let bare = bare(text);
    let end = bare
        .match_indices("#[cfg(test)]")
        .map(|(at, _)| at)
        .find(|at| {
            bare[*at..]
                .lines()
                .nth(1)
                .is_some_and(|line| line.trim_end().ends_with("mod tests {"))
        });
    bare[..end.unwrap_or(bare.len())].to_owned()
}

fn bare(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if rest.starts_with("r\"") || rest.starts_with("r#") {
            raw_string(rest)
        } else if c == '"' {
            string(rest)
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            rest[1..].find('\'').map_or(rest.len(), |at| at + 2)
        } else {
            0
        };
        if skip > 0 {
            out.push_str(if c == '/' { " " } else { "\"\"" });
            rest = &rest[skip..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// The length of a string literal.
fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a raw string literal; 0 where it is a raw identifier.
fn raw_string(rest: &str) -> usize {
    let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
    if !rest[1 + hashes..].starts_with('"') {
        return 0;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let body = hashes + 2;
    rest[body..]
        .find(&close)
        .map_or(rest.len(), |at| body + at + close.len())
}
