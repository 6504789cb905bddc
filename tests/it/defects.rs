//! Every planted defect against every check: each trips exactly the set declared for it, with the exact count.

mod real_sockets;
mod rig;
mod virtual_time;

use herd::check::Check;
use herd::server::defect::Defect;

/// What a defect may leave nothing to judge by, and why. All other checks must pass.
fn blinds(defect: Defect) -> &'static [Check] {
    match defect {
        // Nobody is seen caught up, so nothing was recovered from.
        Defect::ForgetLog
        | Defect::NeverCatchUp
        | Defect::UnknownIsNow
        | Defect::LyingSession
        | Defect::Zombie => &[Check::Recovery],
        // Nobody is back within the run.
        Defect::AcceptThenClose => &[Check::ReconnectSpread, Check::ExactlyOnce, Check::Recovery],
        _ => &[],
    }
}
