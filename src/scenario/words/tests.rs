//! Units, right and wrong.

use super::*;

fn all<T: TryFrom<Word, Error = String>>(texts: &[&str]) -> Vec<Option<T>> {
    texts.iter().map(|text| word(text).ok()).collect()
}

#[test]
fn a_duration_needs_its_unit() {
    let ms = |ms| Some(Time(Duration::from_millis(ms)));
    assert_eq!(
        all(&["500ms", "5s", "10m", "1m 30s"]),
        [ms(500), ms(5_000), ms(600_000), ms(90_000)]
    );
    assert_eq!(
        all::<Time>(&[
            "5",
            "",
            "-5s",
            "5 parsecs",
            "s",
            "NaN",
            "1e3s",
            "500y",
            "9999999999999999999s"
        ]),
        [None; 9]
    );
    assert!(
        Time::try_from(Word::Integer(5))
            .unwrap_err()
            .contains("no unit")
    );
}

#[test]
fn ten_m_is_ten_million_where_a_count_stands() {
    let n = |n| Some(Count(n));
    assert_eq!(
        all(&["1000", "1k", "10K", "10m", "0"]),
        [n(1_000), n(1_000), n(10_000), n(10_000_000), n(0)]
    );
    assert_eq!(
        all::<Count>(&[
            "",
            "k",
            "-1",
            "+1",
            "1.5k",
            "10s",
            "1kk",
            "99999999999999999999",
            "18446744073709551615k"
        ]),
        [None; 9]
    );
}

#[test]
fn shares_are_percent_or_fractions() {
    assert_eq!(
        all(&["75%", "0.75", "100%", "0"]),
        [
            Some(Share(0.75)),
            Some(Share(0.75)),
            Some(Share(1.0)),
            Some(Share(0.0))
        ]
    );
    assert_eq!(
        all::<Share>(&["101%", "75", "-1%", "NaN", "inf", "%"]),
        [None; 6]
    );
}

#[test]
fn a_peak_is_a_share_in_a_window() {
    let peak = |share, window| Some(Peak { share, window });
    assert_eq!(
        all(&["75%/1s", "0.5/100ms", "30%"]),
        [
            peak(0.75, Some(Duration::from_secs(1))),
            peak(0.5, Some(Duration::from_millis(100))),
            peak(0.3, None)
        ]
    );
    assert_eq!(
        all::<Peak>(&["0%/1s", "101%/1s", "75%/0s", "75%/1", "/1s", "75%/"]),
        [None; 6]
    );
}

#[test]
fn a_rate_is_events_a_second() {
    assert_eq!(all(&["20/s", "0.5/s"]), [Some(Rate(20.0)), Some(Rate(0.5))]);
    assert_eq!(
        all::<Rate>(&["20", "0/s", "-1/s", "NaN/s", "inf/s", "20/m", "/s", "2e6/s"]),
        [None; 8]
    );
}

#[test]
fn a_shard_counts_from_1() {
    assert_eq!(
        all(&["2/4", "1/1"]),
        [
            Some(ShardOf(Shard { index: 2, of: 4 })),
            Some(ShardOf(Shard::WHOLE))
        ]
    );
    assert_eq!(
        all::<ShardOf>(&["0/4", "5/4", "1/0", "1", "a/b", "-1/4"]),
        [None; 6]
    );
}
