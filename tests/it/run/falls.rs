//! Several falls in one outage, and several servers: rolled one after another, falling again and again, slow to start.

use std::collections::BTreeSet;

use herd::history::file::read_all;
use herd::history::{Entry, History};

use super::{QUICK, Stage, outcome, together};

/// [`QUICK`] with so many clients, these lines in `[target]` and these in `[outage]`.
fn scenario(clients: u32, target: &str, outage: &str) -> String {
    QUICK
        .replace("clients = 24", &format!("clients = {clients}"))
        .replace(
            "[outage]\n",
            &format!("[target]\n{target}\n[outage]\n{outage}\n"),
        )
        .replace("quiet-period = \"500ms\"\ncommand-limit = \"1s\"\n", "")
}

const ROLLING: &str = "trigger = \"rolling\"\npause = \"1s\"";
const CRASH_LOOP: &str = "falls = 3\nup = \"1500ms\"";

fn history(stage: &Stage) -> History {
    read_all(&[stage.path("out/history.herd")]).unwrap()
}

#[test]
fn several_falls_pass_where_the_servers_are_right() {
    let all = [
        ("servers = 3", ROLLING),
        ("", CRASH_LOOP),
        ("slow-start = \"503 2s\"", ""),
        ("slow-start = \"hang 2s\"", ""),
    ];
    for (target, outage) in all {
        let (stage, ended) = Stage::run_unless_busy(&scenario(300, target, outage), &[]);
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
    let (stage, ended) = Stage::run_unless_busy(&scenario(300, target, ROLLING), &[]);
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

/// What is wrong with the delivery, or with the policy, of each kind of fall.
const WRONG: [(&str, &str, &str, &str); 6] = [
    ("defects = [\"lose-on-resume\"]", CRASH_LOOP, HONEST, "lost"),
    ("", CRASH_LOOP, ORDERLY_LATER, "(fall 3)"),
    (
        "slow-start = \"503 1s\"\ndefects = [\"duplicate-on-resume\"]",
        "",
        HONEST,
        "duplicated",
    ),
    (
        "slow-start = \"hang 1s\"",
        "",
        "preset = \"fixed\"\ndelay = \"500ms\"",
        "opened within",
    ),
    (
        "servers = 3\ndefects = [\"lose-on-resume\"]",
        ROLLING,
        HONEST,
        "lost",
    ),
    (
        "servers = 3",
        ROLLING,
        "preset = \"immediate\"",
        "dialled within",
    ),
];

const HONEST: &str = "preset = \"full-jitter\"\nbase = \"2s\"\ncap = \"8s\"";

/// Draws its first two waits and no more, and forgets no try: the first falls are honest, and the final recovery is a
/// stampede.
const ORDERLY_LATER: &str = "kind = \"exponential\"\nfirst = [\"0s..2s\", \"0s..2s\"]\nbase = \"500ms\"\n\
                             factor = 1\ncap = \"500ms\"\njitter = \"none\"\nreset = \"60s\"";

#[test]
fn what_is_wrong_in_several_falls_and_slow_starts_is_found() {
    together(WRONG.map(|(target, outage, policy, word)| {
        move || {
            let check = match target.contains("defects") {
                true => "exactly-once",
                false => "reconnect-spread",
            };
            let text = scenario(60, target, outage).replace(HONEST, policy);
            let (stage, ended) = Stage::run_unless_busy(&text, &[]);
            ended.with(1).says(&["FAIL", check, word]);
            let summary = stage.summary();
            for other in ["exactly-once", "reconnect-spread"] {
                let fails = outcome(&summary, other) == "fail";
                assert_eq!(fails, other == check, "{target}{outage}: {other}");
            }
            stage.assert_empty();
        }
    }));
}

/// Where clients go is the pick's to say: by turns, anywhere, or always to the same server.
#[test]
fn clients_go_where_the_pick_says() {
    together(["round-robin", "random", "sticky"].map(|pick| {
        move || {
            let target = format!("servers = 3\npick = \"{pick}\"");
            // How the clients come back is not the question.
            let (stage, ended) = Stage::run_unless_busy(&scenario(60, &target, ""), &[]);
            ended.with(0);
            let mut dials = [0; 3];
            let (mut same, mut next, mut all) = (0, 0, 0);
            for client in &history(&stage).clients {
                let went: Vec<_> = client.attempts.iter().map(|a| a.target).collect();
                went.iter()
                    .for_each(|target| dials[usize::from(*target)] += 1);
                for pair in went.windows(2) {
                    all += 1;
                    same += usize::from(pair[0] == pair[1]);
                    next += usize::from(pair[1] == (pair[0] + 1) % 3);
                }
            }
            let told = format!("{pick}: {dials:?}, {same} and {next} of {all}");
            assert!(all >= 60 && dials.iter().all(|n| n * 6 > all), "{told}");
            match pick {
                "round-robin" => assert_eq!(next, all, "{told}"),
                "sticky" => assert_eq!(same, all, "{told}"),
                _ => assert!(same > 0 && next > 0 && same + next < all, "{told}"),
            }
            stage.assert_empty();
        }
    }));
}
