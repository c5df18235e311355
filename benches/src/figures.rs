//! What was measured, and how it is told.

use std::time::Duration;

use serde_json::{Value, json};

/// The times of one operation, and what the server's processor did for each.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    times: Vec<Duration>,
    cpu: Duration,
}

impl Figures {
    pub fn add(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// What the server took of the processor for calls that were added.
    pub fn add_cpu(&mut self, cpu: Duration) {
        self.cpu += cpu;
    }

    /// What others measured of the same.
    pub fn add_all(&mut self, others: &Self) {
        self.times.extend_from_slice(&others.times);
        self.cpu += others.cpu;
    }

    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// The time that this share of the calls took at most.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut times = self.times.clone();
        times.sort();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index between the first and the last"
        )]
        let at = (share * (times.len().max(1) - 1) as f64).round() as usize;
        times.get(at).map_or(f64::NAN, |time| milliseconds(*time))
    }

    /// All that is worth keeping, in milliseconds: the processor's time for each call, and every twentieth part of the
    /// times, from the shortest to the longest.
    pub fn to_json(&self) -> Value {
        let rounded = |number: f64| (number * 1e4).round() / 1e4;
        let part = |part: u32| rounded(self.quantile(f64::from(part) / 20.0));
        let times: Vec<f64> = (0..=20).map(part).collect();
        json!({ "calls": self.len(), "cpu": rounded(self.cpu()), "times": times })
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Milliseconds of the server's processor for each call.
    pub fn cpu(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let calls = self.times.len() as f64;
        milliseconds(self.cpu) / calls
    }
}

pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A number with three digits that count.
pub fn short(number: f64) -> String {
    match number {
        number if number.is_nan() => "–".into(),
        number if number < 0.1 => format!("{number:.4}"),
        number if number < 1.0 => format!("{number:.3}"),
        number if number < 10.0 => format!("{number:.2}"),
        number if number < 100.0 => format!("{number:.1}"),
        number => format!("{number:.0}"),
    }
}

pub fn megabytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
    let megabytes = bytes as f64 / f64::from(1 << 20);
    format!("{megabytes:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let mut figures = Figures::default();
        for milliseconds in [5, 1, 4, 2, 3] {
            figures.add(Duration::from_millis(milliseconds));
        }
        figures.add_cpu(Duration::from_millis(10));
        let found = [0.0, 0.5, 0.95, 1.0].map(|share| short(figures.quantile(share)));
        assert_eq!(found, ["1.00", "3.00", "5.00", "5.00"]);
        assert_eq!(short(figures.cpu()), "2.00");
    }

    #[test]
    fn nothing_measured_is_told_as_nothing() {
        assert_eq!(short(Figures::default().median()), "–");
        assert_eq!(short(Figures::default().cpu()), "–");
    }
}
