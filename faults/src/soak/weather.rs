//! Whether the disk was well all the time that something took.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How often a fault has begun or ended: while one is under way, it is odd.
pub struct Weather(AtomicUsize);

/// A moment to look back to.
#[derive(Clone, Copy)]
pub struct Since(usize);

impl Weather {
    pub fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// A fault, until it is dropped. There is one at a time.
    pub fn storm(&self) -> Storm<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Storm(self)
    }

    pub fn now(&self) -> Since {
        Since(self.0.load(Ordering::SeqCst))
    }

    /// Whether there was no fault at any time since then.
    pub fn was_fair(&self, Since(then): Since) -> bool {
        then.is_multiple_of(2) && self.0.load(Ordering::SeqCst) == then
    }
}

pub struct Storm<'a>(&'a Weather);

impl Drop for Storm<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_seen_by_all_that_began_before_its_end() {
        let weather = Weather::new();
        let before = weather.now();
        assert!(weather.was_fair(before));
        let storm = weather.storm();
        let during = weather.now();
        assert!(!weather.was_fair(before) && !weather.was_fair(during));
        drop(storm);
        assert!(!weather.was_fair(before) && !weather.was_fair(during));
        assert!(weather.was_fair(weather.now()));
    }
}
