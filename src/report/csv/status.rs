//! `status.csv`: how many clients were in each status, over time. In every row they add up to all of them.

use std::io::{self, Write};

use super::Table;
use crate::check::status::Statuses;
use crate::report::Input;

/// A row for each step of time in which something changed, and one for the record's end.
pub(super) fn write(out: &mut dyn Write, input: &Input<'_>) -> io::Result<()> {
    let mut table = Table::new(
        out,
        "at_us,connecting,connected,disconnected,reconnecting,gave_up",
    )?;
    let statuses = Statuses::new(input.history, &input.verdict.returns);
    for (at, counts) in statuses.survey().rows() {
        table.number(at.micros());
        for count in counts {
            table.number(count);
        }
        table.end()?;
    }
    table.finish()
}
