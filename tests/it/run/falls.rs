//! Several falls in one outage, and several servers: rolled one after another, falling again and again, slow to start.

use std::collections::BTreeSet;

use herd::history::file::read_all;
use herd::history::{Entry, History};

use super::{QUICK, Stage, outcome};

/// [`QUICK`] with 300 clients, these lines in `[target]` and these in `[outage]`.
fn scenario(target: &str, outage: &str) -> String {
    QUICK
        .replace("clients = 24", "clients = 300")
        .replace(
            "[outage]\n",
            &format!("[target]\n{target}\n[outage]\n{outage}\n"),
        )
        .replace("quiet-period = \"500ms\"\ncommand-limit = \"1s\"\n", "")
}

const ROLLING: &str = "trigger = \"rolling\"\npause = \"1s\"";

fn history(stage: &Stage) -> History {
    read_all(&[stage.path("out/history.herd")]).unwrap()
}

#[test]
fn several_falls_pass_where_the_servers_are_right() {
    let all = [
        ("servers = 3", ROLLING),
        ("", "falls = 3\nup = \"1500ms\""),
        ("slow-start = \"503 2s\"", ""),
        ("slow-start = \"hang 2s\"", ""),
    ];
    for (target, outage) in all {
        let (stage, ended) = Stage::run_unless_busy(&scenario(target, outage), &[]);
        ended.with(0).says(&["PASS"]);
        let summary = stage.summary();
        assert_eq!(
            outcome(&summary, "exactly-once"),
            "pass",
            "{target}{outage}"
        );
        let single = outage.is_empty();
        let waves = summary["outages"][0]["waves"].as_array().unwrap().len();
        assert_eq!(waves, if single { 1 } else { 3 }, "{target}{outage}");
        let returns: usize = history(&stage)
            .clients
            .iter()
            .map(|c| c.sessions.len() - 1)
            .sum();
        assert_eq!(returns > 300, !single, "some are cut more than once");
        stage.assert_empty();
    }
}

/// A defect of one server is seen at exactly the clients that resumed there.
#[test]
fn a_defect_of_one_of_three_servers_shows_where_clients_resumed_there_and_nowhere_else() {
    let target = "servers = 3\ndefects = [\"duplicate-on-resume@2\"]";
    let (stage, ended) = Stage::run_unless_busy(&scenario(target, ROLLING), &[]);
    ended.with(1).says(&["FAIL", "exactly-once"]);
    let history = history(&stage);
    let (mut twice, mut there) = (BTreeSet::new(), BTreeSet::new());
    for client in &history.clients {
        let mut first = vec![None; client.sessions.len()];
        for entry in client.entries(&history) {
            if let Entry::Receipt(receipt) = entry {
                first[receipt.session].get_or_insert(receipt.event);
            }
        }
        for (n, session) in client.sessions.iter().enumerate() {
            let resumed = session.resumed_from.filter(|_| first[n].is_some());
            if resumed.is_some() && first[n] == resumed {
                twice.insert((client.id, n));
            }
            if resumed.is_some() && client.attempts[session.attempt].target == 1 {
                there.insert((client.id, n));
            }
        }
    }
    assert!(there.len() > 10, "{there:?}");
    assert_eq!(twice, there);
    stage.assert_empty();
}
