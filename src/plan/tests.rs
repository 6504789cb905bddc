//! Plans of scenarios that differ from a small one in a few words.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::client::tests::scenario;
use crate::profile::Spec;
use crate::scenario::Credentials;

fn plan(change: impl FnOnce(&mut Scenario)) -> Result<Plan, Error> {
    let mut s = scenario("ws://127.0.0.1:{port}/live?after={after}");
    change(&mut s);
    Plan::new(&s, &[8080])
}

fn refusal(change: impl FnOnce(&mut Scenario)) -> String {
    let error = plan(change).unwrap_err();
    assert!(matches!(error, Error::Usage(_)));
    error.to_string()
}

#[test]
fn the_words_of_a_dial_come_from_the_templates() {
    let plan = plan(|s| {
        s.connect.headers = vec![
            "X-Client: c{client}".into(),
            "Last-Event-ID: {after}".into(),
        ];
    })
    .unwrap();
    let call = plan.call(ClientId(3), 0, Some("a/b"), &[]).unwrap();
    assert_eq!(call.url.as_str(), "ws://127.0.0.1:8080/live?after=a%2Fb");
    let headers: HashMap<_, _> = call.headers.into_iter().collect();
    assert_eq!(headers["X-Client"], "c3");
    assert_eq!(headers["Last-Event-ID"], "a/b");
}

const DIALECT: &str = r#"
path = "/socket/"
subprotocols = ["b", "a"]
[query]
EIO = "4"
since = "{cursor}"
[headers]
X-Cursor = "{cursor}"
X-Kind = "profile"
[[frame]]
is = "event"
[event]
id = "/id"
"#;

fn dialect(url: &str, headers: &[&str], cursor: Option<&str>) -> (String, Vec<(String, String)>) {
    let plan = plan(|s| {
        s.connect.profile = Spec::parse(DIALECT).unwrap();
        s.target.url = url.into();
        s.connect.headers = headers.iter().map(|line| (*line).to_owned()).collect();
    });
    let call = plan.unwrap().call(ClientId(1), 0, cursor, &[]).unwrap();
    (call.url.into(), call.headers)
}

#[test]
fn the_profile_adds_what_the_user_did_not_say() {
    let line = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let (url, headers) = dialect("ws://h", &[], None);
    assert_eq!(url, "ws://h/socket/?EIO=4");
    let offered = line("Sec-WebSocket-Protocol", "b, a");
    assert_eq!(headers, [line("X-Kind", "profile"), offered]);
    let (url, headers) = dialect("ws://h/?a=1", &["x-kind: own"], Some("7/8"));
    assert_eq!(url, "ws://h/socket/?a=1&EIO=4&since=7%2F8");
    assert_eq!(
        headers[..2],
        [line("x-kind", "own"), line("X-Cursor", "7/8")]
    );
}

#[test]
fn the_users_url_keeps_precedence() {
    for (url, expected) in [
        ("ws://h/own?EIO=3", "ws://h/own?EIO=3&since=7"),
        ("ws://h/own?from={after}", "ws://h/own?from=7&EIO=4"),
        ("ws://h/own/{cursor}", "ws://h/own/7?EIO=4"),
    ] {
        assert_eq!(dialect(url, &[], Some("7")).0, expected, "{url}");
    }
}

#[test]
fn what_can_not_work_is_refused_before_the_run() {
    for (url, word) in [
        ("http://h/", "ws://"),
        ("h:1", "ws://"),
        ("ws://", "no URL"),
        ("ws://h/{env:HERD_TEST_NOT_SET}", "HERD_TEST_NOT_SET"),
    ] {
        let text = refusal(|s| s.target.url = url.into());
        assert!(text.contains(word), "{url}: {text}");
    }
    for (line, word) in [
        ("no colon", "Name: value"),
        ("a b: c", "Name: value"),
        ("Sec-WebSocket-Key: x", "handshake itself"),
        ("X: a\u{1}b", "control character"),
    ] {
        let text = refusal(|s| s.connect.headers = vec![line.into()]);
        assert!(text.contains(word), "{line}: {text}");
    }
}

fn authorization(url: &str, change: impl FnOnce(&mut Scenario)) -> Result<String, String> {
    let plan = plan(|s| {
        s.target.url = url.into();
        change(s);
    });
    let call = plan
        .map_err(|e| e.to_string())?
        .call(ClientId(2), 0, None, &[])?;
    assert!(call.url.username().is_empty() && call.url.password().is_none());
    let mut found = call
        .headers
        .into_iter()
        .filter(|(n, _)| n == "Authorization");
    let value = found.next().map(|(_, value)| value).unwrap_or_default();
    assert_eq!(found.next(), None);
    Ok(value)
}

#[test]
fn a_client_says_once_who_it_is() {
    let user =
        |s: &mut Scenario| s.connect.credentials = Some(Credentials::User("u:p{client}".into()));
    let bearer =
        |s: &mut Scenario| s.connect.credentials = Some(Credentials::Bearer("t-{n}".into()));
    let alone = |s: &mut Scenario| s.connect.credentials = Some(Credentials::User("u".into()));
    let basic = crate::secrets::basic;
    assert_eq!(authorization("wss://h/", user).unwrap(), basic("u:p2"));
    assert_eq!(authorization("wss://h/", bearer).unwrap(), "Bearer t-1");
    assert_eq!(authorization("ws://h/", alone).unwrap(), basic("u:"));
    assert_eq!(authorization("ws://h/", |_| {}).unwrap(), "");
    assert_eq!(
        authorization("ws://a%40b:c%3Ad{client}@h/", |_| {}).unwrap(),
        basic("a@b:c:d2")
    );
    let header = |s: &mut Scenario| s.connect.headers = vec!["authorization: x".into()];
    for twice in [
        authorization("ws://a:b@h/", user),
        authorization("ws://a:b@h/", header),
        authorization("ws://h/", |s| {
            user(s);
            header(s);
        }),
    ] {
        assert!(twice.unwrap_err().contains("told twice"));
    }
}

#[test]
fn subprotocols_are_offered_in_one_header() {
    let plan = plan(|s| s.connect.subprotocols = vec!["a".into(), "b".into()]).unwrap();
    let headers = plan.call(ClientId(1), 0, None, &[]).unwrap().headers;
    assert_eq!(headers, [("Sec-WebSocket-Protocol".into(), "a, b".into())]);
}

#[test]
fn given_addresses_are_used_in_turn_by_each_shard() {
    let ips: Vec<IpAddr> = vec![[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
    let shard = plan(|s| {
        s.clients = 8;
        s.shard = Shard { index: 2, of: 2 };
        s.connect.source_ips.clone_from(&ips);
    })
    .unwrap();
    let used: Vec<_> = shard.clients().filter_map(|c| shard.source(c)).collect();
    assert_eq!(used, [ips[0], ips[1], ips[0], ips[1]]);
}

#[test]
fn many_clients_of_a_loopback_target_are_spread_over_addresses() {
    let many = plan(|s| s.clients = 20_001).unwrap();
    let at = |k| many.source(ClientId(k)).unwrap().to_string();
    assert_eq!(
        [at(1), at(10_000), at(10_001), at(20_001)],
        ["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.3"]
    );
    assert_eq!(plan(|_| {}).unwrap().source(ClientId(1)), None);
    let remote = plan(|s| {
        s.clients = 20_001;
        s.target.url = "ws://10.0.0.1/".into();
    });
    assert_eq!(remote.unwrap().source(ClientId(20_001)), None);
}

#[test]
fn the_ramp_is_even_over_all_shards() {
    let plan = plan(|s| {
        s.clients = 4;
        s.connect.ramp = Duration::from_secs(2);
    })
    .unwrap();
    let due: Vec<_> = (1..=4)
        .map(|k| plan.first_due(ClientId(k)).as_millis())
        .collect();
    assert_eq!(due, [0, 500, 1000, 1500]);
}

proptest! {
    #[test]
    fn every_client_belongs_to_exactly_one_shard(clients in 1u32..500, of in 1u32..9) {
        let mut all: Vec<_> = (1..=of)
            .flat_map(|index| {
                plan(|s| (s.clients, s.shard) = (clients, Shard { index, of })).unwrap().clients()
            })
            .collect();
        all.sort();
        prop_assert_eq!(all, (1..=clients).map(ClientId).collect::<Vec<_>>());
    }
}
