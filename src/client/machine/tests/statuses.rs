//! The machine under any inputs, fitting or not, beside the judge's reading of what it did: always exactly one status,
//! and both say the same one.

use super::*;
use crate::check::status::Statuses;
use crate::history::build::Builder;
use crate::history::{
    Attempt, AttemptOutcome, Cause, Client, ClientEvent, History, Memory, Status,
};

/// The run's length; a tick is a microsecond.
const TICKS: u64 = 400;

fn any_input() -> impl Strategy<Value = Input> {
    let ending = prop_oneof![
        Just(Ending::Unconnected),
        Just(Ending::Lost),
        Just(Ending::Status(503)),
        Just(Ending::Eof),
    ];
    let ticks = |most: u64| (0..most).prop_map(Duration::from_micros);
    prop_oneof![
        2 => (0u64..60).prop_map(|due| Input::Start { due: Elapsed(due) }),
        6 => Just(Input::Opened),
        1 => Just(Input::Acknowledged),
        4 => ending.clone().prop_map(|ending| Input::Failed { ending }),
        4 => ending.prop_map(|ending| Input::Closed { ending }),
        1 => (0u32..9, any::<bool>()).prop_map(|(e, supersedes)| Input::Event {
            event: EventIx(e),
            supersedes
        }),
        1 => (0u32..9).prop_map(|e| Input::Reset { event: EventIx(e) }),
        1 => proptest::option::of((0u32..9).prop_map(EventIx)).prop_map(|event| Input::Cursor { event }),
        1 => ticks(40).prop_map(|delay| Input::Retry { delay }),
        1 => ticks(40).prop_map(|delay| Input::RetryAfter { delay }),
        1 => (0u64..30, any::<bool>()).prop_map(|(due, kept)| Input::Refresh {
            due: Elapsed(due),
            memory: if kept { Memory::Kept } else { Memory::Lost },
        }),
        1 => Just(Input::Stopped { why: "204".into() }),
    ]
}

fn any_policy() -> impl Strategy<Value = Backoff> {
    let reset = prop_oneof![
        Just(Reset::OnOpen),
        Just(Reset::OnAck),
        Just(Reset::AfterUptime(Duration::from_micros(5))),
    ];
    (0u64..30, reset, proptest::option::of(1u32..5)).prop_map(|(delay, reset, attempts)| {
        let mut policy = Backoff::new(Vec::new(), Growth::fixed(Duration::from_micros(delay)));
        (policy.limits.attempts, policy.reset) = (attempts, reset);
        policy
    })
}

/// A shell that does nothing but record: what each input came to, as `client.rs` would write it down.
struct Shell {
    machine: Machine,
    client: Client,
    /// The dial that was ordered and has not ended.
    dial: Option<Dial>,
}

impl Shell {
    fn new() -> Self {
        Self {
            machine: Machine::new(ClientId(1), 9),
            client: Client::new(ClientId(1)),
            dial: None,
        }
    }

    /// Gives it an input, and holds the machine to at most one dial, and none while open.
    fn on(&mut self, now: Elapsed, input: &Input, policy: &Backoff) {
        let was_open = self.machine.is_open();
        let input = match input {
            // A tab is not opened again before it is closed.
            Input::Refresh { due, memory } => Input::Refresh {
                due: now + due.duration(),
                memory: *memory,
            },
            other => other.clone(),
        };
        let action = self.machine.on(now, input.clone(), policy);
        if !was_open && self.machine.is_open() {
            self.ended(now, AttemptOutcome::Opened);
        } else if was_open && !self.machine.is_open() {
            let cause = Cause::Eof;
            self.client.push(ClientEvent::Closed { at: now, cause });
        } else if action != Action::Nothing && !matches!(input, Input::Start { .. }) {
            self.ended(now, AttemptOutcome::Refused);
        }
        match action {
            Action::Nothing => {}
            Action::Dial(dial) => {
                assert!(!self.machine.is_open(), "a dial while connected");
                assert!(self.dial.is_none(), "two dials at once");
                assert!(dial.due >= now || matches!(input, Input::Start { .. }));
                self.dial = Some(dial);
            }
            Action::Quit(why) => {
                assert!(self.dial.is_none(), "a dial after the end");
                self.client.push(ClientEvent::Quit { at: now, why });
            }
        }
    }

    fn ended(&mut self, now: Elapsed, outcome: AttemptOutcome) {
        let dial = self.dial.take().expect("only a dial can end");
        self.client.push(ClientEvent::Attempt(Attempt {
            attempt: dial.attempt,
            due: dial.due,
            // An end that came before the dial was due.
            dialled: dial.due.min(now),
            connected: None,
            ended: now,
            outcome,
            resumed_from: dial.cursor,
            target: 0,
        }));
    }

    /// What the judge will read. A dial that never ended is recorded as one that the run's end broke off.
    fn history(mut self) -> History {
        let end = Elapsed(TICKS);
        if self.dial.is_some_and(|dial| dial.due < end) {
            self.ended(end, AttemptOutcome::Aborted);
        }
        let mut history = Builder::new(1).end(0);
        history.horizon = end;
        history.clients = vec![self.client];
        history
    }
}

proptest! {
    #[test]
    fn it_is_always_one_thing_and_the_judge_sees_the_same(
        policy in any_policy(),
        inputs in proptest::collection::vec((0u64..25, any_input()), 0..60),
    ) {
        let mut shell = Shell::new();
        let mut inputs = inputs.into_iter().scan(0, |at, (gap, input)| {
            *at += gap;
            Some((*at, input))
        }).peekable();
        // What it was in each tick, once all inputs of that instant were in.
        let mut was: Vec<Status> = Vec::new();
        for now in 0..TICKS {
            while let Some((_, input)) = inputs.next_if(|(at, _)| *at == now) {
                shell.on(Elapsed(now), &input, &policy);
            }
            was.push(shell.machine.status(Elapsed(now)));
        }
        for pair in was.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            prop_assert!(after != Status::Connecting || before == Status::Connecting);
            prop_assert!(before != Status::GaveUp || after == Status::GaveUp);
        }
        let history = shell.history();
        let spans = Statuses::new(&history, &[]).spans(&history.clients[0]);
        let times: u64 = spans.iter().map(|s| s.length().as_micros() as u64).sum();
        prop_assert_eq!(times, TICKS);
        let judged: Vec<Status> = spans
            .iter()
            .flat_map(|s| (s.from.micros()..s.until.micros()).map(|_| s.status))
            .collect();
        prop_assert_eq!(was, judged);
    }
}
