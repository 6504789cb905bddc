//! The machine, input by input.

mod statuses;

use super::*;
use crate::backoff::{Growth, presets};
use proptest::prelude::*;

fn ms(ms: u64) -> Elapsed {
    Elapsed::from_millis(ms)
}

fn fixed(reset: Reset, max_attempts: Option<u32>) -> Backoff {
    let mut policy = Backoff::new(Vec::new(), Growth::fixed(Duration::from_secs(1)));
    (policy.limits.attempts, policy.reset) = (max_attempts, reset);
    policy
}

fn failed() -> Input {
    Input::Failed {
        ending: Ending::Unconnected,
    }
}

fn closed() -> Input {
    Input::Closed {
        ending: Ending::Lost,
    }
}

fn dial(action: Action) -> Dial {
    match action {
        Action::Dial(dial) => dial,
        other => panic!("{other:?} is no dial"),
    }
}

#[test]
fn it_carries_the_last_event_as_its_cursor() {
    let policy = fixed(Reset::OnOpen, None);
    let mut m = Machine::new(ClientId(1), 9);
    assert_eq!(
        dial(m.on(ms(0), Input::Start { due: ms(5) }, &policy)).due,
        ms(5)
    );
    m.on(ms(6), Input::Opened, &policy);
    m.on(
        ms(7),
        Input::Event {
            event: EventIx(3),
            supersedes: true,
        },
        &policy,
    );
    m.on(
        ms(8),
        Input::Event {
            event: EventIx(2),
            supersedes: false,
        },
        &policy,
    );
    let next = dial(m.on(ms(10), closed(), &policy));
    assert_eq!(
        next,
        Dial {
            due: ms(1010),
            attempt: 0,
            cursor: Some(EventIx(3))
        }
    );
}

#[test]
fn the_count_returns_to_zero_on_open_or_only_after_a_minimum_uptime() {
    for (reset, after_short, after_long) in [
        (Reset::OnOpen, 0, 0),
        (Reset::AfterUptime(Duration::from_secs(5)), 2, 0),
    ] {
        let policy = fixed(reset, None);
        let mut m = Machine::new(ClientId(1), 9);
        m.on(ms(0), Input::Start { due: ms(0) }, &policy);
        m.on(ms(0), failed(), &policy);
        m.on(ms(0), failed(), &policy);
        m.on(ms(0), Input::Opened, &policy);
        assert_eq!(dial(m.on(ms(100), closed(), &policy)).attempt, after_short);
        m.on(ms(200), Input::Opened, &policy);
        assert_eq!(dial(m.on(ms(9000), closed(), &policy)).attempt, after_long);
    }
}

#[test]
fn it_gives_up_once_and_stays_so() {
    let policy = fixed(Reset::OnOpen, Some(1));
    let mut m = Machine::new(ClientId(1), 9);
    m.on(ms(0), Input::Start { due: ms(0) }, &policy);
    assert_eq!(dial(m.on(ms(0), failed(), &policy)).attempt, 0);
    assert_eq!(m.on(ms(0), failed(), &policy), Action::Quit(Quit::GaveUp));
    assert_eq!(m.on(ms(0), failed(), &policy), Action::Nothing);
    assert_eq!(
        m.on(ms(0), Input::Start { due: ms(0) }, &policy),
        Action::Nothing
    );
}

#[test]
fn a_cursor_can_be_told_and_taken_back_between_two_dials() {
    let policy = fixed(Reset::OnOpen, None);
    let mut m = Machine::new(ClientId(1), 9);
    m.on(ms(0), Input::Start { due: ms(0) }, &policy);
    m.on(ms(0), Input::Opened, &policy);
    let told = Some(EventIx(7));
    m.on(ms(1), Input::Cursor { event: told }, &policy);
    assert_eq!(dial(m.on(ms(2), closed(), &policy)).cursor, told);
    m.on(ms(3), Input::Cursor { event: None }, &policy);
    assert_eq!(dial(m.on(ms(4), failed(), &policy)).cursor, None);
}

#[test]
fn what_the_protocol_forbids_ends_it_whether_open_or_dialling() {
    let policy = fixed(Reset::OnOpen, None);
    let why = || Input::Stopped { why: "204".into() };
    for opened in [false, true] {
        let mut m = Machine::new(ClientId(1), 9);
        m.on(ms(0), Input::Start { due: ms(0) }, &policy);
        if opened {
            m.on(ms(0), Input::Opened, &policy);
        }
        let quit = Action::Quit(Quit::Fatal("204".into()));
        assert_eq!(m.on(ms(1), why(), &policy), quit);
        assert_eq!(m.on(ms(2), why(), &policy), Action::Nothing);
        assert_eq!(m.on(ms(2), closed(), &policy), Action::Nothing);
    }
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        Just(Input::Start { due: ms(0) }),
        Just(Input::Opened),
        Just(failed()),
        Just(closed()),
        proptest::option::of((0u32..9).prop_map(EventIx)).prop_map(|event| Input::Cursor { event }),
        (0u32..9, any::<bool>()).prop_map(|(e, supersedes)| Input::Event {
            event: EventIx(e),
            supersedes
        }),
    ]
}

proptest! {
    /// Whatever is thrown at it, between two dials lies the end of the first one.
    #[test]
    fn it_never_dials_twice_without_an_end_between(inputs in proptest::collection::vec(input(), 0..60)) {
        let policy = (presets::find(presets::DEFAULT).unwrap().policy)();
        let mut m = Machine::new(ClientId(1), 9);
        let mut dialling = false;
        for (now, input) in inputs.into_iter().enumerate() {
            let ends = matches!(input, Input::Failed { .. } | Input::Closed { .. });
            match m.on(ms(now as u64), input, &policy) {
                Action::Dial(_) => {
                    prop_assert!(!dialling || ends);
                    dialling = true;
                }
                _ => dialling &= !m.is_open(),
            }
        }
    }
}
