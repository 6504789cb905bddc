//! The house rules that the compiler can't see: who may import whom, who may print, every `select!` is biased, no clock
//! but the run's. Reads the source as text; what a comment, a string or a test says doesn't count.

mod source;

use std::collections::BTreeSet;

use source::{Module, code, inside, modules};

/// What a part may import besides itself and `error`.
enum May {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}
use May::{AllBut, Only};

/// The import table of the design. A part that isn't here fails the test, so that it gets its line.
const TABLE: &[(&str, May)] = &[
    ("error", Only(&[])),
    ("backoff", Only(&[])),
    ("history", Only(&[])),
    ("clock", Only(&["history"])),
    ("template", Only(&[])),
    ("secrets", Only(&[])),
    ("transport", Only(&["history", "secrets", "clock"])),
    (
        "profile",
        Only(&[
            "transport",
            "template",
            "history::IdKind",
            "history::Duplicates",
        ]),
    ),
    ("client::machine", Only(&["backoff", "profile", "history"])),
    (
        "client",
        AllBut(&[
            "cli", "run", "server", "check", "report", "target", "trigger", "publish", "simulate",
        ]),
    ),
    (
        "scenario",
        Only(&[
            "backoff",
            "history",
            "profile",
            "report::Format",
            "secrets",
            "server::defect",
            "server::slow",
            "transport::tls",
        ]),
    ),
    (
        "plan",
        Only(&[
            "scenario", "profile", "backoff", "history", "secrets", "template",
        ]),
    ),
    ("check", Only(&["history", "backoff"])),
    ("report", Only(&["check", "history"])),
    // The oracle must not share what it judges.
    ("server", Only(&["check"])),
    (
        "publish",
        AllBut(&[
            "cli", "run", "server", "check", "report", "client", "simulate",
        ]),
    ),
    (
        "target",
        AllBut(&[
            "cli", "run", "server", "check", "report", "client", "simulate", "trigger", "publish",
        ]),
    ),
    (
        "trigger",
        AllBut(&[
            "cli", "run", "server", "check", "report", "client", "simulate", "publish",
        ]),
    ),
    (
        "simulate",
        Only(&[
            "backoff",
            "history",
            "profile",
            "plan",
            "scenario",
            "client::machine",
            "client::ending",
            "server::defect",
        ]),
    ),
    ("run", AllBut(&["cli", "server"])),
    (
        "probe",
        AllBut(&["cli", "server", "check", "report", "simulate", "trigger"]),
    ),
    ("cli", AllBut(&["run", "client", "target", "trigger"])),
];

/// Who may write to stdout and stderr. A guard's stdout is no terminal: it is the pipe on which it reports to herd. Progress
/// goes to stderr, as bars or as plain lines.
const PRINTERS: [&str; 3] = ["main", "target::guard", "run::progress"];

/// Who may ask the system for the time: the run's clock, and once, for the header of the history, where a run starts.
const CLOCKS: [(&str, &str); 2] = [
    ("clock", "Instant::now"),
    ("run::prepare", "SystemTime::now"),
];

/// Everything of herd's that a module names: full paths such as `history::Elapsed`.
fn imports(module: &Module) -> BTreeSet<String> {
    let segments: Vec<&str> = module.path.split("::").collect();
    let mut found = BTreeSet::new();
    for (at, _) in module.code.match_indices("crate::") {
        if !module.code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            paths("", &module.code[at + "crate::".len()..], &mut found);
        }
    }
    for (at, _) in module.code.match_indices("super::") {
        if module.code[..at].ends_with("super::") {
            continue;
        }
        let mut rest = &module.code[at..];
        let mut up = 0;
        while let Some(after) = rest.strip_prefix("super::") {
            (rest, up) = (after, up + 1);
        }
        let base = &segments[..segments.len().saturating_sub(up)];
        let mut named = BTreeSet::new();
        paths(&base.join("::"), rest, &mut named);
        // In a module within a file one `super` less counts; what then isn't a part of herd is the file's own.
        let part = |path: &String| TABLE.iter().any(|(name, _)| inside(path, name));
        found.extend(named.into_iter().filter(part));
    }
    found
}

/// The paths of a use tree: `a::b`, `{a::b, c}`.
fn paths(prefix: &str, tree: &str, found: &mut BTreeSet<String>) {
    let join = |name: &str| match prefix {
        "" => name.to_owned(),
        prefix => format!("{prefix}::{name}"),
    };
    if let Some(group) = tree.strip_prefix('{') {
        let mut depth = 0;
        let mut start = 0;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    paths(prefix, group[start..at].trim(), found);
                    start = at + 1;
                    if c == '}' {
                        return;
                    }
                }
                _ => {}
            }
        }
        return;
    }
    let end = tree
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(tree.len());
    if end == 0 {
        return;
    }
    let path = join(&tree[..end]);
    match tree[end..].strip_prefix("::") {
        Some(rest) => paths(&path, rest, found),
        None => {
            found.insert(path);
        }
    }
}

/// What breaks the import table.
fn broken_layers(modules: &[Module]) -> Vec<String> {
    let mut broken = Vec::new();
    for module in modules {
        if ["lib", "main"].contains(&module.path.as_str()) {
            continue;
        }
        let row = TABLE.iter().filter(|(name, _)| inside(&module.path, name));
        let Some((part, may)) = row.max_by_key(|(name, _)| name.len()) else {
            broken.push(format!("{} has no line in the import table", module.path));
            continue;
        };
        let top = part.split("::").next().unwrap_or(part);
        for import in imports(module) {
            let among = |names: &[&str]| names.iter().any(|name| inside(&import, name));
            let own = inside(&import, part) || (*part == top && inside(&import, top));
            let allowed = own
                || inside(&import, "error")
                || match may {
                    Only(names) => among(names),
                    AllBut(names) => !among(names),
                };
            if !allowed {
                broken.push(format!("{} imports {import}", module.path));
            }
        }
    }
    broken
}

fn module(path: &str, text: &str) -> Module {
    Module {
        path: path.into(),
        code: code(text),
    }
}

#[test]
fn nobody_imports_what_the_design_forbids() {
    assert_eq!(broken_layers(&modules()), Vec::<String>::new());
}

#[test]
fn a_forbidden_import_is_seen_in_every_form() {
    let cases = [
        ("backoff", "use crate::transport::Frame;", 1),
        ("backoff::presets", "use super::super::transport::Frame;", 1),
        (
            "history::file",
            "use crate::{error::Error, backoff::{Delay, Reset}};",
            2,
        ),
        ("report::csv", "fn f() { crate::client::dial() }", 1),
        ("server::live", "pub(crate) use crate::client;", 1),
        ("check", "use crate::cli::Command;", 1),
        ("client::machine", "use super::dial;", 1),
        ("client", "use crate::cli;", 1),
        ("scenario", "use crate::report::{Format, Summary};", 1),
        ("newcomer", "", 1),
        (
            "report",
            "let s = \"\\\"\"; let c = '\"'; let r = r#\"x\"y\"#; use crate::client;",
            1,
        ),
    ];
    for (path, text, count) in cases {
        let broken = broken_layers(&[module(path, text)]);
        assert_eq!(broken.len(), count, "{path}: {text}: {broken:?}");
    }
}

#[test]
fn what_is_allowed_or_only_said_is_no_import() {
    let cases = [
        (
            "backoff",
            "/// See [`crate::transport::Frame`].\n// use crate::client;\n/* crate::cli */",
        ),
        (
            "backoff",
            "const S: &str = \"crate::client \\\" crate::cli\"; const R: &str = r#\"crate::cli\"#;",
        ),
        (
            "backoff::presets",
            "use super::{Backoff, Delay};\nuse crate::backoff::Reset;",
        ),
        (
            "backoff",
            "fn f() {}\n#[cfg(test)]\nmod tests {\n use crate::client;\n}",
        ),
        (
            "history::file",
            "use crate::error::Error; use super::Event;",
        ),
        (
            "client",
            "use machine::Machine; use crate::client::machine::Input;",
        ),
        ("report", "use crate::check::{Verdict, Outcome};"),
        ("run", "use crate::{client, server_of_others};"),
    ];
    for (path, text) in cases {
        let broken = broken_layers(&[module(path, text)]);
        assert_eq!(broken, Vec::<String>::new(), "{path}: {text}");
    }
}

/// Files, and what they may not say.
fn saying(modules: &[Module], but: &[&str], words: &[&str]) -> Vec<String> {
    modules
        .iter()
        .filter(|module| !but.contains(&module.path.as_str()))
        .flat_map(|module| {
            let said = words.iter().filter(|word| module.code.contains(**word));
            said.map(|word| format!("{} says {word}", module.path))
        })
        .collect()
}

const PRINTING: [&str; 6] = [
    "println!",
    "eprintln!",
    " print!",
    " eprint!",
    "stdout()",
    "stderr()",
];

#[test]
fn only_those_who_may_print_do() {
    assert_eq!(
        saying(&modules(), &PRINTERS, &PRINTING),
        Vec::<String>::new()
    );
    let planted = [module("run", "fn f() { eprintln!(); }")];
    assert!(!saying(&planted, &PRINTERS, &PRINTING).is_empty());
}

/// Who reads a clock that isn't theirs.
fn clock_readers(modules: &[Module]) -> Vec<String> {
    let said = |(owner, word): (&str, &str)| saying(modules, &[owner], &[word]);
    CLOCKS.into_iter().flat_map(said).collect()
}

#[test]
fn only_the_clock_reads_the_time() {
    assert_eq!(clock_readers(&modules()), Vec::<String>::new());
    let planted = [module(
        "run",
        "let t = (Instant::now(), SystemTime::now());",
    )];
    assert_eq!(clock_readers(&planted).len(), 2);
}

/// Without `biased;` ready branches are taken at random, and the same seed gives another history.
fn unbiased(modules: &[Module]) -> Vec<String> {
    let mut found = Vec::new();
    for module in modules {
        for (at, word) in module.code.match_indices("select! {") {
            if !module.code[at + word.len()..]
                .trim_start()
                .starts_with("biased;")
            {
                found.push(module.path.clone());
            }
        }
    }
    found
}

#[test]
fn every_select_is_biased() {
    assert_eq!(unbiased(&modules()), Vec::<String>::new());
    let planted =
        "tokio::select! { a = f() => {} } tokio::select! {\n // why\n biased; a = f() => {} }";
    assert_eq!(unbiased(&[module("run", planted)]), ["run"]);
}
