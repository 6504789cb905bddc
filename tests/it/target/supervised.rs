//! A server dies with herd, however herd dies; stops, deaths and restarts are told as they were.

use std::time::Duration;

use herd::scenario::StopSignal;
use herd::target::guard::Ended;
use herd::target::{Escalation, REVIVALS, Restart, ServerEvent, Supervised};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Stage, UP, clock, is_alive, kill, number, until};

/// Starts a process that leaves the group, and waits until it has.
const DAEMON: &str =
    "setsid sh -c 'echo $$ > daemon.new && mv daemon.new daemon && exec sleep 1000' &
while ! [ -e daemon ]; do sleep 0.01; done";

const GRACE: Duration = Duration::from_secs(60);
const DOWN: Duration = Duration::from_millis(30);

async fn next(events: &mut UnboundedReceiver<ServerEvent>) -> ServerEvent {
    tokio::time::timeout(Duration::from_secs(60), events.recv())
        .await
        .expect("an event in time")
        .expect("an event")
}

async fn failure(stage: &Stage, script: &str) -> String {
    let server = stage.server(script);
    let started = Supervised::start(server, clock()).await;
    started.expect_err("must not start").to_string()
}

/// Not a test: a herd to be killed. It supervises a server and waits.
#[tokio::test]
#[ignore = "started, and killed, by another test"]
async fn a_herd_to_be_killed() {
    let Ok(dir) = std::env::var("HERD_TEST_DIR") else {
        return;
    };
    let stage = Stage::new();
    let script = format!(
        "{DAEMON}\ncp daemon '{dir}/daemon'\n(sleep 1000) & echo $! > '{dir}/child'\n{}",
        UP.replace("exec", &format!("cp pid '{dir}/server' && exec"))
    );
    let (server, _events) = Supervised::start(stage.server(&script), clock())
        .await
        .unwrap();
    std::future::pending::<()>().await;
    server.end().await;
}

#[tokio::test]
async fn nothing_outlives_a_killed_herd() {
    let dir = tempfile::tempdir().unwrap();
    let mut herd = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "target::supervised::a_herd_to_be_killed",
            "--ignored",
        ])
        .env("HERD_TEST_DIR", dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut pids = Vec::new();
    for name in ["daemon", "child", "server"] {
        let path = dir.path().join(name);
        pids.push(until(name, || number(&path)).await);
    }
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    herd.kill().unwrap();
    herd.wait().unwrap();
    for pid in pids {
        until("the end of all", || (!is_alive(pid)).then_some(())).await;
    }
}

#[tokio::test]
async fn a_stop_that_is_obeyed_is_no_escalation_and_a_restart_follows() {
    let stage = Stage::new();
    let clock = clock();
    let (server, mut events) = Supervised::start(stage.server(UP), clock).await.unwrap();
    let first = stage.pid().await;
    assert_eq!(i32::try_from(server.pid()), Ok(first));
    server.restart(Restart {
        signal: StopSignal::Term,
        grace: GRACE,
        down: DOWN,
    });
    let ServerEvent::Stopped(stop) = next(&mut events).await else {
        panic!("stopped first");
    };
    assert_eq!(stop.ended, Ended::Signal(15));
    assert_eq!(stop.escalation, Escalation::None);
    let ServerEvent::Started { at: started, pid } = next(&mut events).await else {
        panic!("then started");
    };
    let ServerEvent::Ready { at: ready } = next(&mut events).await else {
        panic!("then ready");
    };
    assert!(stop.signalled <= stop.exited && started <= ready);
    assert!(started.since(stop.exited) >= Duration::from_millis(30));
    assert!(!is_alive(first) && is_alive(i32::try_from(pid).unwrap()));
    server.end().await;
    assert!(!is_alive(stage.pid().await));
}

#[tokio::test]
async fn a_server_that_ignores_sigterm_is_killed_after_the_grace() {
    let stage = Stage::new();
    let script = "trap '' TERM\necho $$ > pid.new && mv pid.new pid\nwhile :; do sleep 0.02; done";
    let (server, mut events) = Supervised::start(stage.server(script), clock())
        .await
        .unwrap();
    let grace = Duration::from_millis(80);
    server.restart(Restart {
        signal: StopSignal::Term,
        grace,
        down: DOWN,
    });
    let ServerEvent::Stopped(stop) = next(&mut events).await else {
        panic!("stopped");
    };
    let Escalation::Killed { at } = stop.escalation else {
        panic!("killed");
    };
    assert_eq!(stop.ended, Ended::Signal(9));
    assert!(at.since(stop.signalled) >= grace && stop.exited >= at);
    server.end().await;
}

#[tokio::test]
async fn a_stop_waits_for_the_whole_group() {
    let stage = Stage::new();
    // The shell dies of SIGTERM at once, its child takes its time.
    let script = "(trap 'sleep 0.2; echo bye > bye; exit' TERM; echo up > up; while :; do sleep 0.02; done) &\n\
        while ! [ -e up ]; do sleep 0.01; done; echo $$ > pid.new && mv pid.new pid; wait";
    let (server, mut events) = Supervised::start(stage.server(script), clock())
        .await
        .unwrap();
    server.restart(Restart {
        signal: StopSignal::Term,
        grace: GRACE,
        down: DOWN,
    });
    let ServerEvent::Stopped(stop) = next(&mut events).await else {
        panic!("stopped");
    };
    assert_eq!(stop.escalation, Escalation::None);
    assert!(stage.path("bye").exists());
    server.end().await;
}

#[tokio::test]
async fn a_command_that_is_not_found_is_said_so() {
    let stage = Stage::new();
    let said = failure(&stage, "exec no-such-server --port $PORT").await;
    assert!(said.contains("exit code 127"), "{said}");
    assert!(said.contains("did not find the command"), "{said}");
    assert!(said.contains("no-such-server"), "{said}");
}

#[tokio::test]
async fn a_server_that_dies_before_it_is_ready_is_quoted() {
    let stage = Stage::new();
    let said = failure(&stage, "echo one; echo \"port $PORT\" >&2; exit 3").await;
    assert!(said.contains("exit code 3"), "{said}");
    let port = stage.held.port();
    assert!(said.ends_with(&format!("\n  one\n  port {port}")), "{said}");
}

#[tokio::test]
async fn a_server_that_daemonises_is_refused_and_gone() {
    let stage = Stage::new();
    let said = failure(&stage, DAEMON).await;
    assert!(said.contains("foreground"), "{said}");
    assert!(!is_alive(number(&stage.path("daemon")).unwrap()));
}

#[tokio::test]
async fn a_server_that_is_not_ready_in_time_is_told_with_what_the_probe_met() {
    let stage = Stage::new();
    let mut server = stage.server("echo $$ > other; echo hello; exec sleep 1000");
    server.ready_limit = Duration::from_millis(300);
    let said = Supervised::start(server, clock())
        .await
        .unwrap_err()
        .to_string();
    assert!(said.contains("not ready within 300ms"), "{said}");
    assert!(said.contains("refused") && said.contains("hello"), "{said}");
    assert!(!is_alive(number(&stage.path("other")).unwrap()));
}

#[tokio::test]
async fn somebody_elses_answer_is_not_the_servers() {
    let stage = Stage::new();
    let _other = std::net::TcpListener::bind(("127.0.0.1", stage.held.port())).unwrap();
    let said = failure(&stage, UP).await;
    assert!(said.contains("before the server was started"), "{said}");
}

#[tokio::test]
async fn what_left_the_group_lives_through_restarts_and_dies_at_the_end() {
    let stage = Stage::new();
    let script = format!("[ -e daemon ] || {{ {DAEMON}; }}\n{UP}");
    let (server, mut events) = Supervised::start(stage.server(&script), clock())
        .await
        .unwrap();
    let daemon = number(&stage.path("daemon")).unwrap();
    server.restart(Restart {
        signal: StopSignal::Kill,
        grace: GRACE,
        down: DOWN,
    });
    while !matches!(next(&mut events).await, ServerEvent::Ready { .. }) {}
    assert!(is_alive(daemon));
    server.end().await;
    assert!(!is_alive(daemon));
}

#[tokio::test]
async fn a_death_before_any_restart_is_told_and_final() {
    let stage = Stage::new();
    let (server, mut events) = Supervised::start(stage.server(UP), clock()).await.unwrap();
    kill(stage.pid().await);
    let died = next(&mut events).await;
    assert!(
        matches!(
            died,
            ServerEvent::Died {
                ended: Ended::Signal(9),
                ..
            }
        ),
        "{died:?}"
    );
    server.end().await;
    assert_eq!(events.recv().await, None);
}

#[tokio::test]
async fn after_a_restart_the_dead_are_revived_three_times() {
    let stage = Stage::new();
    let (server, mut events) = Supervised::start(stage.server(UP), clock()).await.unwrap();
    server.restart(Restart {
        signal: StopSignal::Kill,
        grace: GRACE,
        down: DOWN,
    });
    for deaths in 0..=REVIVALS {
        let mut running = 0;
        loop {
            match next(&mut events).await {
                ServerEvent::Started { pid, .. } => running = i32::try_from(pid).unwrap(),
                ServerEvent::Ready { .. } => break,
                ServerEvent::Stopped(_) if deaths == 0 => {}
                other => panic!("{other:?} after {deaths} deaths"),
            }
        }
        kill(running);
        let died = next(&mut events).await;
        assert!(matches!(died, ServerEvent::Died { .. }), "{died:?}");
    }
    let over = next(&mut events).await;
    assert!(matches!(over, ServerEvent::GaveUp { .. }), "{over:?}");
    server.end().await;
}

#[tokio::test]
async fn a_server_that_dies_while_it_starts_again_is_revived_too() {
    let stage = Stage::new();
    let script = format!("echo x >> starts; [ $(wc -l < starts) = 2 ] && exit 7\n{UP}");
    let (server, mut events) = Supervised::start(stage.server(&script), clock())
        .await
        .unwrap();
    server.restart(Restart {
        signal: StopSignal::Kill,
        grace: GRACE,
        down: DOWN,
    });
    let mut told = Vec::new();
    loop {
        let event = next(&mut events).await;
        let ready = matches!(event, ServerEvent::Ready { .. });
        told.push(event);
        if ready {
            break;
        }
    }
    let died = |e: &&ServerEvent| {
        matches!(
            e,
            ServerEvent::Died {
                ended: Ended::Code(7),
                ..
            }
        )
    };
    assert_eq!(told.iter().filter(died).count(), 1, "{told:?}");
    assert_eq!(told.len(), 5, "{told:?}");
    server.end().await;
}

#[tokio::test]
async fn a_killed_guard_takes_the_server_with_it_and_is_broken() {
    let stage = Stage::new();
    let (server, mut events) = Supervised::start(stage.server(UP), clock()).await.unwrap();
    let pid = stage.pid().await;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    kill(
        fields
            .split_ascii_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap(),
    );
    let broken = next(&mut events).await;
    assert!(matches!(broken, ServerEvent::Broken { .. }), "{broken:?}");
    until("the server's end", || (!is_alive(pid)).then_some(())).await;
    server.end().await;
}

#[tokio::test]
async fn a_guard_that_gets_sigterm_kills_what_it_guards() {
    let stage = Stage::new();
    let (server, _events) = Supervised::start(stage.server(UP), clock()).await.unwrap();
    let pid = stage.pid().await;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let guard = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_ascii_whitespace()
        .nth(1);
    let guard = rustix::process::Pid::from_raw(guard.unwrap().parse().unwrap()).unwrap();
    rustix::process::kill_process(guard, rustix::process::Signal::TERM).unwrap();
    until("the server's end", || (!is_alive(pid)).then_some(())).await;
    server.end().await;
}
