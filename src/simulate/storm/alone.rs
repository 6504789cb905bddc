//! Clients that don't influence each other: one after the other, none remembered.

use super::{CUT, Course, Dialled, Met, Storm, Told, TooMany, begun, failed, lost};
use crate::client::machine::Action;

/// After how many clients it is plain how often all of them will dial.
const SAMPLE: u32 = 1_000;

/// Follows one outage of a server without limits.
pub(super) fn run(
    storm: &Storm,
    most: u64,
    told: &mut impl FnMut(Told),
) -> Result<Course, TooMany> {
    let back = CUT + storm.down;
    told(Told::Cut {
        outage: 1,
        at: CUT,
        back,
    });
    let end = CUT + storm.patience();
    let mut course = Course::default();
    let (mut last, mut away) = (CUT, 0);
    for client in 1..=storm.clients {
        let policy = storm.mix.of(client);
        let mut machine = begun(client, storm.seed, policy);
        let mut now = storm.notices(client, 1, CUT);
        told(Told::Lost { client, at: CUT });
        let mut action = lost(&mut machine, now, policy);
        loop {
            let dial = match action {
                Action::Dial(dial) if dial.due <= end => dial,
                Action::Quit(why) => {
                    told(Told::Quit {
                        client,
                        at: now,
                        why,
                    });
                    break;
                }
                Action::Dial(_) | Action::Nothing => {
                    away += 1;
                    break;
                }
            };
            now = dial.due;
            course.dials += 1;
            if course.dials > most {
                return Err(TooMany(most));
            }
            let open = now >= back;
            told(Told::Dialled(Dialled {
                client,
                due: now,
                attempt: dial.attempt,
                connected: open.then_some(now),
                ended: now,
                met: if open { Met::Opened } else { Met::Refused },
            }));
            if open {
                told(Told::Stayed { client, since: now });
                break;
            }
            action = failed(&mut machine, now, policy);
        }
        // Refused before it has cost anything rather than after.
        let sure = u64::from(storm.clients) * course.dials / u64::from(client) / 10 * 9;
        if client == SAMPLE && sure > most {
            return Err(TooMany(most));
        }
        last = last.max(now);
    }
    if away == 0 {
        course.recovered = Some(last);
        told(Told::Settled {
            outage: 1,
            at: last,
        });
    }
    course.end = if away == 0 { last } else { end };
    Ok(course)
}
