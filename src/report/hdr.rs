//! The HdrHistogram files: `reconnect` (drop to reconnect, of each return), `connect` (dialled to open, of each open
//! connection) and `delivery` (a publication's due time to its first receipt by each client, so that neither a late
//! publisher nor a slow answer hides a wait).
//!
//! Values are recorded in nanoseconds with three significant digits, and shown in milliseconds, because that is what the
//! standard tools assume unless told otherwise. An `.hgrm` is the percentile distribution that they plot; an `.hlog`
//! holds the same times by interval, in the compressed encoding that every reader knows. An interval is a second, or as
//! many seconds as keep a log at [`MAX_INTERVALS`].

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;

use super::csv::place;
use super::{Input, Render};
use crate::history::{AttemptOutcome, Elapsed, Entry, History, PublicationKind};

pub(super) const FILES: &[(&str, Render)] = &[
    ("reconnect.hgrm", |out, input| {
        percentiles(out, input, reconnect)
    }),
    ("reconnect.hlog", |out, input| log(out, input, reconnect)),
    ("connect.hgrm", |out, input| {
        percentiles(out, input, connect)
    }),
    ("connect.hlog", |out, input| log(out, input, connect)),
    ("delivery.hgrm", |out, input| {
        percentiles(out, input, delivery)
    }),
    ("delivery.hlog", |out, input| log(out, input, delivery)),
];

/// The most intervals of one log.
pub const MAX_INTERVALS: u64 = 600;

const DIGITS: u8 = 3;
/// Sub-buckets of a histogram with three digits: the power of two from 2 x 10^3.
const SUB_BUCKETS: u32 = 2048;
const NANOS_PER_MS: f64 = 1e6;
/// Steps of the percentiles between a distance to 100 % and its half, as in the standard tools.
const TICKS: u32 = 5;

/// Takes a time: when it was over, and how long it was.
type Sink<'a> = dyn FnMut(Elapsed, Duration) + 'a;
/// Hands over every time of one kind, in any order.
type Times = fn(&Input<'_>, &mut Sink<'_>);

fn reconnect(input: &Input<'_>, sink: &mut Sink<'_>) {
    for absence in &input.verdict.returns {
        let client = place(input.history, absence.client);
        let session = client
            .zip(absence.session)
            .and_then(|(client, n)| input.history.clients[client].sessions.get(n));
        if let Some(session) = session {
            sink(session.opened, session.opened.since(absence.dropped));
        }
    }
}

fn connect(input: &Input<'_>, sink: &mut Sink<'_>) {
    let attempts = input.history.clients.iter().flat_map(|c| &c.attempts);
    for attempt in attempts.filter(|a| a.outcome == AttemptOutcome::Opened) {
        sink(attempt.ended, attempt.ended.since(attempt.dialled));
    }
}

fn delivery(input: &Input<'_>, sink: &mut Sink<'_>) {
    let due = due(input.history);
    // Which client had the publication last: enough to know a client's second receipt, without a set for each client.
    let mut had = vec![None; input.history.publications.len()];
    for client in &input.history.clients {
        for entry in client.entries(input.history) {
            let Entry::Receipt(receipt) = entry else {
                continue;
            };
            if let Some((publication, due)) = due[receipt.event.0 as usize]
                && had[publication] != Some(client.id)
            {
                had[publication] = Some(client.id);
                sink(receipt.at, receipt.at.since(due));
            }
        }
    }
}

/// For each event of the history's table, the publication that it came from (its place by number) and when that was due.
fn due(history: &History) -> Vec<Option<(usize, Elapsed)>> {
    let publications: BTreeMap<_, _> = history
        .publications
        .values()
        .enumerate()
        .filter(|(_, p)| p.kind == PublicationKind::Expected)
        .map(|(n, p)| (p.seq, (n, p.due)))
        .collect();
    let of = |seq| publications.get(&seq).copied();
    history.events.iter().map(|e| e.seq.and_then(of)).collect()
}

fn histogram() -> io::Result<Histogram<u64>> {
    Histogram::new(DIGITS).map_err(io::Error::other)
}

fn record(histogram: &mut Histogram<u64>, time: Duration) -> io::Result<()> {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    histogram.record(nanos).map_err(io::Error::other)
}

/// The percentile distribution of the Java implementation's `outputPercentileDistribution`.
fn percentiles(out: &mut dyn Write, input: &Input<'_>, times: Times) -> io::Result<()> {
    let mut histogram = histogram()?;
    let mut result = Ok(());
    times(input, &mut |_, time| {
        if result.is_ok() {
            result = record(&mut histogram, time);
        }
    });
    result?;
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut count = 0;
    let steps = (!histogram.is_empty()).then(|| histogram.iter_quantiles(TICKS));
    for step in steps.into_iter().flatten() {
        count += step.count_since_last_iteration();
        let value = step.value_iterated_to() as f64 / NANOS_PER_MS;
        let quantile = step.quantile_iterated_to();
        write!(out, "{value:12.3} {quantile:2.12} {count:10}")?;
        if quantile < 1.0 {
            write!(out, " {:14.2}", 1.0 / (1.0 - quantile))?;
        }
        writeln!(out)?;
    }
    let (mean, deviation, max) = if histogram.is_empty() {
        (0.0, 0.0, 0.0)
    } else {
        (histogram.mean(), histogram.stdev(), histogram.max() as f64)
    };
    writeln!(
        out,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]",
        mean / NANOS_PER_MS,
        deviation / NANOS_PER_MS
    )?;
    writeln!(
        out,
        "#[Max     = {:12.3}, Total count    = {:12}]",
        max / NANOS_PER_MS,
        histogram.len()
    )?;
    writeln!(
        out,
        "#[Buckets = {:12}, SubBuckets     = {SUB_BUCKETS:12}]",
        histogram.buckets()
    )
}

fn log(mut out: &mut dyn Write, input: &Input<'_>, times: Times) -> io::Result<()> {
    let length = (input.history.horizon.micros() / 1_000_000)
        .div_ceil(MAX_INTERVALS)
        .max(1);
    let mut intervals: BTreeMap<u64, Histogram<u64>> = BTreeMap::new();
    let mut result = Ok(());
    times(input, &mut |at, time| {
        if result.is_ok() {
            result = keep(&mut intervals, at.micros() / 1_000_000 / length, time);
        }
    });
    result?;
    let began = SystemTime::UNIX_EPOCH
        + Duration::from_micros(input.history.header.started_unix_us.min(MAX_UNIX_US));
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .with_start_time(began)
        .with_base_time(began)
        .with_max_value_divisor(NANOS_PER_MS)
        .begin_log_with(&mut out, &mut serializer)?;
    writer.write_comment(
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"",
    )?;
    for (interval, histogram) in &intervals {
        writer
            .write_histogram(
                histogram,
                Duration::from_secs(interval * length),
                Duration::from_secs(length),
                None,
            )
            .map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(())
}

/// The year 9999: a wild header must not make the addition overflow.
const MAX_UNIX_US: u64 = 253_402_300_799_000_000;

fn keep(
    intervals: &mut BTreeMap<u64, Histogram<u64>>,
    interval: u64,
    time: Duration,
) -> io::Result<()> {
    let histogram = match intervals.entry(interval) {
        std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
        std::collections::btree_map::Entry::Vacant(entry) => entry.insert(histogram()?),
    };
    record(histogram, time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use crate::error::Exit;
    use crate::report::{Summary, fixture};

    fn written(name: &str) -> Vec<u8> {
        let (history, verdict) = fixture::fail();
        let input = Input {
            history: &history,
            verdict: &verdict,
            summary: &Summary::new(&history, &verdict, Exit::Fail),
        };
        let (_, render) = FILES.iter().find(|(file, _)| *file == name).unwrap();
        let mut out = Vec::new();
        render(&mut out, &input).unwrap();
        out
    }

    /// The rows of an .hgrm: value in ms, percentile as a fraction, count.
    fn rows(text: &str) -> Vec<(f64, f64, u64)> {
        let rows = text.lines().skip(2).filter(|line| !line.starts_with('#'));
        rows.map(|row| {
            let fields: Vec<_> = row.split_whitespace().collect();
            assert!(fields.len() == 4 || (fields.len() == 3 && fields[1] == "1.000000000000"));
            (
                fields[0].parse().unwrap(),
                fields[1].parse().unwrap(),
                fields[2].parse().unwrap(),
            )
        })
        .collect()
    }

    #[test]
    fn a_percentile_distribution_can_be_read() {
        let text = String::from_utf8(written("reconnect.hgrm")).unwrap();
        let rows = rows(&text);
        assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"));
        assert!(rows.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1 && a.2 <= b.2));
        let (most, all, count) = rows[rows.len() - 1];
        assert_eq!((all, count), (1.0, 200));
        assert!((1_000.0..20_000.0).contains(&most), "{most} ms");
        assert!(text.contains("Total count    =          200]"), "{text}");
    }

    /// 200 clients get 360 publications; client 17 misses one, and what client 42 got twice counts once.
    #[test]
    fn deliveries_count_once_for_each_pair_and_primings_not_at_all() {
        let text = String::from_utf8(written("delivery.hgrm")).unwrap();
        assert_eq!(rows(&text).last().unwrap().2, 200 * 360 - 1);
        assert_eq!(rows(&text)[0].0.round(), 2.0);
    }

    #[test]
    fn an_interval_log_holds_the_same_times() {
        let log = written("reconnect.hlog");
        let mut count = 0;
        let mut last = Duration::ZERO;
        for entry in IntervalLogIterator::new(&log) {
            if let LogEntry::Interval(interval) = entry.unwrap() {
                assert!(interval.start_timestamp() >= last);
                last = interval.start_timestamp();
                let bytes = base64(interval.encoded_histogram());
                let histogram: Histogram<u64> = Deserializer::new()
                    .deserialize(&mut bytes.as_slice())
                    .unwrap();
                count += histogram.len();
            }
        }
        assert_eq!(count, 200);
    }

    /// RFC 4648, just enough to read a log back.
    fn base64(text: &str) -> Vec<u8> {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let (mut bits, mut held, mut out) = (0u32, 0, Vec::new());
        for c in text.trim_end_matches('=').bytes() {
            let digit = ALPHABET.iter().position(|a| *a == c).unwrap();
            bits = bits << 6 | digit as u32;
            held += 6;
            if held >= 8 {
                held -= 8;
                out.push((bits >> held) as u8);
            }
        }
        out
    }
}
