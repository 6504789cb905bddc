//! Where the clients stood, as stacked columns over time: whoever is connected at the bottom, whoever isn't above.

use super::text::{Page, Tone, count};
use crate::check::status::StatusRow;

/// Rows of a column.
const HEIGHT: u64 = 4;

/// A layer: its mark, how it is meant, and what it is called below.
type Layer = (char, Tone, &'static str);

/// From the bottom up.
const LAYERS: [Layer; 4] = [
    ('█', Tone::Good, "connected"),
    ('▒', Tone::Doubtful, "dialling"),
    ('·', Tone::Quiet, "away"),
    ('x', Tone::Bad, "gave up"),
];

fn layers(row: &StatusRow) -> [u64; LAYERS.len()] {
    let dialling = row.connecting + row.reconnecting;
    [row.connected, dialling, row.disconnected, row.gave_up].map(u64::from)
}

/// Columns of `step` microseconds from `from` on; what lies behind `until` stays empty.
pub(super) struct Columns {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) step: u64,
    pub(super) count: usize,
}

impl Columns {
    /// Of each column the moment at which the fewest were connected.
    fn of<'a>(&self, series: &'a [StatusRow]) -> Vec<Option<&'a StatusRow>> {
        let at = |row: &StatusRow| (row.at_ms * 1e3) as u64;
        let column = |n: usize| {
            let begins = self.from + n as u64 * self.step;
            if begins >= self.until {
                return None;
            }
            // What held when it began, and what came in it.
            let first = series.partition_point(|row| at(row) <= begins);
            let last = series.partition_point(|row| at(row) < begins + self.step);
            let rows = series.get(first.saturating_sub(1)..last)?;
            rows.iter().min_by_key(|row| row.connected)
        };
        (0..self.count).map(column).collect()
    }
}

/// Draws the columns; what stands for what is told by [`legend`].
pub(super) fn draw(page: &mut Page, margin: usize, columns: &Columns, series: &[StatusRow]) {
    let columns = columns.of(series);
    let all = columns.iter().flatten().map(|row| total(row)).max();
    for height in (0..HEIGHT).rev() {
        let label = match height + 1 == HEIGHT {
            true => format!("  {:<7}{:>7} ", "clients", count(all.unwrap_or(0))),
            false => String::new(),
        };
        let mut spans = vec![
            (Tone::Plain, format!("{label:<margin$}")),
            (Tone::Quiet, "│".to_owned()),
        ];
        for row in &columns {
            let (mark, tone, _) = row.map_or((' ', Tone::Plain, ""), |row| cell(row, height));
            match spans.last_mut() {
                Some((last, text)) if *last == tone => text.push(mark),
                _ => spans.push((tone, mark.into())),
            }
        }
        let spans: Vec<_> = spans.iter().map(|(tone, text)| (*tone, &**text)).collect();
        page.line(&spans);
    }
}

/// The marks that were used, with their meanings.
pub(super) fn legend(page: &mut Page, margin: usize, columns: &Columns, series: &[StatusRow]) {
    let columns = columns.of(series);
    let rows = || columns.iter().flatten();
    let used = |layer: &&Layer| rows().any(|row| (0..HEIGHT).any(|n| cell(row, n) == **layer));
    let told: Vec<_> = LAYERS
        .iter()
        .filter(used)
        .map(|(mark, _, word)| format!("{mark} {word}"))
        .collect();
    page.line(&[(Tone::Quiet, &format!("{:margin$} {}", "", told.join("   ")))]);
}

fn total(row: &StatusRow) -> u64 {
    layers(row).iter().sum()
}

/// What stands at this height: whose share its middle lies in. The top is never connected as long as somebody isn't.
fn cell(row: &StatusRow, height: u64) -> Layer {
    let mut below = 0;
    let middle = (2 * height + 1) * total(row);
    let mut found = 0;
    for (n, clients) in layers(row).into_iter().enumerate() {
        below += clients;
        if 2 * HEIGHT * below > middle {
            found = n;
            break;
        }
    }
    if height + 1 == HEIGHT && found == 0 {
        let others = layers(row).into_iter().enumerate().skip(1);
        let most = others.filter(|(_, n)| *n > 0).max_by_key(|(_, n)| *n);
        found = most.map_or(0, |(n, _)| n);
    }
    LAYERS[found]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at_ms: f64, connected: u32, reconnecting: u32, disconnected: u32) -> StatusRow {
        StatusRow {
            at_ms,
            connected,
            reconnecting,
            disconnected,
            ..StatusRow::default()
        }
    }

    #[test]
    fn everybody_has_a_place_and_whoever_is_away_is_seen() {
        let series = [
            row(0.0, 100, 0, 0),
            row(2.0, 0, 40, 60),
            row(2.5, 30, 0, 70),
            row(4.0, 50, 25, 25),
            row(6.0, 99, 1, 0),
            row(7.0, 100, 0, 0),
        ];
        let columns = Columns {
            from: 0,
            until: 9_000,
            step: 1_000,
            count: 10,
        };
        let mut page = Page::new(super::super::Colour::Never);
        draw(&mut page, 17, &columns, &series);
        legend(&mut page, 17, &columns, &series);
        let told = page.finish();
        let lines: Vec<_> = told.lines().collect();
        assert_eq!(
            lines,
            [
                "  clients    100 │██····▒██",
                "                 │██··▒▒███",
                "                 │██▒·█████",
                "                 │██▒██████",
                "                  █ connected   ▒ dialling   · away",
            ]
        );
    }
}
