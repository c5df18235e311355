//! Gives memory back when the server falls idle.
//!
//! A large read leaves its buffers with the allocator. While calls come in that is what makes them fast; once
//! they stop it only counts against us.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the C library's own interface; it takes a number and touches only free memory"
)]
pub fn give_back() {
    // SAFETY: `malloc_trim` may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
