//! Outages of all kinds, as the conductor hears of them.

use std::time::Duration;

use herd::clock::Clock;
use herd::error::Error;
use herd::history::{Elapsed, Mark};
use herd::scenario::StopSignal;
use herd::target::{Restart, Supervised};
use herd::trigger::{By, Pull, Remote, Step, Trigger};
use tokio::sync::watch;

use super::{Stage, UP, clock, is_alive, kill, number};

async fn next(trigger: &mut Trigger) -> Step {
    tokio::time::timeout(Duration::from_secs(60), trigger.next())
        .await
        .expect("a step in time")
}

/// The marks up to `Ready`, or the first step that is none; a command's end is passed over.
async fn marks(trigger: &mut Trigger) -> (Vec<(Elapsed, Mark)>, Option<Step>) {
    let mut all = Vec::new();
    loop {
        match next(trigger).await {
            Step::Over | Step::Started { .. } => {}
            Step::Killed { at, grace } => {
                let text = format!("killed after {} ms", grace.as_millis()).into();
                all.push((at, Mark::Note { text }));
            }
            Step::Mark(at, mark) => {
                let ready = matches!(mark, Mark::Ready { .. });
                all.push((at, mark));
                if ready {
                    return (all, None);
                }
            }
            other => return (all, Some(other)),
        }
    }
}

fn names(marks: &[(Elapsed, Mark)]) -> Vec<String> {
    marks
        .iter()
        .map(|(_, m)| match m {
            Mark::Trigger { outage } => format!("trigger {outage}"),
            Mark::Gone { outage } => format!("gone {outage}"),
            Mark::Ready { outage } => format!("ready {outage}"),
            Mark::Died { status } => format!("died {status}"),
            Mark::Note { text } if text.starts_with("killed") => "killed".into(),
            Mark::Note { .. } => "note".into(),
            Mark::LastWords { .. } => "last words".into(),
            other => format!("{other:?}"),
        })
        .collect()
}

fn remote(stage: &Stage, clock: Clock) -> (Trigger, watch::Sender<Option<Elapsed>>) {
    let (dropped, mostly_dropped) = watch::channel(None);
    let remote = Remote {
        probes: vec![stage.probe()],
        ready_limit: Duration::from_millis(400),
        mostly_dropped,
    };
    (Trigger::remote(remote, clock), dropped)
}

fn restart(signal: StopSignal, grace: Duration) -> Pull {
    Pull::Restart(Restart {
        signal,
        grace,
        down: Duration::from_millis(30),
    })
}

fn command(stage: &Stage, script: &str) -> By {
    By::Command {
        line: stage.script(script),
        env: Vec::new(),
        limit: Duration::from_secs(60),
        place: stage.place(),
    }
}

/// A server that isn't herd's.
async fn others_server(stage: &Stage) -> tokio::process::Child {
    let child = tokio::process::Command::new("sh")
        .args(["-c", &stage.script(UP)])
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let probe = stage.probe();
    let limit = Duration::from_secs(60);
    probe.wait_ready(clock(), limit).await.unwrap();
    child
}

#[tokio::test]
async fn a_child_is_restarted_twice_and_an_escalation_is_told() {
    let stage = Stage::new();
    let script = "trap '' TERM\necho $$ > pid.new && mv pid.new pid\nwhile :; do sleep 0.02; done";
    let clock = clock();
    let (server, events) = Supervised::start(stage.server(script), clock)
        .await
        .unwrap();
    let grace = Duration::from_millis(50);
    let mut trigger = Trigger::child(vec![(server, events)], clock);
    for outage in 1..=2 {
        trigger.pull(outage, restart(StopSignal::Term, grace));
        let (told, end) = marks(&mut trigger).await;
        assert!(end.is_none(), "{end:?}");
        let expected = [
            format!("trigger {outage}"),
            format!("gone {outage}"),
            "killed".into(),
            format!("ready {outage}"),
        ];
        assert_eq!(names(&told), expected);
        let killed = told[2].0;
        assert!(
            told[0].0 + grace <= killed && killed <= told[1].0,
            "{told:?}"
        );
    }
    trigger.end().await;
    assert!(!is_alive(stage.pid().await));
}

#[tokio::test]
async fn a_child_that_dies_again_is_told_and_its_second_return_is_a_note() {
    let stage = Stage::new();
    let clock = clock();
    let (server, events) = Supervised::start(stage.server(UP), clock).await.unwrap();
    let grace = Duration::from_secs(10);
    let mut trigger = Trigger::child(vec![(server, events)], clock);
    trigger.pull(1, restart(StopSignal::Kill, grace));
    marks(&mut trigger).await;
    kill(stage.pid().await);
    let mut told = Vec::new();
    while names(&told).last().is_none_or(|last| last != "note") {
        if let Step::Mark(at, mark) = next(&mut trigger).await {
            told.push((at, mark));
        }
    }
    assert_eq!(names(&told), ["died SIGKILL", "last words", "note"]);
    trigger.end().await;
}

#[tokio::test]
async fn a_command_restarts_and_what_it_leaves_running_stays() {
    let stage = Stage::new();
    let mut old = others_server(&stage).await;
    let script = "kill -9 $(cat pid); rm pid; sleep 0.1; \
        sleep 1000 & echo $! > left; cp left pid";
    let (mut trigger, _dropped) = remote(&stage, clock());
    let by = Pull::Others(command(&stage, script));
    trigger.pull(1, by);
    let reaped = tokio::spawn(async move { old.wait().await });
    let (told, end) = marks(&mut trigger).await;
    assert!(end.is_none(), "{end:?}");
    assert_eq!(names(&told), ["trigger 1", "gone 1", "ready 1"]);
    trigger.end().await;
    let left = number(&stage.path("left")).unwrap();
    assert!(is_alive(left));
    kill(left);
    reaped.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_command_that_fails_is_broken_and_quoted() {
    let stage = Stage::new();
    let _server = others_server(&stage).await;
    let by = command(&stage, "echo no such unit >&2; exit 5");
    let (mut trigger, _dropped) = remote(&stage, clock());
    let by = Pull::Others(by);
    trigger.pull(1, by);
    let (_, end) = marks(&mut trigger).await;
    let Some(Step::Broken(Error::Broken(why))) = end else {
        panic!("{end:?}");
    };
    assert!(
        why.contains("exit code 5") && why.contains("no such unit"),
        "{why}"
    );
}

#[tokio::test]
async fn a_command_that_hangs_is_killed_with_its_group_and_broken() {
    let stage = Stage::new();
    let _server = others_server(&stage).await;
    let by = By::Command {
        line: stage.script("sleep 1000 & echo $! > left; wait"),
        env: Vec::new(),
        limit: Duration::from_millis(300),
        place: stage.place(),
    };
    let (mut trigger, _dropped) = remote(&stage, clock());
    let by = Pull::Others(by);
    trigger.pull(1, by);
    let (_, end) = marks(&mut trigger).await;
    let Some(Step::Broken(Error::Broken(why))) = end else {
        panic!("{end:?}");
    };
    assert!(why.contains("did not end within 300ms"), "{why}");
    assert!(!is_alive(number(&stage.path("left")).unwrap()));
}

/// `kubectl rollout status` and its like go on after the first answer of the new server.
#[tokio::test]
async fn a_command_that_works_on_tells_when_it_has_ended() {
    let stage = Stage::new();
    let mut old = others_server(&stage).await;
    let script = "kill -9 $(cat pid); rm pid; sleep 0.1; sleep 1000 & echo $! > left; cp left pid; \
        until [ -e go ]; do sleep 0.02; done; touch ended";
    let (mut trigger, _dropped) = remote(&stage, clock());
    let by = Pull::Others(command(&stage, script));
    trigger.pull(1, by);
    let reaped = tokio::spawn(async move { old.wait().await });
    let (told, _) = marks(&mut trigger).await;
    assert_eq!(names(&told), ["trigger 1", "gone 1", "ready 1"]);
    assert!(!stage.path("ended").exists());
    std::fs::write(stage.path("go"), "").unwrap();
    assert!(matches!(next(&mut trigger).await, Step::Over));
    assert!(stage.path("ended").exists());
    trigger.end().await;
    kill(number(&stage.path("left")).unwrap());
    reaped.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_command_that_restarts_nothing_is_no_restart() {
    let stage = Stage::new();
    let _server = others_server(&stage).await;
    let (mut trigger, _dropped) = remote(&stage, clock());
    let by = Pull::Others(command(&stage, "true"));
    trigger.pull(1, by);
    let (told, end) = marks(&mut trigger).await;
    assert_eq!(names(&told), ["trigger 1"]);
    assert!(matches!(end, Some(Step::NoRestart { .. })), "{end:?}");
}

#[tokio::test]
async fn a_target_that_never_returns_is_never_ready() {
    let stage = Stage::new();
    let mut server = others_server(&stage).await;
    let limit = Duration::from_secs(60);
    let (mut trigger, _dropped) = remote(&stage, clock());
    let by = Pull::Others(By::Others { limit });
    trigger.pull(1, by);
    server.kill().await.unwrap();
    let (told, end) = marks(&mut trigger).await;
    assert_eq!(names(&told), ["trigger 1", "gone 1"]);
    assert!(matches!(end, Some(Step::NeverReady { .. })), "{end:?}");
}

#[tokio::test]
async fn waiting_ends_at_its_limit() {
    let stage = Stage::new();
    let _server = others_server(&stage).await;
    let limit = Duration::from_millis(150);
    let (mut trigger, _dropped) = remote(&stage, clock());
    let by = Pull::Others(By::Others { limit });
    trigger.pull(1, by);
    let (told, end) = marks(&mut trigger).await;
    assert_eq!(names(&told), ["trigger 1"]);
    assert!(matches!(end, Some(Step::NoRestart { .. })), "{end:?}");
}

#[tokio::test]
async fn dropped_clients_tell_of_a_restart_that_the_probe_did_not_see() {
    let stage = Stage::new();
    let _server = others_server(&stage).await;
    let clock = clock();
    let limit = Duration::from_secs(60);
    let (mut trigger, dropped) = remote(&stage, clock);
    let by = Pull::Others(By::Others { limit });
    trigger.pull(1, by);
    let at = clock.now();
    dropped.send_replace(Some(at));
    let (told, end) = marks(&mut trigger).await;
    assert!(end.is_none(), "{end:?}");
    assert_eq!(names(&told), ["trigger 1", "gone 1", "ready 1"]);
    assert_eq!(told[1].0, at);
}
