//! Formats times as ISO-8601 in UTC, as people and logs write them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Formats a time as `2025-06-04T10:30:00Z`.
pub fn seconds(time: SystemTime) -> String {
    format!("{}Z", split(time).0)
}

/// Formats a time as `2025-06-04T10:30:00.125Z`.
pub fn millis(time: SystemTime) -> String {
    let (seconds, millis) = split(time);
    format!("{seconds}.{millis:03}Z")
}

fn split(time: SystemTime) -> (String, u32) {
    let (seconds, nanos) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (i64::try_from(after.as_secs()).unwrap_or(i64::MAX), after.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let seconds = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            match before.subsec_nanos() {
                0 => (-seconds, 0),
                nanos => (-seconds - 1, 1_000_000_000 - nanos),
            }
        }
    };
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days are counted from 0000-03-01, so that a leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    (format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"), nanos / 1_000_000)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn known_times() {
        let check =
            |after, shown| assert_eq!(seconds(UNIX_EPOCH + Duration::from_secs(after)), shown);
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_709_251_199, "2024-02-29T23:59:59Z");
        check(1_709_251_200, "2024-03-01T00:00:00Z");
        check(1_749_033_000, "2025-06-04T10:30:00Z");
        check(4_102_444_799, "2099-12-31T23:59:59Z");
        assert_eq!(seconds(UNIX_EPOCH - Duration::from_millis(1)), "1969-12-31T23:59:59Z");
        assert_eq!(millis(UNIX_EPOCH - Duration::from_millis(1)), "1969-12-31T23:59:59.999Z");
        assert_eq!(millis(UNIX_EPOCH - Duration::from_millis(1500)), "1969-12-31T23:59:58.500Z");
        assert_eq!(millis(UNIX_EPOCH + Duration::from_millis(1500)), "1970-01-01T00:00:01.500Z");
    }

    #[test]
    fn every_day_of_a_thousand_years() {
        let (mut year, mut month, mut day) = (1600, 1, 1);
        for days in -135_140_i64..=229_700 {
            let since = Duration::from_secs(days.unsigned_abs() * 86_400);
            let time = if days < 0 { UNIX_EPOCH - since } else { UNIX_EPOCH + since };
            assert_eq!(seconds(time), format!("{year:04}-{month:02}-{day:02}T00:00:00Z"));
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + u32::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, day) if day == last => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
        assert_eq!(year, 2598);
    }
}
