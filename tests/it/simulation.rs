//! Whole runs in virtual time: the same seed gives the same history, and a clean run trips nothing.

use std::time::Duration;

use herd::backoff::{Address, Ask, Backoff, Growth, Mix, Window, presets};
use herd::check::{self, Check, Outcome};
use herd::history::{
    AttemptOutcome, Cause, Client, Elapsed, End, Entry, Event, Fate, History, Mark, Publication,
    PublicationKind, Seq, Shard,
};
use herd::simulate::{self, Ledger, Setup};

/// One thing of a client's stream with its event spelled out, so that tables of different shards compare.
#[derive(Debug, Clone, PartialEq)]
enum Told {
    Session(Elapsed),
    Receipt(usize, Elapsed, Event),
    Reset(usize, Elapsed, Event),
}

fn stream(history: &History, client: &Client) -> Vec<Told> {
    let event = |ix| history.event(ix).clone();
    client
        .entries(history)
        .map(|entry| match entry {
            Entry::Session { at, .. } => Told::Session(at),
            Entry::Receipt(r) => Told::Receipt(r.session, r.at, event(r.event)),
            Entry::Reset {
                session,
                at,
                event: ix,
            } => Told::Reset(session, at, event(ix)),
        })
        .collect()
}

fn dials(history: &History, client: &Client) -> Vec<String> {
    let from = |ix| format!("{:?}", history.event(ix));
    client
        .attempts
        .iter()
        .map(|a| {
            format!(
                "{:?} {:?}",
                (
                    a.attempt,
                    a.due,
                    a.dialled,
                    a.connected,
                    a.ended,
                    &a.outcome
                ),
                a.resumed_from.map(from)
            )
        })
        .collect()
}

fn ends(client: &Client) -> Vec<Option<&(Elapsed, Cause)>> {
    client.sessions.iter().map(|s| s.closed.as_ref()).collect()
}

fn assert_same_clients(a: &History, b: &History) {
    assert_eq!(a.clients.len(), b.clients.len());
    for (x, y) in a.clients.iter().zip(&b.clients) {
        assert_eq!(x.id, y.id);
        assert_eq!(dials(a, x), dials(b, y), "dials of {:?}", x.id);
        assert_eq!(ends(x), ends(y), "sessions of {:?}", x.id);
        assert_eq!(stream(a, x), stream(b, y), "stream of {:?}", x.id);
        assert_eq!(x.quit, y.quit);
        assert_eq!(x.unread, y.unread);
    }
}

fn assert_same(a: &History, b: &History) {
    assert_eq!(a.marks, b.marks);
    assert_eq!(a.publications, b.publications);
    assert_same_clients(a, b);
}

fn instant(history: &History, wanted: impl Fn(&Mark) -> bool) -> Elapsed {
    let found = history.marks.iter().find(|(_, m)| wanted(m));
    found.expect("the mark is there").0
}

/// What every history of an honest server holds, whatever the judge makes of it.
fn assert_whole(setup: &Setup, history: &History) {
    assert_eq!(history.end(), Some(&End::Complete));
    assert!(!history.truncated());
    assert!(history.marks.is_sorted_by_key(|(at, _)| *at));
    assert!(history.marks.iter().all(|(at, _)| *at <= history.horizon));
    let primed = instant(history, |m| *m == Mark::Primed);
    for outage in 1..=setup.outages {
        let trigger = instant(history, |m| *m == Mark::Trigger { outage });
        let ready = instant(history, |m| *m == Mark::Ready { outage });
        assert!(trigger >= primed + setup.steady);
        assert!(ready >= trigger + setup.down);
    }
    let expected: Vec<_> = history
        .publications
        .values()
        .filter(|p| p.kind == PublicationKind::Expected)
        .collect();
    assert!(expected.iter().all(|p| p.due >= primed));
    assert!(expected.iter().all(|p| p.fate == Fate::Acked));
    for client in &history.clients {
        assert_client_whole(setup, history, client, &expected);
    }
}

fn assert_client_whole(
    setup: &Setup,
    history: &History,
    client: &Client,
    expected: &[&Publication],
) {
    let (mut got, mut last) = (vec![0u32; history.publications.len()], Elapsed::ZERO);
    let place = |seq: Seq| history.header.shown(seq) as usize - 1;
    for entry in client.entries(history) {
        if let Entry::Receipt(r) = entry {
            assert!(last <= r.at && r.at <= history.horizon);
            last = r.at;
            got[place(history.event(r.event).seq.expect("herd's own"))] += 1;
        }
    }
    assert!(got.iter().all(|n| *n <= 1), "{:?} got one twice", client.id);
    let lost = expected.iter().filter(|p| got[place(p.seq)] == 0);
    assert_eq!(lost.count(), 0, "lost by {:?}", client.id);
    assert_eq!(client.sessions.len(), setup.outages as usize + 1);
}

#[test]
fn the_same_seed_gives_the_same_history_and_another_one_another() {
    let setup = Setup::new(40, 7);
    let history = simulate::run(&setup);
    assert_whole(&setup, &history);
    assert_same(&history, &simulate::run(&setup));
    let other = simulate::run(&Setup::new(40, 8));
    assert_ne!(history.header.seq_base, other.header.seq_base);
    let due = |h: &History| {
        h.clients[0]
            .attempts
            .iter()
            .map(|a| a.due)
            .collect::<Vec<_>>()
    };
    assert_ne!(due(&history), due(&other));
}

/// The delay of (client, drop, attempt) is the one that anybody else computes from the same address.
#[test]
fn the_delays_are_those_of_their_addresses() {
    for preset in ["full-jitter", "exponential-25", "phoenix", "centrifuge"] {
        let preset = presets::find(preset).unwrap();
        let policy = (preset.policy)();
        let setup = Setup {
            mix: preset.mix(),
            outages: 2,
            ..Setup::new(30, 11)
        };
        let history = simulate::run(&setup);
        let mut drawn = 0;
        for client in &history.clients {
            let (mut drop, mut since, mut sessions) = (0, Elapsed::ZERO, client.sessions.iter());
            for dial in &client.attempts {
                if drop > 0 {
                    let delay = policy.delay(&Ask {
                        attempt: dial.attempt,
                        previous: None,
                        base: None,
                        address: Address {
                            seed: setup.seed,
                            client: client.id.0,
                            drop,
                            attempt: dial.attempt,
                        },
                    });
                    assert_eq!(dial.due.since(since), delay);
                    drawn += 1;
                }
                since = dial.ended;
                if dial.outcome == AttemptOutcome::Opened {
                    drop += 1;
                    let session = sessions.next().expect("a session for each opened dial");
                    since = session
                        .closed
                        .as_ref()
                        .expect("closed at the end at last")
                        .0;
                }
            }
        }
        assert!(drawn >= 60, "two drops of each client");
    }
}

/// A shard's clients live in the world of all, so the shards together are the whole.
#[test]
fn shards_hold_what_the_whole_holds() {
    let whole = simulate::run(&Setup::new(30, 3));
    let of = 4;
    let shards: Vec<_> = (1..=of)
        .map(|index| {
            simulate::run(&Setup {
                shard: Shard { index, of },
                ..Setup::new(30, 3)
            })
        })
        .collect();
    for shard in &shards {
        let mut own = whole.clone();
        own.clients.retain(|c| shard.header.shard.holds(c.id));
        assert!(shard.truncated(), "a shard alone is not the run");
        assert_same(&own, shard);
    }
    let clients: usize = shards.iter().map(|s| s.clients.len()).sum();
    assert_eq!(clients, 30);
}

/// About 2,000,000 receipts. How long that takes is the benches' business: a fraction of a second in a dev build.
#[test]
fn a_thousand_clients_live_through_minutes() {
    let setup = Setup {
        steady: Duration::from_secs(60),
        down: Duration::from_secs(30),
        ..Setup::new(1000, 5)
    };
    let (history, ledger) = simulate::run_with_ledger(&setup);
    assert_whole(&setup, &history);
    assert_eq!(ledger, Ledger::default());
    let receipts: usize = history
        .clients
        .iter()
        .map(|c| c.entries(&history).count())
        .sum();
    assert!(history.horizon >= Elapsed::from_millis(100_000));
    assert!(receipts > 1_500_000, "{receipts}");
}

/// An answer lost in the kill is sent again and stored once; what was refused while the server was down is sent again.
#[test]
fn publications_survive_the_outage() {
    let setup = Setup {
        rate: 2000.0,
        steady: Duration::from_millis(100),
        ..Setup::new(5, 1)
    };
    let history = simulate::run(&setup);
    assert_whole(&setup, &history);
    let tries =
        |f: fn(&Publication) -> bool| history.publications.values().filter(|p| f(p)).count();
    assert!(tries(|p| p.lost_answers == 1) >= 1);
    assert!(tries(|p| p.lost_answers == 0 && p.tries > 5) >= 100);
}

/// Where the server is not idempotent an unknown publication stays unknown, and no client may be blamed for it.
#[test]
fn an_unknown_publication_is_not_sent_again_unasked() {
    let mut setup = Setup {
        rate: 2000.0,
        steady: Duration::from_millis(100),
        ..Setup::new(5, 1)
    };
    setup.terms.idempotent = false;
    let history = simulate::run(&setup);
    let unknown: Vec<_> = history
        .publications
        .values()
        .filter(|p| p.fate == Fate::Unknown)
        .collect();
    assert!(!unknown.is_empty());
    assert!(unknown.iter().all(|p| p.tries == 1 && p.answered.is_none()));
}

/// A policy that gives up while the server is still down.
#[test]
fn clients_that_give_up_end_the_run() {
    let mut policy = Backoff::new(Vec::new(), Growth::fixed(Duration::from_millis(100)));
    policy.limits.attempts = Some(3);
    let setup = Setup {
        mix: Mix::one("three times", policy),
        ..Setup::new(10, 1)
    };
    let history = simulate::run(&setup);
    assert_eq!(history.end(), Some(&End::Complete));
    assert!(history.clients.iter().all(|c| c.quit.is_some()));
}

/// Clean runs of many shapes; small and slow ones too, so that the rule of chance has its say.
fn clean(n: u64) -> Setup {
    let draw = |what| {
        Address {
            seed: 0xc1ea,
            client: n as u32,
            drop: what,
            attempt: 0,
        }
        .random()
    };
    let pick = |what, from: f64, to: f64| from + (to - from) * draw(what);
    let clients = if n.is_multiple_of(20) {
        pick(0, 200.0, 300.0)
    } else {
        pick(0, 5.0, 100.0)
    };
    let mut setup = Setup::new(clients as u32, n);
    // To derive the limit costs more than the run, so every fourth does.
    if !n.is_multiple_of(4) {
        setup.terms.reconnect_limit = Some(Duration::from_secs(120));
    }
    Setup {
        rate: pick(1, 4.0, 20.0),
        ramp: Duration::from_secs_f64(pick(2, 0.0, 3.0)),
        steady: Duration::from_secs_f64(pick(3, 0.8, 2.0)),
        down: Duration::from_secs_f64(if clients >= 200.0 {
            pick(4, 1.0, 8.0)
        } else {
            pick(4, 0.0, 8.0)
        }),
        outages: 1 + u32::from(draw(5) < 0.2),
        latency: Window {
            least: Duration::from_micros(50),
            most: Duration::from_secs_f64(pick(6, 0.001, 0.05)),
        },
        ..setup
    }
}

/// Timing may be Unknown where chance could have done it, and only there; nothing may fail.
///
/// Among these sizes are those (around 50 to 70 clients) of which one honest run in some hundred misses the limit.
#[test]
fn a_thousand_clean_runs_trip_nothing() {
    const TIMING: [Check; 2] = [Check::ReconnectSpread, Check::Peak];
    let (mut unknown, mut tripped) = (0, Vec::new());
    for n in 0..1000 {
        let setup = clean(n);
        let (history, ledger) = simulate::run_with_ledger(&setup);
        assert_whole(&setup, &history);
        assert_eq!(ledger, Ledger::default(), "run {n}");
        for finding in check::judge(&history).findings {
            let by_chance = finding.outcome == Outcome::Unknown
                && TIMING.contains(&finding.check)
                && setup.clients < 200;
            unknown += u32::from(by_chance);
            if !(by_chance || finding.outcome == Outcome::Pass) {
                tripped.push(format!("run {n}: {finding:?}"));
            }
        }
    }
    assert!(tripped.is_empty(), "{}", tripped.join("\n"));
    assert!(unknown > 0, "the small runs must meet the rule of chance");
}
