//! Outages of every kind: what they come to, what is refused, and that what is stored loads to the same.

use std::time::Duration;

use super::*;
use crate::history::{Memory, Remembers};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn outages_follow_one_another_and_one_may_come_several_times() {
    let scenario = loaded(
        "[[outage]]\noutages = 2\ndown = \"2s\"\n[[outage]]\ncut = \"blackhole\"\nshare = \"30%\"\n[[outage]]\nfalls = 3\nup = \"4s\"\nrefresh = 0.1\npersist = false",
    );
    let all: Vec<_> = scenario.each_outage().collect();
    assert_eq!(all.len(), 4);
    assert_eq!(all[1], all[0]);
    assert_eq!((scenario.outage(1), scenario.outage(3)), (all[0], all[2]));
    assert_eq!(all[2].trigger, Trigger::Cut(Cut::Blackhole));
    assert_eq!((all[2].share, all[2].down), (0.3, SECOND));
    assert_eq!((all[3].falls, all[3].up), (3, 4 * SECOND));
    assert_eq!(all[3].refresh, Some((0.1, Memory::Lost)));
    // Nobody would notice a blackhole without one.
    assert_eq!(scenario.heartbeat, Some(Heartbeat::USUAL));
    assert_eq!(scenario.implied.len(), 1, "{:?}", scenario.implied);
}

#[test]
fn a_cut_ends_at_once_or_lasts_as_its_kind_does() {
    let down = |cut: &str| loaded(&format!("[outage]\ncut = \"{cut}\"")).outage(1).down;
    assert_eq!((down("fin"), down("rst")), (Duration::ZERO, Duration::ZERO));
    assert_eq!((down("refuse"), down("blackhole")), (SECOND, SECOND));
    assert_eq!(
        (down("latency"), down("bandwidth")),
        (5 * SECOND, 5 * SECOND)
    );
    let slow = loaded("[outage]\ncut = \"bandwidth\"\nbandwidth = 20\nthen = \"rst\"");
    let then = Then::Rst;
    let wanted = Trigger::Cut(Cut::Bandwidth { bytes: 20, then });
    assert_eq!(slow.outage(1).trigger, wanted);
    assert_eq!(slow.heartbeat, None);
}

#[test]
fn several_targets_are_rolled_one_after_another() {
    let scenario = loaded(
        "[target]\nurls = [\"ws://a/\", \"ws://b/\", \"ws://c/\"]\npick = \"sticky\"\n[outage]\ntrigger = \"rolling\"\ncommand = \"r {target}\"\npause = \"2s\"",
    );
    assert_eq!(scenario.targets(), 3);
    assert_eq!(scenario.target.url, "ws://a/");
    assert_eq!(scenario.target.more_urls, ["ws://b/", "ws://c/"]);
    assert_eq!(scenario.target.pick, Pick::Sticky);
    let Trigger::Rolling { means, pause } = &scenario.outage(1).trigger else {
        panic!("{:?}", scenario.outage(1).trigger);
    };
    assert!(matches!(means, Means::Command { command, .. } if command == "r {target}"));
    assert_eq!(*pause, 2 * SECOND);
    let own = loaded("[target]\nservers = 3\n[outage]\ntrigger = \"rolling\"");
    assert_eq!(own.targets(), 3);
}

#[test]
fn what_clients_are_and_what_must_hold_has_short_forms() {
    let scenario = loaded(
        "[client]\nheartbeat = \"25s/20s\"\nreload = \"http://127.0.0.1:{port}/state\"\n[checks]\nmax-staleness = \"p95 30s\"\ndedupe = [\"everything\", \"last 1000\", \"for 10m\"]",
    );
    assert_eq!(scenario.heartbeat.unwrap().limit(), 45 * SECOND);
    assert_eq!(scenario.checks.max_staleness, Some((95.0, 30 * SECOND)));
    let dedupe = [
        Remembers::Everything,
        Remembers::Last(1000),
        Remembers::For(600 * SECOND),
    ];
    assert_eq!(scenario.checks.dedupe, dedupe);
    let plain = loaded("[client]\nheartbeat = \"5s\"\n[checks]\nmax-staleness = \"10s\"");
    assert_eq!(plain.heartbeat.unwrap().limit(), 10 * SECOND);
    assert_eq!(plain.checks.max_staleness, Some((99.0, 10 * SECOND)));
}

#[test]
fn every_kind_renders_to_toml_that_loads_to_the_same() {
    let files = [
        "[[outage]]\ncut = \"fin\"\nshare = 0.25\n[[outage]]\ncut = \"latency\"\nlatency = \"700ms\"\nthen = \"fin\"",
        "[[outage]]\ncut = \"bandwidth\"\nbandwidth = 9\n[[outage]]\ncut = \"refuse\"\ndown = \"3s\"",
        "[outage]\nfalls = 3\nup = \"2s\"\nrefresh = \"10%\"\npersist = false",
        "[target]\nservers = 3\npick = \"random\"\nstop-signal = \"TERM\"\n[outage]\ntrigger = \"rolling\"\npause = \"1s\"",
        "[target]\nurls = [\"ws://a\", \"ws://b\"]\n[outage]\ntrigger = \"rolling\"\ncommand = \"r\"\ncommand-limit = \"9s\"",
        "[client]\nheartbeat = \"1500ms/2s\"\nreload = \"http://h/s\"\n[checks]\nmax-staleness = \"p50 1s\"\ndedupe = [\"last 3\", \"for 1s\"]",
    ];
    for file in files {
        let scenario = loaded(file);
        let said = Scenario {
            implied: Vec::new(),
            ..scenario.clone()
        };
        assert_eq!(again(&scenario), said, "{file}\n{}", scenario.to_toml());
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_line() {
    let files = [
        "outage = 3",
        "[[outage]]\ndown = \"1s\"\n[[outage]]\ndown = 1",
        "[outage]\ncut = \"rst\"\nshare = \"130%\"",
        "[outage]\ncut = \"rst\"\nshare = 0",
        "clients = 10\n[outage]\ncut = \"rst\"\nshare = \"1%\"",
        "clients = 40\n[outage]\ncut = \"rst\"\nshare = \"99%\"",
        "[outage]\nshare = \"30%\"",
        "[outage]\ncut = \"rst\"\ntrigger = \"child\"",
        "[target]\nurl = \"ws://h\"\n[outage]\ncut = \"rst\"\ncommand = \"r\"",
        "[outage]\ncut = \"rst\"\nlatency = \"1s\"",
        "[outage]\ncut = \"rst\"\nbandwidth = 3",
        "[outage]\ncut = \"rst\"\nthen = \"keep\"",
        "[outage]\ncut = \"bandwidth\"\nbandwidth = 0",
        "[outage]\ncut = \"rst\"\nfalls = 2",
        "[outage]\nfalls = 0",
        "[outage]\npersist = false",
        "[outage]\nrefresh = \"110%\"",
        "[outage]\ntrigger = \"rolling\"",
        "[target]\nurl = \"ws://h\"\n[outage]\ntrigger = \"rolling\"",
        "[target]\nurls = [\"ws://a\", \"ws://b\"]\n[outage]\ntrigger = \"rolling\"",
        "[target]\nservers = 2\n[outage]\ntrigger = \"rolling\"\ncommand = \"r\"",
        "[target]\nurls = [\"ws://a\", \"ws://b\"]\nready = \"http://a/\"\n[outage]\ntrigger = \"rolling\"\ncommand = \"r\"",
        "[target]\nurls = [\"ws://a\", \"wss://b\"]",
        "[target]\nurls = [\"ws://a\", \"b\"]",
        "[target]\nurls = []",
        "[target]\nurls = [\"ws://a\"]\nurl = \"ws://b\"",
        "[target]\nurl = \"ws://h\"\nservers = 2",
        "[target]\nserver-cmd = \"x\"\nurls = [\"ws://a\", \"ws://b\"]",
        "[client]\nheartbeat = \"5s/0s\"",
        "[client]\nreload = \"ws://h\"",
        "[checks]\nmax-staleness = \"p101 3s\"",
        "[checks]\ndedupe = [\"last 0\"]",
    ];
    let said: Vec<String> = files.iter().map(|file| refused(file)).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    deploy.toml:1: outage: invalid type: integer `3`, expected the table [outage], or several [[outage]]
    deploy.toml:4: outage[2].down: 1 has no unit; write a duration with its unit, such as "500ms", "5s" or "10m"
    deploy.toml:3: outage.share: "130%" is not a share; write "0%" to "100%", or 0 to 1 such as 0.75
    deploy.toml:3: outage.share: that is none of 1000 clients; use a larger share
    deploy.toml:4: outage.share: that is none of 10 clients; use a larger share
    deploy.toml:4: outage.share: that is all of 40 clients; use a smaller share, or leave it out
    deploy.toml:2: outage.share: a restart is for everybody; only a cut (outage.cut) takes a share of the clients
    deploy.toml:2: outage.cut: contradicts outage.trigger (deploy.toml:3): one outage has one cause; leave one out, or write another [[outage]]
    deploy.toml:4: outage.cut: contradicts outage.command (deploy.toml:5): one outage has one cause; leave one out, or write another [[outage]]
    deploy.toml:3: outage.latency: it is for cut = "latency"; leave one out
    deploy.toml:3: outage.bandwidth: it is for cut = "bandwidth"; leave one out
    deploy.toml:3: outage.then: it says how a slow time ends; this cut ends the connections itself
    deploy.toml:3: outage.bandwidth: 0 is out of range; use 1 to 4294967295
    deploy.toml:3: outage.falls: only a server that herd restarts can be made to fall again; use trigger = "child"
    deploy.toml:2: outage.falls: 0 is out of range; use 1 to 100
    deploy.toml:2: outage.persist: nobody restarts here; say which share of the clients does with refresh
    deploy.toml:2: outage.refresh: "110%" is not a share; write "0%" to "100%", or 0 to 1 such as 0.75
    deploy.toml:2: outage.trigger: one target can't be restarted one after another; name several (--target again, target.urls), or set target.servers
    deploy.toml:4: outage.trigger: herd can only restart servers that it started; give a command in which {target} is the target's number (--restart-cmd)
    deploy.toml:4: outage.trigger: herd can only restart servers that it started; give a command in which {target} is the target's number (--restart-cmd)
    deploy.toml:4: outage.trigger: herd restarts its own server itself; this is for somebody else's, so name it with --target
    deploy.toml:3: target.ready: one address can't tell which of several targets is away; leave it out: herd asks each by a TCP connect
    deploy.toml:2: target.urls: the targets' schemes differ (ws and wss); all clients speak alike, so use one
    deploy.toml:2: target.urls: not an address: write each like ws://host:port/path
    deploy.toml:2: target.urls: no target; write at least one address
    deploy.toml:2: target.urls: contradicts target.url (deploy.toml:3): both name targets; write all of them into one list
    deploy.toml:3: target.servers: herd runs no server here; name each target (--target again, target.urls)
    deploy.toml:3: target.urls: herd runs this server, and as many as target.servers says; name one address, in which {port} is each one's own
    deploy.toml:2: client.heartbeat: "5s/0s" is not a heartbeat; write the time from ping to ping and how long an answer may take, such as "25s/20s"
    deploy.toml:2: client.reload: not an address; write http://host:port/path
    deploy.toml:2: checks.max-staleness: "p101 3s" is not a staleness; write a limit such as "30s", or with its percentile "p95 30s"
    deploy.toml:2: checks.dedupe: "last 0" is not what a handler remembers; write "everything", "last 1000" or "for 10m"
    "#);
}
