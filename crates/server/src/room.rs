//! Room: how many bytes may be held at once. What finds none waits.
//!
//! Whoever has waited longest and whoever came last are let in by turns: nobody is kept waiting for ever, and a crowd
//! that comes in only to sit there does not keep out everybody who comes after it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// So little is not counted: it is a part of what a connection takes by itself.
pub const UNCOUNTED: usize = 16 << 10;
/// What holds no more than this has a room of its own, so that it never waits for what holds much.
const SMALL: usize = 256 << 10;
const FOR_SMALL: usize = 16 << 20;
const FOR_LARGE: usize = 64 << 20;

/// What holds room and does not move for so long has to go, if somebody waits for it.
const STALL: Duration = Duration::from_secs(1);
/// The same for what moves, but slower than it must.
const GRACE: Duration = Duration::from_secs(2);
/// Bytes that must move in a second.
pub const SLOWEST: u64 = 1 << 20;
/// How often those who hold room look whether somebody waits for it.
pub const LOOK: Duration = Duration::from_millis(100);

/// Room for small things and room for large ones.
pub struct Rooms {
    small: Arc<Room>,
    large: Arc<Room>,
}

impl Rooms {
    /// Twice the `largest` fits in any case.
    pub fn new(largest: u64) -> Self {
        let largest = usize::try_from(largest).unwrap_or(usize::MAX >> 1);
        let large = FOR_LARGE.max(largest.saturating_mul(2));
        Self { small: Room::new(FOR_SMALL), large: Room::new(large) }
    }

    /// Where so many bytes are counted, if they are.
    pub fn of(&self, bytes: usize) -> Option<&Arc<Room>> {
        let room = if bytes <= SMALL { &self.small } else { &self.large };
        (bytes > UNCOUNTED).then_some(room)
    }

    pub fn are_waited_for(&self) -> bool {
        self.large.is_waited_for() || self.small.is_waited_for()
    }
}

pub struct Room {
    size: usize,
    state: Mutex<State>,
}

struct State {
    free: usize,
    /// In the order in which their requests came.
    waiting: VecDeque<Waiting>,
    turn: Turn,
    tickets: u64,
}

struct Waiting {
    ticket: u64,
    came: Instant,
    bytes: usize,
    share: oneshot::Sender<Share>,
}

/// Who is let in next.
#[derive(Clone, Copy)]
enum Turn {
    Oldest,
    Newest,
}

/// A part of the room, given back when it is dropped.
pub struct Share {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    pub fn new(size: usize) -> Arc<Self> {
        let state = State { free: size, waiting: VecDeque::new(), turn: Turn::Oldest, tickets: 0 };
        Arc::new(Self { size, state: Mutex::new(state) })
    }

    /// A share, if there is room and nobody waits for it. What is larger than the room gets all of it.
    pub fn take_now(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let bytes = bytes.min(self.size);
        let mut state = self.lock();
        if !state.waiting.is_empty() || state.free < bytes {
            return None;
        }
        state.free -= bytes;
        Some(Share { room: Arc::clone(self), bytes })
    }

    /// Whether there would be room if somebody gave so much back.
    pub fn fits_with(&self, bytes: usize, given_back: usize) -> bool {
        bytes.min(self.size) <= self.lock().free + given_back
    }

    /// Waits until there is room, on behalf of a request that `came` when it did.
    pub async fn take(self: &Arc<Self>, bytes: usize, came: Instant) -> Share {
        loop {
            if let Some(share) = self.take_now(bytes) {
                return share;
            }
            let (ticket, share) = self.join(bytes.min(self.size), came);
            let _place = Place { room: self, ticket };
            // Somebody may have left in between.
            self.let_in();
            if let Ok(share) = share.await {
                return share;
            }
        }
    }

    pub fn is_waited_for(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    fn join(&self, bytes: usize, came: Instant) -> (u64, oneshot::Receiver<Share>) {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        state.tickets += 1;
        let ticket = state.tickets;
        let place = state.waiting.partition_point(|waiting| waiting.came <= came);
        state.waiting.insert(place, Waiting { ticket, came, bytes, share: sender });
        (ticket, receiver)
    }

    /// Lets in whoever's turn it is, as long as they fit.
    fn let_in(self: &Arc<Self>) {
        loop {
            let Some(Waiting { bytes, share, .. }) = self.lock().next() else { return };
            // Whoever is gone by now gives it back at once.
            let _ = share.send(Share { room: Arc::clone(self), bytes });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self) -> Option<Waiting> {
        let next = match self.turn {
            Turn::Oldest => self.waiting.front(),
            Turn::Newest => self.waiting.back(),
        };
        if next?.bytes > self.free {
            return None;
        }
        let next = match self.turn {
            Turn::Oldest => self.waiting.pop_front(),
            Turn::Newest => self.waiting.pop_back(),
        }?;
        self.free -= next.bytes;
        self.turn = match self.turn {
            Turn::Oldest => Turn::Newest,
            Turn::Newest => Turn::Oldest,
        };
        Some(next)
    }
}

/// A place among those who wait, left when it is dropped.
struct Place<'a> {
    room: &'a Arc<Room>,
    ticket: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.room.lock().waiting.retain(|waiting| waiting.ticket != self.ticket);
        // Whoever was behind may fit.
        self.room.let_in();
    }
}

impl Share {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// Keeps so many bytes of it, and gives the rest back.
    pub fn shrink_to(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        self.bytes -= spare;
        if spare > 0 {
            self.room.lock().free += spare;
            self.room.let_in();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// How fast something moves that holds room, by the time that it kept us waiting.
#[derive(Default)]
pub struct Pace {
    moved: u64,
    waited: Duration,
    since: Option<Instant>,
}

impl Pace {
    /// From now on we wait for it.
    pub fn wait(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    pub fn move_on(&mut self, bytes: u64, now: Instant) {
        self.moved += bytes;
        if let Some(since) = self.since.take() {
            self.waited += now.saturating_duration_since(since);
        }
    }

    /// Too slow for something that somebody else waits for.
    pub fn is_too_slow(&self, now: Instant) -> bool {
        let stalled =
            self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let allowed = GRACE + Duration::from_millis(self.moved / (SLOWEST / 1000));
        stalled >= STALL || self.waited + stalled > allowed
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
        let room = Room::new(10);
        let mut six = room.take_now(6).expect("there is room");
        assert!(room.take_now(5).is_none());
        let four = room.take_now(4).expect("there is room");
        six.shrink_to(1);
        assert_eq!(six.bytes(), 1);
        assert!(room.take_now(6).is_none());
        let five = room.take_now(5).expect("some was given back");
        drop((four, five, six));
        assert_eq!(room.take_now(99).expect("all of it").bytes(), 10);
        assert_eq!(room.lock().free, 10);
    }

    #[test]
    fn the_oldest_and_the_newest_are_let_in_by_turns() {
        let room = Room::new(1);
        let mut inside = room.take_now(1);
        let start = Instant::now();
        let came = |number| start + Duration::from_secs(number);
        // They find out that there is no room in another order than they came.
        let mut waiting: Vec<_> = [2, 0, 1, 4, 3]
            .map(|number| (number, Box::pin(room.take(1, came(number)))))
            .into_iter()
            .collect();
        for (_, waiting) in &mut waiting {
            assert!(poll(waiting.as_mut()).is_pending());
        }
        assert!(room.is_waited_for());
        let mut order = Vec::new();
        while !waiting.is_empty() {
            inside.take();
            let mut entered = None;
            for (at, (_, waiting)) in waiting.iter_mut().enumerate() {
                if let Poll::Ready(share) = poll(waiting.as_mut()) {
                    assert!(entered.replace(at).is_none(), "two at once");
                    inside = Some(share);
                }
            }
            order.push(waiting.remove(entered.expect("somebody is let in")).0);
        }
        assert_eq!(order, [0, 4, 1, 3, 2]);
        assert!(!room.is_waited_for());
    }

    #[test]
    fn whoever_leaves_is_not_waited_for() {
        let room = Room::new(10);
        let inside = room.take_now(5).expect("there is room");
        let now = Instant::now();
        let mut large = Box::pin(room.take(6, now));
        assert!(poll(large.as_mut()).is_pending());
        let mut small = pin!(room.take(3, now));
        assert!(poll(small.as_mut()).is_pending(), "nobody passes those who wait");
        assert!(room.take_now(1).is_none());
        drop(large);
        let Poll::Ready(small) = poll(small.as_mut()) else { panic!("there is room for it") };
        // One who was let in and left without knowing gives it back.
        let mut late = Box::pin(room.take(10, now));
        assert!(poll(late.as_mut()).is_pending());
        drop((inside, small));
        drop(late);
        assert_eq!(room.lock().free, 10);
    }

    #[test]
    fn small_things_have_a_room_of_their_own() {
        let rooms = Rooms::new(10 << 20);
        assert!(rooms.of(UNCOUNTED).is_none());
        let size = |bytes| rooms.of(bytes).expect("counted").size;
        assert_eq!((size(UNCOUNTED + 1), size(SMALL)), (FOR_SMALL, FOR_SMALL));
        assert_eq!(size(SMALL + 1), FOR_LARGE);
        assert_eq!(Rooms::new(100 << 20).of(100 << 20).expect("counted").size, 200 << 20);
    }

    #[test]
    fn what_stalls_or_trickles_is_too_slow() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut stalled = Pace::default();
        stalled.wait(start);
        assert!(!stalled.is_too_slow(after(999)));
        assert!(stalled.is_too_slow(after(1000)));
        stalled.move_on(1, after(1000));
        // As long as nobody waits for it, it is not slow.
        assert!(!stalled.is_too_slow(after(60_000)));

        let pace = |bytes| {
            let mut pace = Pace::default();
            (0..100)
                .take_while(|step| {
                    let at = after(step * 500);
                    pace.wait(at);
                    pace.move_on(bytes, at + Duration::from_millis(500));
                    !pace.is_too_slow(at + Duration::from_millis(500))
                })
                .count()
        };
        assert_eq!(pace(1), 4, "a byte now and then");
        assert_eq!(pace(SLOWEST / 2), 100);
        assert!((5..20).contains(&pace(SLOWEST / 4)));
    }
}
