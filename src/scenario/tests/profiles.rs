//! Which profile a scenario comes to, what it brings with it, and what of it is refused.

use super::*;
use crate::profile::{ProfileName, Spec};

fn name(toml: &str) -> String {
    loaded(toml).connect.profile_name().to_owned()
}

#[test]
fn the_targets_scheme_picks_the_profile() {
    for (toml, expected) in [
        ("", "after"),
        ("[target]\nurl = \"ws://h\"", "after"),
        ("[target]\nurl = \"wss://h\"", "after"),
        ("[target]\nurl = \"http://h/events\"", "sse"),
        ("[target]\nurl = \"HTTPS://h/events\"", "sse"),
        ("[target]\nserver-cmd = \"x\"", "after"),
        (
            "[target]\nurl = \"ws://h\"\n[connect]\nprofile = \"socketio\"",
            "socketio",
        ),
        ("[profile]\nbase = \"resume\"\ntimeout = \"1s\"", "resume"),
        (
            "[target]\nurl = \"ws://h\"\n[profile]\nevent.id = \"/id\"\n[[profile.frame]]\nis = \"event\"",
            "custom",
        ),
    ] {
        assert_eq!(name(toml), expected, "{toml}");
    }
}

#[test]
fn herds_own_server_is_reached_in_its_dialects() {
    let url = |profile: &str| {
        loaded(&format!("[connect]\nprofile = \"{profile}\""))
            .target
            .url
    };
    assert_eq!(
        url("sse"),
        "http://127.0.0.1:{port}/v1/events?client={client}"
    );
    assert_eq!(
        url("resume"),
        "ws://127.0.0.1:{port}/v1/resume?client={client}"
    );
    let said = refused("\n[connect]\nprofile = \"socketio\"");
    assert_eq!(
        said,
        "deploy.toml:3: connect.profile: herd's own server doesn't speak socketio; it speaks after, sse and resume. \
         Name the server to test with --target or --server-cmd"
    );
}

#[test]
fn a_supervised_server_is_reached_over_the_profiles_transport() {
    let at = |rest: &str| {
        loaded(&format!("[target]\nserver-cmd = \"x\"\n{rest}"))
            .target
            .url
    };
    assert_eq!(
        at("[connect]\nprofile = \"sse\""),
        "http://127.0.0.1:{port}/"
    );
    let path = "[profile]\nname = \"mine\"\npath = \"/live\"\nevent.id = \"/id\"\n[[profile.frame]]\nis = \"event\"";
    assert_eq!(at(path), "ws://127.0.0.1:{port}/live");
}

const OWN: &str = r#"
[target]
url = "ws://h/{sid|url}"

[connect]
headers = ["X-Session: {sid}", "X-Key: hush"]

[profile]
name = "mine"
ids = "integer"
duplicates = "on-resume"

[profile.query]
token = "hush"
key = "{env:KEY}"

[[profile.open]]
send = 'hello {client}'
expect = { exists = "/sid" }
capture = { sid = "/sid" }

[[profile.frame]]
is = "event"

[profile.event]
id = "/id"
"#;

#[test]
fn a_profile_of_the_users_own_is_stored_without_its_secrets_and_loads_again() {
    let own = OWN.replace("{env:KEY}", "{client}");
    let scenario = loaded(&own);
    let said = Scenario {
        implied: Vec::new(),
        ..scenario.clone()
    };
    assert_eq!(again(&scenario), said, "{}", scenario.to_toml());
    assert_eq!(scenario.connect.ids, IdKind::Integer);
    let stored = scenario.masked().to_toml();
    assert!(!stored.contains("hush"), "{stored}");
    assert!(stored.contains("{sid|url}") && stored.contains("X-Session: {sid}"));
    assert!(load(&stored).is_ok(), "{:?}", load(&stored));
    assert_eq!(
        scenario.connect.profile.duplicates,
        crate::history::Duplicates::OnResume
    );
}

#[test]
fn a_built_in_profile_is_stored_by_its_name() {
    let scenario = loaded("[connect]\nprofile = \"sse\"");
    assert_eq!(scenario.connect.profile, Spec::builtin(ProfileName::Sse));
    let stored = scenario.masked().to_toml();
    assert!(stored.contains("profile = \"sse\"") && !stored.contains("[profile]"));
    assert_eq!(again(&scenario), scenario);
}

#[test]
fn a_mistake_in_a_profile_is_refused_with_its_line() {
    for (toml, place, word) in [
        (
            "[target]\nurl = \"ws://h\"\n[profile]\nbase = \"after\"\n\n[[profile.frame]]\nis = \"event\"\nwhen = { raw = \"(\" }",
            "deploy.toml:8",
            "profile.frame[1].when.raw",
        ),
        (
            "[connect]\nprofile = \"sse\"\n[profile]\nbase = \"after\"",
            "deploy.toml:2: connect.profile: contradicts profile.base (deploy.toml:4)",
            "one base",
        ),
        (
            "\n[profile]\nbase = \"afte\"",
            "deploy.toml:2: profile",
            "afte",
        ),
        (
            "\n[profile]\nbase = \"after\"\nfram = 1",
            "deploy.toml:2: profile",
            "fram",
        ),
    ] {
        let said = refused(toml);
        assert!(said.starts_with(place) && said.contains(word), "{said}");
    }
}

#[test]
fn a_flag_names_a_whole_profile() {
    let scenario = with("[profile]\nbase = \"resume\"\ntimeout = \"1s\"", |draft| {
        draft.profile = None;
        lay(
            &mut draft.connect.profile,
            "--profile",
            Some(ProfileName::Sse),
        );
    });
    assert_eq!(
        scenario.unwrap().connect.profile,
        Spec::builtin(ProfileName::Sse)
    );
}

#[test]
fn the_profiles_recipe_fills_what_a_bare_host_leaves_open() {
    let recipe = "[profile]\nbase = \"after\"\nname = \"mine\"\n[profile.publish]\npath = \"/api/publish\"\n\
                  body = '{\"data\":{payload}}'\nanswer-id = \"/result/offset\"\nidempotent = true\n\
                  headers = { X-API-Key = \"{env:KEY}\" }\n";
    let bare = loaded(&format!(
        "[target]\nurl = \"ws://h\"\n[publish]\nurl = \"http://h:1/\"\nheaders = [\"x-api-key: own\"]\n{recipe}"
    ));
    let Via::Http { url, headers } = &bare.publish.via else {
        panic!("{:?}", bare.publish.via);
    };
    assert_eq!(url, "http://h:1/api/publish");
    assert_eq!(*headers, ["x-api-key: own"]);
    assert_eq!(bare.publish.body, "{\"data\":{payload}}");
    assert_eq!(bare.publish.answer_id, "/result/offset");
    assert!(bare.publish.idempotent);
    assert!(
        bare.implied
            .iter()
            .any(|line| line.contains("POST http://h:1/api/publish"))
    );
    assert_eq!(again(&bare).publish, bare.publish);

    let started = loaded(&format!("[target]\nserver-cmd = \"x\"\n{recipe}"));
    let Via::Http { url, headers } = &started.publish.via else {
        panic!("{:?}", started.publish.via);
    };
    assert_eq!(url, "http://127.0.0.1:{port}/api/publish");
    assert_eq!(*headers, ["X-API-Key: {env:KEY}"]);

    let own = loaded(&format!(
        "[target]\nurl = \"ws://h\"\n[publish]\nurl = \"http://h:1/mine\"\n{recipe}"
    ));
    assert_eq!(own.publish.body, "{payload}");
    let remote = loaded(&format!("[target]\nurl = \"ws://h\"\n{recipe}"));
    assert_eq!(remote.publish.via, Via::Observe);
}

#[test]
fn a_column_needs_its_file_and_a_file_its_column() {
    let url = "[target]\nurl = \"ws://h/?t={col:token}\"\n";
    assert_eq!(
        refused(url),
        "deploy.toml:2: target.url: {col:token} is a column of a file that isn't named; name it with \
         connect.clients-file (--clients-file)"
    );
    let file = "[connect]\nclients-file = \"tokens.csv\"\n";
    let scenario = loaded(&format!("{url}{file}"));
    assert_eq!(scenario.connect.clients_file, Some("tokens.csv".into()));
    assert!(scenario.masked().to_toml().contains("{col:token}"));
    let bearer = refused("[target]\nurl = \"ws://h\"\n[connect]\nbearer = \"{col:token}\"");
    assert!(bearer.contains("{col:token}"), "{bearer}");
    let flag = |draft: &mut Draft| {
        lay(
            &mut draft.connect.clients_file,
            "--clients-file",
            Some("tokens.csv".into()),
        );
    };
    let said = with("[target]\nurl = \"ws://h\"", flag).unwrap_err();
    assert!(said.starts_with("--clients-file: nothing asks"), "{said}");
}
