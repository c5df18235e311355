//! Gives memory back when the server falls idle.
//!
//! A large read leaves its buffers with the allocator. While calls come in that is what makes them fast; once
//! they stop it only counts against us.

use std::sync::Arc;
use std::time::Duration;

use crate::calls::Calls;

/// Idle for so long after what came before, this is given back.
const STEPS: [(Duration, fn()); 3] = [
    (Duration::from_millis(500), let_go_of_code),
    (Duration::from_millis(500), give_back),
    // Threads for files end meanwhile, and connections that nothing came from; what they kept is left behind.
    (Duration::from_secs(3), || {
        tools::code::give_back();
        give_back();
        let_go_of_code();
    }),
];

/// For as long as the server runs. Looks once in a while rather than at every call: under load it must cost nothing.
pub async fn give_back_when_idle(calls: Arc<Calls>) {
    'busy: loop {
        for (time, give) in STEPS {
            let seen = calls.stirs();
            tokio::time::sleep(time).await;
            if calls.stirs() != seen || calls.at_work() > 0 {
                continue 'busy;
            }
            give();
        }
        calls.stirred().await;
    }
}

/// Once, soon after the start: much of the code that a program starts with is not run again.
pub async fn let_go_of_what_started() {
    tokio::time::sleep(STEPS[0].0).await;
    let_go_of_code();
}

/// One heap for all threads: what each keeps to itself cannot be given back, and ours are not many. What is freed stays
/// with it until the server is idle, as far as it is not much: to get it again costs more than to read into it. To be
/// called before there are others.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library's own interface; it takes numbers")]
pub fn share_one_heap() {
    // SAFETY: no other thread is there yet whose allocations the setting could meet half way.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 8 << 20);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_one_heap() {}

/// The program's own code is most of what it has in memory when it idles. What is run again comes back by itself, from
/// the file, in a tenth of a millisecond.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the linker tells by symbols where the code is, the kernel takes a pointer"
)]
fn let_go_of_code() {
    unsafe extern "C" {
        static __executable_start: u8;
        static etext: u8;
    }
    let (start, end) = (&raw const __executable_start, &raw const etext);
    let length = (end as usize).saturating_sub(start as usize);
    // SAFETY: only addresses of the symbols are used. Between them are the tables of the loader, which is done, and the
    // code: nobody has written to these pages, so the file has all that is in them.
    unsafe {
        libc::madvise(start.cast_mut().cast(), length, libc::MADV_DONTNEED);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn let_go_of_code() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the C library's own interface; it takes a number and touches only free memory"
)]
fn give_back() {
    empty_cache_of_this_thread();
    // SAFETY: `malloc_trim` may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// A thread keeps a few free blocks of every small size to itself; a few hundred of them, strewn over the heap, keep as
/// many pages from being given back. A thread that ends gives its own back, so one is lent ours to end with.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn empty_cache_of_this_thread() {
    const SMALL: usize = 1032;
    const BLOCKS_OF_A_SIZE: usize = 16;
    let sizes = (24..=SMALL).step_by(16);
    let blocks: Vec<Vec<u8>> = sizes
        .flat_map(|size| {
            std::iter::repeat_with(move || Vec::with_capacity(size)).take(BLOCKS_OF_A_SIZE)
        })
        .collect();
    let _ = std::thread::spawn(move || drop(blocks)).join();
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}
