//! Every mistake is refused with its key.

use super::*;

/// What is enough for a profile.
const LEAST: &str = "[[frame]]\nis = \"event\"\n[event]\nid = \"/id\"\n";

fn refusal(toml: &str) -> Refusal {
    let compiled = Spec::parse(toml).and_then(|spec| Profile::compile(&spec, &Pointers::default()));
    compiled.expect_err(toml)
}

#[test]
fn mistakes_are_refused_with_key_and_reason() {
    profile(LEAST);
    for (key, head, tail) in [
        ("path", "path = \"live\"", ""),
        ("timeout", "timeout = \"0s\"", ""),
        ("contiguous", "contiguous = true", ""),
        ("subprotocols", "subprotocols = [\"a b\"]", ""),
        ("open[1]", "[[open]]", ""),
        (
            "open[1].otherwise",
            "[[open]]\notherwise = \"x\"\nexpect = { raw = \"x\" }",
            "",
        ),
        (
            "open[1].capture",
            "[[open]]\nsend = \"x\"\ncapture = { a = \"/a\" }",
            "",
        ),
        (
            "open[1].capture.A",
            "[[open]]\nexpect = { raw = \"x\" }\ncapture = { A = \"/a\" }",
            "",
        ),
        (
            "open[1].capture.n",
            "[[open]]\nexpect = { raw = \"x\" }\ncapture = { n = \"/a\" }",
            "",
        ),
        (
            "open[1].capture.a",
            "[[open]]\nexpect = { raw = \"x\" }\ncapture = { a = \"group:g\" }",
            "",
        ),
        (
            "open[1].send",
            "[[open]]\nsend = '{\"pid\":{pid|json}}'",
            "",
        ),
        ("open[1].send", "[[open]]\nsend = '{cursor|xml}'", ""),
        (
            "open[1].expect.raw",
            "[[open]]\nexpect = { raw = \"(\" }",
            "",
        ),
        (
            "open[1].expect.exists",
            "[[open]]\nexpect = { exists = \"a\" }",
            "",
        ),
        (
            "open[1].expect.event",
            "[[open]]\nexpect = { event = \"a\" }",
            "",
        ),
        (
            "open[1].expect.equals./a",
            "[[open]]\nexpect = { equals = { \"/a\" = 1.5 } }",
            "",
        ),
        (
            "open[1].expect.differs.a",
            "[[open]]\nexpect = { differs = { a = 1 } }",
            "",
        ),
        (
            "open[1].expect.matches./a",
            "[[open]]\nexpect = { matches = { \"/a\" = \"[\" } }",
            "",
        ),
        ("query.after", "query = { after = \"{epoch}\" }", ""),
        ("query.a b", "query = { \"a b\" = \"x\" }", ""),
        (
            "headers.X",
            "headers = { X = \"{env:HERD_SURELY_NOT_SET}\" }",
            "",
        ),
        ("decoding.split", "decoding = { split = \"\" }", ""),
        ("decoding.strip", "decoding = { strip = \"^42(.*)\" }", ""),
        ("decoding.each", "decoding = { each = \"x\" }", ""),
        ("decoding.reparse", "decoding = { reparse = \"x\" }", ""),
        (
            "frame[2]",
            "",
            "[[frame]]\nis = \"ignore\"\nwhen = { raw = \"x\" }",
        ),
        ("beat.every", "beat = { send = \"x\" }", ""),
        ("beat.send", "beat = { every = \"5s\" }", ""),
        (
            "beat.every",
            "beat = { send = \"x\", every = \"ping\" }",
            "",
        ),
        ("beat.every", "beat = { send = \"x\", every = \"0s\" }", ""),
        ("beat.dead", "beat = { dead = \"5\" }", ""),
        ("reset.changed", "reset = { changed = \"pid\" }", ""),
        ("reset.header", "reset = { header = \"a b\" }", ""),
        ("status.stop", "status = { stop = \"2xx\" }", ""),
        ("status.reset", "status = { reset = \"2040\" }", ""),
        ("status.stop", "status = { stop = \"0-599\" }", ""),
        ("close.reset", "close = { reset = \"4000-3000\" }", ""),
        ("close.stop", "close = { stop = \"4000-5000\" }", ""),
        ("duplicates", "duplicates = \"marked\"", ""),
        ("decoding.each", "decoding = { each = \"/-2\" }", ""),
        ("open", "transport = \"sse\"\n[[open]]\nsend = \"x\"", ""),
        (
            "beat.send",
            "transport = \"sse\"\nbeat = { send = \"x\", every = \"5s\" }",
            "",
        ),
        (
            "subprotocols",
            "transport = \"sse\"\nsubprotocols = [\"a\"]",
            "",
        ),
    ] {
        let refused = refusal(&format!("{head}\n{LEAST}{tail}"));
        assert_eq!(refused.key, key, "{head}: {refused}");
        assert!(refused.why.len() > 20, "{refused}");
    }
}

#[test]
fn mistakes_in_rules_and_extractors() {
    let event = "[[frame]]\nis = \"event\"\n";
    let id = "[event]\nid = \"/id\"\n";
    for (key, toml) in [
        ("frame", id.to_owned()),
        (
            "frame[1].is",
            format!("[[frame]]\nis = []\nwhen = {{ raw = \"x\" }}\n{event}{id}"),
        ),
        (
            "frame[1].is",
            format!("[[frame]]\nis = [\"event\", \"ignore\"]\n{id}"),
        ),
        (
            "frame[1].is",
            format!("[[frame]]\nis = [\"event\", \"event\"]\n{id}"),
        ),
        ("frame[1].at", format!("[[frame]]\nis = \"batch\"\n{id}")),
        (
            "frame[1].at",
            format!(
                "[[frame]]\nis = \"reset\"\nat = \"/a\"\nwhen = {{ raw = \"x\" }}\n{event}{id}"
            ),
        ),
        ("frame[1].id", format!("{event}id = \"/a\"\n{id}")),
        ("frame[1].cursor", format!("{event}cursor = \"/a\"\n{id}")),
        ("frame[1].why", format!("{event}why = \"/a\"\n{id}")),
        ("frame[1].reply", format!("{event}reply = \"x\"\n{id}")),
        (
            "frame[1].when.raw",
            format!(
                "[[frame]]\nis = \"heartbeat\"\nwhen = {{ exists = \"/ping\" }}\nreply = \"x\"\n{event}{id}"
            ),
        ),
        (
            "frame[1].reply",
            format!(
                "transport = \"sse\"\n[[frame]]\nis = \"heartbeat\"\nwhen = {{ raw = \"x\" }}\nreply = \"x\"\n{event}{id}"
            ),
        ),
        (
            "frame[1].when.kind",
            format!(
                "transport = \"sse\"\n[[frame]]\nis = \"ignore\"\nwhen = {{ kind = \"text\" }}\n{event}{id}"
            ),
        ),
        ("event.id", event.to_owned()),
        ("event.id", format!("{event}[event]\nid = \"sse:id\"\n")),
        ("event.id", format!("{event}[event]\nid = \"group:g\"\n")),
        ("event.id", format!("{event}[event]\nid = \"{{/a\"\n")),
        ("event.seq", format!("{event}[event]\nseq = \"seq\"\n")),
        (
            "event.cursor",
            format!("{event}[event]\nid = \"/id\"\ncursor = [\"id\", \"x\"]\n"),
        ),
        (
            "event.content",
            format!("{event}[event]\nid = \"/id\"\ncontent = \"x\"\n"),
        ),
        // Resume without a cursor.
        (
            "query.after",
            format!("query = {{ after = \"{{cursor}}\" }}\n{event}[event]\nseq = \"/seq\"\n"),
        ),
        (
            "headers.X",
            format!("headers = {{ X = \"{{after|url}}\" }}\n{event}[event]\nseq = \"/seq\"\n"),
        ),
        (
            "open[1].send",
            format!(
                "[[open]]\nsend = \"x\"\notherwise = \"{{cursor}}\"\n{event}[event]\nseq = \"/seq\"\n"
            ),
        ),
        (
            "frame[1].when.on",
            format!(
                "[[frame]]\nis = \"reset\"\nwhen = {{ on = \"resume\" }}\n{event}[event]\nseq = \"/seq\"\n"
            ),
        ),
    ] {
        let refused = refusal(&toml);
        assert_eq!(refused.key, key, "{toml}: {refused}");
    }
    // Without a cursor a profile can still count.
    profile(&format!("{event}[event]\nseq = \"/seq\"\n"));
}

#[test]
fn what_toml_itself_refuses_names_the_word() {
    for (toml, words) in [
        ("[[frame]]\nis = \"evnt\"", &["evnt", "event"][..]),
        ("[[frame]]\nif = \"event\"", &["if", "when"]),
        ("transport = \"http\"", &["http", "sse"]),
        ("timeout = \"10\"", &["unit"]),
        ("is = \"event\"", &["is"]),
        ("[[frame]]\nis = 7", &["text"]),
        (
            "[[frame]]\nis = \"event\"\nwhen = { on = \"second\" }",
            &["second", "resume"],
        ),
        ("ids = \"int\"", &["int", "integer"]),
        // Which of many it is.
        (
            "[[frame]]\nis = \"ignore\"\nwhen = { raw = \"x\" }\n[[frame]]\nis = \"evnt\"",
            &["frame[2]: ", "evnt"],
        ),
        (
            "[[open]]\nsend = \"x\"\n[[open]]\nsay = \"x\"",
            &["open[2]: ", "say"],
        ),
    ] {
        let said = refusal(toml).to_string();
        assert!(
            words.iter().all(|word| said.contains(word)),
            "{toml}: {said}"
        );
    }
}
