//! Takes the lock away from a server without changing it: a filter of its system calls answers every `flock` with success
//! and does nothing.

use std::io::{Error, Result};
use std::os::unix::process::CommandExt;
use std::process::Command;

#[expect(clippy::cast_possible_truncation, reason = "codes of instructions are small")]
const fn instruction(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

#[expect(clippy::cast_possible_truncation, reason = "so are the numbers of calls")]
const FLOCK: u32 = libc::SYS_flock as u32;

/// The number of the call comes first in what the filter is given. If it is that of `flock`: no error, and not done.
static FILTER: [libc::sock_filter; 4] = [
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
    libc::sock_filter { jf: 1, ..instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, FLOCK) },
    instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO),
    instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
];

pub fn without_flock(command: &mut Command) {
    // SAFETY: between fork and exec it makes two system calls and allocates nothing.
    #[expect(unsafe_code, reason = "there is no other way to do something in the child")]
    unsafe {
        command.pre_exec(install)
    };
}

fn install() -> Result<()> {
    let done = |result| if result == 0 { Ok(()) } else { Err(Error::last_os_error()) };
    let (yes, no): (libc::c_ulong, libc::c_ulong) = (1, 0);
    let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
    // The length of the filter is known to fit.
    let program = libc::sock_fprog { len: 4, filter: FILTER.as_ptr().cast_mut() };
    // SAFETY: prctl reads the filter, which is static, and writes to nothing of ours.
    #[expect(unsafe_code, reason = "the kernel is told by a pointer")]
    unsafe {
        done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, no, no, no))?;
        done(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program))
    }
}
