//! How long ago something was, as a person would say it.

use jiff::Timestamp;

/// Returns the time between two moments in its largest unit; a date beyond a month.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - then.as_second();
    match seconds {
        ..5 => "now".into(),
        5..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..2_592_000 => format!("{}d", seconds / 86_400),
        _ => then.strftime("%Y-%m-%d").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_its_largest_unit() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        for (seconds, expected) in
            [(0, "now"), (59, "59s"), (60, "1m"), (7200, "2h"), (200_000, "2d"), (3_000_000, "2026-12-11")]
        {
            let then = Timestamp::from_second(1_800_000_000 - seconds).unwrap();
            assert_eq!(age(then, now), expected);
        }
    }
}
