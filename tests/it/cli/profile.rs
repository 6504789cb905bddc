//! `herd profile check` from outside.

use std::path::Path;

use super::{herd, refused, stdout};

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const TICKER: &str = r#"
    [connect]
    id = "/n"
    [profile]
    base = "resume"
    open = []
"#;

#[test]
fn a_profile_is_tried_on_recorded_frames() {
    let dir = tempfile::tempdir().unwrap();
    let profile = write(dir.path(), "ticker.toml", TICKER);
    let right = write(
        dir.path(),
        "right.txt",
        "S> {\"n\":41}\n{\"type\":\"caught-up\"}\n",
    );
    let text = stdout(&["profile", "check", &profile, "--frames", &right]);
    assert!(
        text.contains("event, id \"41\"") && text.contains("caught up"),
        "{text}"
    );
    assert!(text.ends_with("2 frames were read, 0 were not\n"), "{text}");
    for (frames, last) in [
        ("{\"id\":41}\n", "0 frames were read, 1 were not\n"),
        ("", "0 frames were read, 0 were not\n"),
    ] {
        let sample = write(dir.path(), "wrong.txt", frames);
        let output = herd(&["profile", "check", &profile, "--frames", &sample]);
        assert_eq!(output.status.code(), Some(3), "{frames}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.ends_with(last), "{text}");
    }
}

#[test]
fn a_builtin_profile_needs_no_file() {
    let text = stdout(&["profile", "check", "socketio"]);
    assert!(
        text.contains("another pid") && text.contains("text:/-1"),
        "{text}"
    );
}

#[test]
fn what_is_wrong_with_a_profile_is_said_with_its_key() {
    let dir = tempfile::tempdir().unwrap();
    for (text, wanted) in [
        (
            "[profile]\nbase = \"sse\"\npath = \"x\"",
            "profile.path: a path begins with /",
        ),
        ("[profile]\nbase = \"see\"", "base: unknown variant `see`"),
        ("[profile]\nfarme = []", "unknown field `farme`"),
        ("clients = 5", "it has no [profile] table"),
        ("profile = 5", "profile is no table"),
        ("[profile]\nname = \"a", ":2: "),
    ] {
        let file = write(dir.path(), "wrong.toml", text);
        let said = refused(&["profile", "check", &file]);
        assert!(
            said.starts_with(&file) && said.contains(wanted),
            "{text}: {said}"
        );
    }
    let said = refused(&["profile", "check", "/nowhere/at-all.toml"]);
    assert!(said.contains("built-in profile"), "{said}");
}

#[test]
fn profiles_are_listed_with_what_they_do() {
    let text = stdout(&["list", "profiles"]);
    for wanted in [
        "nestjs-ws",
        "resume: query after",
        "resume: header Last-Event-ID",
        "id: /1/id, cursor text:/-1",
        "reset marker: a frame, another pid",
        "caught-up marker: yes",
        "tested against: herd's reference server",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}
