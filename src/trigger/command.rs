//! Runs a restart command to its end, or to its limit.
//!
//! What the command leaves running on purpose (it may start the server) stays, where it ended well. It knows nothing of
//! what is restarted.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::error::Error;
use crate::history::Elapsed;
use crate::target::guard::{Ended, Mode, Order, Report};
use crate::target::guarded::{Guarded, Place, Program};

/// How long a killed command may take to be gone.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Runs it by `sh -c`, with these variables in its environment.
pub(super) async fn run(
    line: &str,
    env: &[(String, String)],
    limit: Duration,
    place: &Place,
    clock: Clock,
) -> Result<(), Error> {
    let program = Program::Shell(line.to_owned());
    let (guarded, mut reports) = Guarded::start(Mode::Task, &program, env, place, clock)?;
    guarded.order(Order::Start);
    let why = match tokio::time::timeout(limit, finish(&mut reports)).await {
        Ok(Finish::Ended(Ended::Code(0))) => {
            guarded.end().await;
            return Ok(());
        }
        Ok(Finish::Ended(ended)) => format!("the restart command ended with {ended}"),
        Ok(Finish::Failed(why)) => format!("the restart command can't be started: {why}"),
        Err(_) => {
            guarded.order(Order::Kill);
            let _ = tokio::time::timeout(KILL_LIMIT, finish(&mut reports)).await;
            format!("the restart command did not end within {limit:?} and was killed")
        }
    };
    guarded.end().await;
    Err(Error::Broken(format!(
        "{why}; make it work in a shell first; {}",
        place.tail()
    )))
}

enum Finish {
    Ended(Ended),
    Failed(String),
}

async fn finish(reports: &mut mpsc::UnboundedReceiver<(Elapsed, Report)>) -> Finish {
    loop {
        match reports.recv().await {
            Some((_, Report::Exited(ended))) => return Finish::Ended(ended),
            Some((_, Report::NotStarted(why))) => return Finish::Failed(why),
            Some((_, Report::Started(_) | Report::Line(_))) => {}
            None => return Finish::Failed("herd's guard process was ended".into()),
        }
    }
}
