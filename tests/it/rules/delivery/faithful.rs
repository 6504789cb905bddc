//! A faithful history passes, and any single change flips exactly the count and the finding that it should.

use super::*;
use proptest::prelude::*;

/// What a faithful server and its clients did.
#[derive(Debug, Clone)]
struct Run {
    ids: IdKind,
    /// When each event was sent, from number 1.
    sent: Vec<u64>,
    clients: Vec<[Session; 2]>,
}

#[derive(Debug, Clone)]
struct Session {
    dialled: u64,
    dropped: Option<u64>,
    cursor: Option<u64>,
    receipts: Vec<(u64, Got)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Got {
    Event(u64),
    Garbled(u64),
    Foreign,
}

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy)]
enum Change {
    Drop,
    Repeat,
    Swap,
    Garble,
    Invent,
    Leftover,
}

const CHANGES: [Change; 6] = [
    Change::Drop,
    Change::Repeat,
    Change::Swap,
    Change::Garble,
    Change::Invent,
    Change::Leftover,
];

fn run() -> impl Strategy<Value = Run> {
    let client = (0u64..400, 700u64..3_000);
    let gaps = proptest::collection::vec(5u64..300, 30..80);
    let ids = prop_oneof![Just(IdKind::Integer), Just(IdKind::Opaque)];
    (ids, gaps, proptest::collection::vec(client, 2..7)).prop_map(|(ids, gaps, clients)| {
        let sent: Vec<u64> = gaps
            .iter()
            .scan(100, |at, gap| {
                *at += gap;
                Some(*at)
            })
            .collect();
        let outage = sent[sent.len() / 4] + 2;
        let clients = clients
            .into_iter()
            .map(|(drop, away)| faithful(&sent, outage + drop, away))
            .collect();
        Run { ids, sent, clients }
    })
}

fn faithful(sent: &[u64], drop: u64, away: u64) -> [Session; 2] {
    let back = drop + away;
    let numbered = || sent.iter().zip(1..).map(|(at, n)| (*at, n));
    let first: Vec<_> = numbered().filter(|(at, _)| at + 2 <= drop).collect();
    let cursor = first.last().map(|(_, n)| *n);
    let rest = numbered().filter(|(_, n)| Some(*n) > cursor);
    [
        Session {
            dialled: 10,
            dropped: Some(drop),
            cursor: None,
            receipts: first
                .iter()
                .map(|(at, n)| (at + 2, Got::Event(*n)))
                .collect(),
        },
        Session {
            dialled: back,
            dropped: None,
            cursor,
            receipts: rest
                .map(|(at, n)| ((at + 2).max(back + 5), Got::Event(n)))
                .collect(),
        },
    ]
}

impl Run {
    fn history(&self) -> History {
        let outage = self.sent[self.sent.len() / 4];
        let mut builder = Builder::new(self.clients.len() as u32)
            .terms(|t| t.ids = self.ids)
            .outage(1, outage + 1, outage + 300);
        for (at, n) in self.sent.iter().zip(1..) {
            builder = builder.acked(n, *at);
        }
        builder
            .each(|k, story| {
                for session in &self.clients[k as usize - 1] {
                    match session.cursor {
                        Some(n) => story.resume(session.dialled, n),
                        None => story.open(session.dialled),
                    };
                    for (at, got) in &session.receipts {
                        receive(story, *at, *got);
                    }
                    if let Some(at) = session.dropped {
                        story.dropped(at);
                    }
                }
            })
            .end(200_000)
    }

    /// Makes one change to a receipt of a client's second session, if it has enough of them.
    fn change(&mut self, change: Change, client: usize, place: usize) -> bool {
        let client = client % self.clients.len();
        let receipts = &mut self.clients[client][1].receipts;
        if receipts.len() < 2 {
            return false;
        }
        let place = place % (receipts.len() - 1);
        let (at, Got::Event(n)) = receipts[place] else {
            return false;
        };
        match change {
            Change::Drop => {
                receipts.remove(place);
            }
            Change::Repeat => receipts.insert(place, (at, Got::Event(n))),
            Change::Swap => {
                receipts[place].1 = receipts[place + 1].1;
                receipts[place + 1].1 = Got::Event(n);
            }
            Change::Garble => receipts[place].1 = Got::Garbled(n),
            Change::Invent => receipts.insert(place, (at, Got::Event(5_000))),
            Change::Leftover => receipts.insert(place, (at, Got::Foreign)),
        }
        true
    }
}

fn receive(story: &mut Story<'_>, at: u64, got: Got) {
    let event = match got {
        Got::Event(n) => {
            story.got(at, n);
            return;
        }
        Got::Garbled(n) => Event {
            id: Some(n.to_string().into()),
            seq: Some(Seq(SEQ_BASE + n)),
            // No event's own: those are n + 1.
            digest: u64::MAX,
            ..Event::default()
        },
        Got::Foreign => Event {
            id: Some("elsewhere".into()),
            seq: None,
            digest: 1,
            ..Event::default()
        },
    };
    story.got_event(at, event);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_single_change_flips_exactly_its_own_count(
        run in run(),
        change in proptest::sample::select(&CHANGES[..]),
        client: usize,
        place: usize,
    ) {
        let before = judged(&run.history());
        prop_assert!(before.findings.iter().all(|f| f.outcome == Outcome::Pass), "{:?}", before.findings);
        let pairs = (run.sent.len() * run.clients.len()) as u64;
        prop_assert_eq!((before.facts.expected, before.facts.delivered), (pairs, pairs));

        let mut changed = run;
        prop_assume!(changed.change(change, client, place));
        let mut expected = before.facts.clone();
        let mut fails = LOSES;
        match change {
            Change::Drop => (expected.lost, expected.delivered) = (1, pairs - 1),
            Change::Repeat => expected.duplicated = 1,
            Change::Swap => {
                expected.reordered = 1;
                fails = [Outcome::Pass, Outcome::Fail, Outcome::Pass];
            }
            Change::Garble => {
                (expected.conflict, expected.lost, expected.delivered) = (1, 1, pairs - 1);
            }
            Change::Invent => expected.unexpected = 1,
            Change::Leftover => {
                expected.foreign = 1;
                fails = PASS;
            }
        }
        let after = judged(&changed.history());
        prop_assert_eq!(&after.facts, &expected);
        prop_assert_eq!(outcomes(&after), fails);
        let offences = expected.lost + expected.duplicated + expected.reordered + expected.conflict + expected.unexpected;
        prop_assert_eq!(after.offenders.len() as u64, offences);
    }
}
