//! Gives memory back when the server falls idle.
//!
//! A large read leaves its buffers with the allocator. While calls come in that is what makes them fast; once
//! they stop it only counts against us.

use std::sync::Arc;
use std::time::Duration;

use crate::calls::Calls;

/// Idle for so long, memory is given back.
const IDLE: Duration = Duration::from_secs(1);

/// For as long as the server runs. Looks once in a while rather than at every call: under load it must cost nothing.
pub async fn give_back_when_idle(calls: Arc<Calls>) {
    let mut seen = 0;
    loop {
        calls.stirred().await;
        loop {
            tokio::time::sleep(IDLE).await;
            let stirs = calls.stirs();
            if stirs == seen && calls.at_work() == 0 {
                break;
            }
            seen = stirs;
        }
        give_back();
    }
}

/// One heap for all threads: what each keeps to itself cannot be given back, and ours are not many. To be called before
/// there are others.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library's own interface; it takes two numbers")]
pub fn share_one_heap() {
    // SAFETY: no other thread is there yet whose allocations the setting could meet half way.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_one_heap() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the C library's own interface; it takes a number and touches only free memory"
)]
fn give_back() {
    // SAFETY: `malloc_trim` may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}
