//! Returns memory to the system when the server falls idle.
//!
//! A large read leaves its buffers with the allocator. While calls come in that makes them fast.

use std::sync::Arc;
use std::time::Duration;

use crate::call::Calls;

/// Steps, each with the idle time before it.
const STEPS: [(Duration, fn()); 3] = [
    (Duration::from_millis(500), drop_code_pages),
    (Duration::from_millis(500), trim_heap),
    // Threads for files and idle connections have ended by then, and left memory behind.
    (Duration::from_secs(3), || {
        tools::code::free_unused();
        trim_heap();
        drop_code_pages();
    }),
];

/// Runs for as long as the server does. It polls: under load it must cost nothing.
pub async fn free_memory_when_idle(calls: Arc<Calls>) {
    'busy: loop {
        for (time, free) in STEPS {
            let seen = calls.activity.count();
            tokio::time::sleep(time).await;
            if calls.activity.count() != seen || calls.activity.running() > 0 {
                continue 'busy;
            }
            free();
        }
        calls.activity.changed().await;
    }
}

/// Runs once, soon after the start: much of the code of a start does not run again.
pub async fn drop_startup_pages() {
    tokio::time::sleep(STEPS[0].0).await;
    drop_code_pages();
}

/// Makes all threads share one heap: what each keeps to itself cannot be returned. A few megabytes that are freed stay there
/// until the server is idle, since to get them again costs more than to read into them. To be called before there are other
/// threads.
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

/// Drops the pages of the program's code, which are most of its memory when it idles. Code that runs again comes back from the
/// file in a tenth of a millisecond.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the linker tells by symbols where the code is, the kernel takes a pointer"
)]
fn drop_code_pages() {
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
fn drop_code_pages() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the C library's own interface; it takes a number and touches only free memory"
)]
fn trim_heap() {
    empty_cache_of_this_thread();
    // SAFETY: `malloc_trim` may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Empties the allocator's cache of this thread: a few hundred small free blocks all over the heap keep as many pages from
/// being returned. A thread that ends empties its cache, so another thread frees the blocks.
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
fn trim_heap() {}
