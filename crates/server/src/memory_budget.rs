//! A byte budget shared by all calls. A caller waits when it is used up.
//!
//! The caller that has waited longest and the one that came last are served by turns: nobody waits for ever, and a crowd of
//! clients that hold memory and do nothing does not keep out all who come later.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// Up to this many bytes are not counted: a connection takes as much by itself.
pub const UNCOUNTED_MAX: usize = 16 << 10;
/// Up to this many bytes come from a budget of their own, so that small amounts never wait for large ones.
const SMALL_MAX: usize = 256 << 10;
const SMALL_TOTAL: usize = 16 << 20;
const LARGE_TOTAL: usize = 64 << 20;

/// A transfer that stands still for so long while somebody waits for its memory is too slow,
const STALL_MAX: Duration = Duration::from_secs(1);
/// and so is one that is slower than this, after this time.
pub const BYTES_PER_SECOND_MIN: u64 = 1 << 20;
const GRACE: Duration = Duration::from_secs(2);
/// How often the holder of a permit checks whether somebody waits for its memory.
pub const WAITER_CHECK: Duration = Duration::from_millis(100);

/// A budget for small amounts and one for large ones.
pub struct MemoryBudgets {
    small: Arc<MemoryBudget>,
    large: Arc<MemoryBudget>,
}

impl MemoryBudgets {
    /// Twice the `largest` fits in any case.
    pub fn new(largest: u64) -> Self {
        let largest = usize::try_from(largest).unwrap_or(usize::MAX >> 1);
        let large = LARGE_TOTAL.max(largest.saturating_mul(2));
        Self { small: MemoryBudget::new(SMALL_TOTAL), large: MemoryBudget::new(large) }
    }

    /// The budget that so many bytes come from. `None` if they are not counted.
    pub fn of(&self, bytes: usize) -> Option<&Arc<MemoryBudget>> {
        let budget = if bytes <= SMALL_MAX { &self.small } else { &self.large };
        (bytes > UNCOUNTED_MAX).then_some(budget)
    }

    pub fn have_waiters(&self) -> bool {
        self.large.has_waiters() || self.small.has_waiters()
    }
}

pub struct MemoryBudget {
    size: usize,
    state: Mutex<State>,
}

struct State {
    free: usize,
    /// In the order in which their requests arrived.
    waiting: VecDeque<Waiting>,
    next_waiter: NextWaiter,
    tickets: u64,
}

struct Waiting {
    ticket: u64,
    came: Instant,
    bytes: usize,
    permit: oneshot::Sender<Permit>,
}

/// Which waiter is served next.
#[derive(Clone, Copy)]
enum NextWaiter {
    Oldest,
    Newest,
}

/// Bytes of a budget, returned when this is dropped.
pub struct Permit {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl MemoryBudget {
    pub fn new(size: usize) -> Arc<Self> {
        let state = State {
            free: size,
            waiting: VecDeque::new(),
            next_waiter: NextWaiter::Oldest,
            tickets: 0,
        };
        Arc::new(Self { size, state: Mutex::new(state) })
    }

    /// A permit, if so much is free and nobody waits. More than the budget gets all of it.
    pub fn try_acquire(self: &Arc<Self>, bytes: usize) -> Option<Permit> {
        let bytes = bytes.min(self.size);
        let mut state = self.lock();
        if !state.waiting.is_empty() || state.free < bytes {
            return None;
        }
        state.free -= bytes;
        Some(Permit { budget: Arc::clone(self), bytes })
    }

    /// True if so much would be free once `returned` bytes are returned.
    pub fn fits_with(&self, bytes: usize, returned: usize) -> bool {
        bytes.min(self.size) <= self.lock().free + returned
    }

    /// Waits for a permit, on behalf of a request that arrived at `came`.
    pub async fn acquire(self: &Arc<Self>, bytes: usize, came: Instant) -> Permit {
        loop {
            if let Some(permit) = self.try_acquire(bytes) {
                return permit;
            }
            let (ticket, permit) = self.join(bytes.min(self.size), came);
            let _waiting = WaiterGuard { budget: self, ticket };
            // A permit may have been returned in between.
            self.serve_waiters();
            if let Ok(permit) = permit.await {
                return permit;
            }
        }
    }

    pub fn has_waiters(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    fn join(&self, bytes: usize, came: Instant) -> (u64, oneshot::Receiver<Permit>) {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        state.tickets += 1;
        let ticket = state.tickets;
        let place = state.waiting.partition_point(|waiting| waiting.came <= came);
        state.waiting.insert(place, Waiting { ticket, came, bytes, permit: sender });
        (ticket, receiver)
    }

    /// Serves the next waiters, as long as their bytes are free.
    fn serve_waiters(self: &Arc<Self>) {
        loop {
            let Some(Waiting { bytes, permit, .. }) = self.lock().next() else { return };
            // A waiter that is gone returns it at once.
            let _ = permit.send(Permit { budget: Arc::clone(self), bytes });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self) -> Option<Waiting> {
        let next = match self.next_waiter {
            NextWaiter::Oldest => self.waiting.front(),
            NextWaiter::Newest => self.waiting.back(),
        };
        if next?.bytes > self.free {
            return None;
        }
        let next = match self.next_waiter {
            NextWaiter::Oldest => self.waiting.pop_front(),
            NextWaiter::Newest => self.waiting.pop_back(),
        }?;
        self.free -= next.bytes;
        self.next_waiter = match self.next_waiter {
            NextWaiter::Oldest => NextWaiter::Newest,
            NextWaiter::Newest => NextWaiter::Oldest,
        };
        Some(next)
    }
}

/// Removes a waiter when it is dropped.
struct WaiterGuard<'a> {
    budget: &'a Arc<MemoryBudget>,
    ticket: u64,
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        self.budget.lock().waiting.retain(|waiting| waiting.ticket != self.ticket);
        // The next one may need less.
        self.budget.serve_waiters();
    }
}

impl Permit {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// Keeps so many bytes, and returns the rest.
    pub fn shrink_to(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        self.bytes -= spare;
        if spare > 0 {
            self.budget.lock().free += spare;
            self.budget.serve_waiters();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// How fast the holder of a permit sends or receives, by the time that it was waited for.
#[derive(Default)]
pub struct TransferRate {
    moved: u64,
    waited: Duration,
    since: Option<Instant>,
}

impl TransferRate {
    /// Notes that it is waited for from now on.
    pub fn wait(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    pub fn add(&mut self, bytes: u64, now: Instant) {
        self.moved += bytes;
        if let Some(since) = self.since.take() {
            self.waited += now.saturating_duration_since(since);
        }
    }

    /// True if it is too slow while somebody waits for its memory.
    pub fn is_too_slow(&self, now: Instant) -> bool {
        let stalled =
            self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let allowed = GRACE + Duration::from_millis(self.moved / (BYTES_PER_SECOND_MIN / 1000));
        stalled >= STALL_MAX || self.waited + stalled > allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// Waits a little: what can be answered now is.
    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn no_more_is_held_than_there_is_room() {
        let budget = MemoryBudget::new(10);
        let mut six = budget.try_acquire(6).expect("there is memory");
        assert!(budget.try_acquire(5).is_none());
        let four = budget.try_acquire(4).expect("there is memory");
        six.shrink_to(1);
        assert_eq!(six.bytes(), 1);
        assert!(budget.try_acquire(6).is_none());
        let five = budget.try_acquire(5).expect("some was given back");
        drop((four, five, six));
        assert_eq!(budget.try_acquire(99).expect("all of it").bytes(), 10);
        assert_eq!(budget.lock().free, 10);
    }

    #[test]
    fn the_oldest_and_the_newest_are_let_in_by_turns() {
        let budget = MemoryBudget::new(1);
        let mut inside = budget.try_acquire(1);
        let start = Instant::now();
        let came = |number| start + Duration::from_secs(number);
        // They find out that there is no budget in another order than they came.
        let mut waiting: Vec<_> = [2, 0, 1, 4, 3]
            .map(|number| (number, Box::pin(budget.acquire(1, came(number)))))
            .into_iter()
            .collect();
        for (_, waiting) in &mut waiting {
            assert!(poll(waiting.as_mut()).is_pending());
        }
        assert!(budget.has_waiters());
        let mut order = Vec::new();
        while !waiting.is_empty() {
            inside.take();
            let mut entered = None;
            for (at, (_, waiting)) in waiting.iter_mut().enumerate() {
                if let Poll::Ready(permit) = poll(waiting.as_mut()) {
                    assert!(entered.replace(at).is_none(), "two at once");
                    inside = Some(permit);
                }
            }
            order.push(waiting.remove(entered.expect("somebody is let in")).0);
        }
        assert_eq!(order, [0, 4, 1, 3, 2]);
        assert!(!budget.has_waiters());
    }

    #[test]
    fn whoever_leaves_is_not_waited_for() {
        let budget = MemoryBudget::new(10);
        let inside = budget.try_acquire(5).expect("there is memory");
        let now = Instant::now();
        let mut large = Box::pin(budget.acquire(6, now));
        assert!(poll(large.as_mut()).is_pending());
        let mut small = pin!(budget.acquire(3, now));
        assert!(poll(small.as_mut()).is_pending(), "nobody passes those who wait");
        assert!(budget.try_acquire(1).is_none());
        drop(large);
        let Poll::Ready(small) = poll(small.as_mut()) else { panic!("there is memory for it") };
        // One who was let in and left without knowing gives it back.
        let mut late = Box::pin(budget.acquire(10, now));
        assert!(poll(late.as_mut()).is_pending());
        drop((inside, small));
        drop(late);
        assert_eq!(budget.lock().free, 10);
    }

    #[test]
    fn small_things_have_a_room_of_their_own() {
        let rooms = MemoryBudgets::new(10 << 20);
        assert!(rooms.of(UNCOUNTED_MAX).is_none());
        let size = |bytes| rooms.of(bytes).expect("counted").size;
        assert_eq!((size(UNCOUNTED_MAX + 1), size(SMALL_MAX)), (SMALL_TOTAL, SMALL_TOTAL));
        assert_eq!(size(SMALL_MAX + 1), LARGE_TOTAL);
        assert_eq!(MemoryBudgets::new(100 << 20).of(100 << 20).expect("counted").size, 200 << 20);
    }

    #[test]
    fn what_stalls_or_trickles_is_too_slow() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut stalled = TransferRate::default();
        stalled.wait(start);
        assert!(!stalled.is_too_slow(after(999)));
        assert!(stalled.is_too_slow(after(1000)));
        stalled.add(1, after(1000));
        // As long as nobody waits for it, it is not slow.
        assert!(!stalled.is_too_slow(after(60_000)));

        let pace = |bytes| {
            let mut pace = TransferRate::default();
            (0..100)
                .take_while(|step| {
                    let at = after(step * 500);
                    pace.wait(at);
                    pace.add(bytes, at + Duration::from_millis(500));
                    !pace.is_too_slow(at + Duration::from_millis(500))
                })
                .count()
        };
        assert_eq!(pace(1), 4, "a byte now and then");
        assert_eq!(pace(BYTES_PER_SECOND_MIN / 2), 100);
        assert!((5..20).contains(&pace(BYTES_PER_SECOND_MIN / 4)));
    }
}
