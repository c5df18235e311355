//! Stops a server at its calls of the file system, in all its threads, and does something to one of them.
//!
//! The calls are counted as they come, whichever thread makes them: a count for each thread, or for each name, would miss
//! some of a server that works on many threads. Only calls about the served folder count, so that the count does not
//! depend on what else the server does meanwhile.
#![allow(unsafe_code, reason = "`ptrace` is a bare system call")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, read_link};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use libc::{c_int, pid_t, user_regs_struct};

use crate::server::{self, Server};

/// What is done, and to which calls.
#[derive(Default)]
pub struct Plan {
    /// Counted from 1, from when the plan was made.
    pub nth: usize,
    pub act: Act,
    pub lasting: Lasting,
    /// Only calls of this name count.
    pub only: Option<&'static str>,
    /// As if the file system had no unnamed temporary files.
    pub without_unnamed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lasting {
    #[default]
    Once,
    /// The n-th and every later one.
    FromThenOn,
}

#[derive(Clone, Default)]
pub enum Act {
    /// Only counts.
    #[default]
    Watch,
    /// Kills the process before the call.
    Kill,
    /// The call is not made and fails with this number.
    Fail(c_int),
    /// The call may move half of what it asked for.
    Shorten,
    /// The thread waits before the call until this is set; the others go on.
    Hold(Arc<AtomicBool>),
    /// This happens before the call.
    Meanwhile(Arc<dyn Fn() + Send + Sync>),
    /// Another call is made instead.
    Instead(Arc<Foreign>),
}

/// A call the server would never make.
pub struct Foreign {
    pub number: i64,
    pub path: PathBuf,
    pub arguments: [Argument; 4],
}

#[derive(Clone, Copy)]
pub enum Argument {
    /// Where the path stands in the server's memory.
    Path,
    Number(i64),
}

/// What came of a plan.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The calls, in order.
    pub calls: Vec<String>,
    /// The first one something was done to.
    pub hit: Option<String>,
    /// What that call returned in the end.
    pub returned: Option<i64>,
}

/// A server under our eyes.
pub struct Traced {
    pub server: Server,
    /// What it logs, if that was asked for.
    pub log: Option<ChildStderr>,
    shared: Arc<Mutex<Shared>>,
    tracer: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    plan: Plan,
    seen: Seen,
}

impl Traced {
    /// Starts a server; the plan is in force from its first instruction.
    pub fn start(dir: &Path, flags: &[&str], plan: Plan) -> Self {
        let mut command = server::command(dir, flags);
        // What it logs about faults it cannot expect is no news.
        command.arg("--transport=stdio").stderr(Stdio::null());
        Self::spawn(dir, command, plan)
    }

    /// The same for a command that says how it serves and where it logs.
    pub fn spawn(dir: &Path, mut command: Command, plan: Plan) -> Self {
        let shared = Arc::new(Mutex::new(Shared { plan, seen: Seen::default() }));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: one system call, which takes nothing of the parent's.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let (sender, started) = mpsc::channel();
        let (dir, theirs) = (dir.canonicalize().unwrap(), Arc::clone(&shared));
        // Only the thread that started a process may trace it.
        let tracer = std::thread::spawn(move || {
            #[expect(clippy::zombie_processes, reason = "the tracer waits for it")]
            let mut child = command.spawn().unwrap();
            let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let pid = child.id();
            sender.send((Server::attach(pid, stdin, stdout), child.stderr.take())).unwrap();
            let pid = pid_t::try_from(pid).unwrap();
            Tracer { pid, dir, shared: theirs, returns: HashMap::new(), held: Vec::new() }.run();
        });
        let (server, log) = started.recv().unwrap();
        Self { server, log, shared, tracer: Some(tracer) }
    }

    /// Puts another plan in force; the count begins anew.
    pub fn plan(&self, plan: Plan) {
        *lock(&self.shared) = Shared { plan, seen: Seen::default() };
    }

    /// What was seen so far; from now on there is no plan.
    pub fn end_plan(&self) -> Seen {
        std::mem::take(&mut *lock(&self.shared)).seen
    }

    pub fn seen(&self) -> Seen {
        lock(&self.shared).seen.clone()
    }

    /// Waits until the process has ended.
    pub fn wait(&mut self) {
        if let Some(tracer) = self.tracer.take() {
            tracer.join().unwrap();
        }
    }

    pub fn kill(&mut self) {
        self.server.kill();
        self.wait();
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.kill();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

/// What the first arguments of a call are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// An open file.
    Open,
    /// A folder and a path from there.
    At,
    /// A path.
    Path,
}

#[rustfmt::skip]
const CALLS: &[(i64, &str, Names)] = &[
    (libc::SYS_read, "read", Names::Open),
    (libc::SYS_write, "write", Names::Open),
    (libc::SYS_pread64, "pread64", Names::Open),
    (libc::SYS_pwrite64, "pwrite64", Names::Open),
    (libc::SYS_readv, "readv", Names::Open),
    (libc::SYS_writev, "writev", Names::Open),
    (libc::SYS_close, "close", Names::Open),
    (libc::SYS_fstat, "fstat", Names::Open),
    (libc::SYS_fstatfs, "fstatfs", Names::Open),
    (libc::SYS_lseek, "lseek", Names::Open),
    (libc::SYS_flock, "flock", Names::Open),
    (libc::SYS_fcntl, "fcntl", Names::Open),
    (libc::SYS_fsync, "fsync", Names::Open),
    (libc::SYS_fdatasync, "fdatasync", Names::Open),
    (libc::SYS_ftruncate, "ftruncate", Names::Open),
    (libc::SYS_fallocate, "fallocate", Names::Open),
    (libc::SYS_getdents64, "getdents64", Names::Open),
    (libc::SYS_fchmod, "fchmod", Names::Open),
    (libc::SYS_fchown, "fchown", Names::Open),
    (libc::SYS_fgetxattr, "fgetxattr", Names::Open),
    (libc::SYS_fsetxattr, "fsetxattr", Names::Open),
    (libc::SYS_flistxattr, "flistxattr", Names::Open),
    (libc::SYS_fremovexattr, "fremovexattr", Names::Open),
    (libc::SYS_openat, "openat", Names::At),
    (libc::SYS_openat2, "openat2", Names::At),
    (libc::SYS_newfstatat, "newfstatat", Names::At),
    (libc::SYS_statx, "statx", Names::At),
    (libc::SYS_readlinkat, "readlinkat", Names::At),
    (libc::SYS_faccessat, "faccessat", Names::At),
    (libc::SYS_faccessat2, "faccessat2", Names::At),
    (libc::SYS_mkdirat, "mkdirat", Names::At),
    (libc::SYS_unlinkat, "unlinkat", Names::At),
    (libc::SYS_linkat, "linkat", Names::At),
    (libc::SYS_renameat, "renameat", Names::At),
    (libc::SYS_renameat2, "renameat2", Names::At),
    (libc::SYS_open, "open", Names::Path),
    (libc::SYS_stat, "stat", Names::Path),
    (libc::SYS_lstat, "lstat", Names::Path),
    (libc::SYS_access, "access", Names::Path),
    (libc::SYS_readlink, "readlink", Names::Path),
    (libc::SYS_mkdir, "mkdir", Names::Path),
    (libc::SYS_rmdir, "rmdir", Names::Path),
    (libc::SYS_unlink, "unlink", Names::Path),
    (libc::SYS_link, "link", Names::Path),
    (libc::SYS_rename, "rename", Names::Path),
];

/// What a call returns instead of its own result.
struct Returns {
    instead: Option<i64>,
    told: bool,
}

/// How long to look away while a thread is held: the others must not wait long for us when they do something.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

struct Tracer {
    pid: pid_t,
    dir: PathBuf,
    shared: Arc<Mutex<Shared>>,
    /// For threads within a call something was done to.
    returns: HashMap<pid_t, Returns>,
    /// Threads that wait, and for what.
    held: Vec<(pid_t, Arc<AtomicBool>)>,
}

impl Tracer {
    /// Follows the process to its end.
    fn run(mut self) {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let mut status = 0;
            let flags = if self.held.is_empty() { 0 } else { libc::WNOHANG };
            let flags = flags | libc::__WALL | libc::__WNOTHREAD;
            // SAFETY: it writes to `status` alone.
            match unsafe { libc::waitpid(-1, &raw mut status, flags) } {
                0 => {
                    std::thread::sleep(pause);
                    pause = LONGEST_PAUSE.min(2 * pause);
                }
                -1 => return,
                thread if libc::WIFSTOPPED(status) => {
                    self.stopped(thread, status);
                    pause = SHORTEST_PAUSE;
                }
                thread if thread == self.pid => return,
                _ => {}
            }
            self.held.retain(|(thread, release)| {
                let release = release.load(Ordering::SeqCst);
                if release {
                    resume(*thread, 0);
                }
                !release
            });
        }
    }

    fn stopped(&mut self, thread: pid_t, status: c_int) {
        let signal = libc::WSTOPSIG(status);
        let deliver = match signal {
            // The first stop, right after the program was loaded.
            libc::SIGTRAP if status >> 16 == 0 && thread == self.pid => {
                let options = libc::PTRACE_O_TRACESYSGOOD
                    | libc::PTRACE_O_TRACECLONE
                    | libc::PTRACE_O_EXITKILL;
                // SAFETY: it takes numbers.
                unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, thread, 0, options) };
                0
            }
            // A thread was made; or it is new and waits for us.
            libc::SIGTRAP | libc::SIGSTOP => 0,
            signal if signal == libc::SIGTRAP | 0x80 => {
                if self.at_call(thread) == Next::Wait {
                    return;
                }
                0
            }
            signal => signal,
        };
        resume(thread, deliver);
    }

    fn at_call(&mut self, thread: pid_t) -> Next {
        let Some(mut registers) = registers(thread) else { return Next::GoOn };
        if !is_before_call(thread) {
            self.at_end(thread, &mut registers);
            return Next::GoOn;
        }
        let Some(call) = self.recognise(&registers) else { return Next::GoOn };
        let shared = Arc::clone(&self.shared);
        let mut shared = lock(&shared);
        let Shared { plan, seen } = &mut *shared;
        if plan.without_unnamed && call.opens_unnamed(&registers) {
            self.fail(thread, &mut registers, libc::EOPNOTSUPP);
            return Next::GoOn;
        }
        if plan.only.is_some_and(|name| name != call.name) {
            return Next::GoOn;
        }
        seen.calls.push(call.to_string());
        let number = seen.calls.len();
        let is_meant = match plan.lasting {
            Lasting::Once => number == plan.nth,
            Lasting::FromThenOn => plan.nth > 0 && number >= plan.nth,
        };
        if !is_meant {
            return Next::GoOn;
        }
        let was_hit = seen.hit.is_some();
        seen.hit.get_or_insert_with(|| format!("call {number}, {call}"));
        let act = plan.act.clone();
        drop(shared);
        self.act(thread, &mut registers, &call, &act, was_hit)
    }

    fn act(
        &mut self,
        thread: pid_t,
        registers: &mut user_regs_struct,
        call: &Call,
        act: &Act,
        again: bool,
    ) -> Next {
        match act {
            // SAFETY: it takes numbers.
            Act::Kill => unsafe {
                libc::kill(self.pid, libc::SIGKILL);
            },
            // Whatever it says, the descriptor is closed.
            Act::Fail(number) if call.name == "close" => {
                let instead = Some(-i64::from(*number));
                self.returns.insert(thread, Returns { instead, told: !again });
            }
            Act::Fail(number) => self.fail(thread, registers, *number),
            Act::Shorten if matches!(call.name, "read" | "write" | "pread64" | "pwrite64") => {
                registers.rdx = registers.rdx.div_ceil(2);
                set_registers(thread, registers);
            }
            Act::Watch | Act::Shorten => {}
            Act::Hold(release) => {
                self.held.push((thread, Arc::clone(release)));
                return Next::Wait;
            }
            Act::Meanwhile(happens) => happens(),
            Act::Instead(foreign) => {
                self.replace(thread, registers, foreign);
                self.returns.insert(thread, Returns { instead: None, told: !again });
            }
        }
        Next::GoOn
    }

    fn replace(&self, thread: pid_t, registers: &mut user_regs_struct, foreign: &Foreign) {
        // Below what the thread has of its stack there is room.
        let at = registers.rsp - 8192;
        let mut bytes = foreign.path.as_os_str().as_encoded_bytes().to_vec();
        bytes.push(0);
        let memory = File::options().write(true).open(format!("/proc/{}/mem", self.pid)).unwrap();
        memory.write_all_at(&bytes, at).unwrap();
        let [first, second, third, fourth] = foreign.arguments.map(|argument| match argument {
            Argument::Path => at,
            Argument::Number(number) => number.cast_unsigned(),
        });
        (registers.rdi, registers.rsi) = (first, second);
        (registers.rdx, registers.r10) = (third, fourth);
        registers.orig_rax = foreign.number.cast_unsigned();
        set_registers(thread, registers);
    }

    /// The call is not made.
    fn fail(&mut self, thread: pid_t, registers: &mut user_regs_struct, number: c_int) {
        registers.orig_rax = u64::MAX;
        set_registers(thread, registers);
        let instead = Some(-i64::from(number));
        self.returns.insert(thread, Returns { instead, told: true });
    }

    fn at_end(&mut self, thread: pid_t, registers: &mut user_regs_struct) {
        let Some(Returns { instead, told }) = self.returns.remove(&thread) else { return };
        if let Some(result) = instead {
            registers.rax = result.cast_unsigned();
            set_registers(thread, registers);
        }
        if told {
            lock(&self.shared).seen.returned.get_or_insert(registers.rax.cast_signed());
        }
    }

    /// A call about the folder.
    fn recognise(&self, registers: &user_regs_struct) -> Option<Call> {
        let number = registers.orig_rax.cast_signed();
        let (_, name, names) = CALLS.iter().find(|(known, ..)| *known == number)?;
        let first = registers.rdi.cast_signed();
        #[expect(clippy::cast_possible_truncation, reason = "descriptors are 32 bits")]
        let open = || read_link(format!("/proc/{}/fd/{}", self.pid, first as c_int)).ok();
        let inside = |path: PathBuf| path.starts_with(&self.dir).then_some(path);
        let about = match names {
            Names::Open => inside(open()?)?,
            Names::At => {
                let path = self.text(registers.rsi)?;
                let folder = open().and_then(inside);
                match folder {
                    Some(folder) => folder.join(path),
                    // The name an unnamed file goes by until it has one.
                    None if *name == "linkat" => path,
                    None => inside(path)?,
                }
            }
            Names::Path => inside(self.text(registers.rdi)?)?,
        };
        let about = about.strip_prefix(&self.dir).unwrap_or(&about).display().to_string();
        Some(Call { name, about })
    }

    fn text(&self, at: u64) -> Option<PathBuf> {
        let mut bytes = vec![0; 4096];
        let memory = File::open(format!("/proc/{}/mem", self.pid)).ok()?;
        let length = memory.read_at(&mut bytes, at).ok()?;
        let end = bytes[..length].iter().position(|byte| *byte == 0)?;
        bytes.truncate(end);
        Some(OsString::from_vec(bytes).into())
    }
}

#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Wait,
}

struct Call {
    name: &'static str,
    about: String,
}

impl Call {
    fn opens_unnamed(&self, registers: &user_regs_struct) -> bool {
        let unnamed = u64::from(libc::O_TMPFILE.cast_unsigned());
        self.name == "openat" && registers.rdx & unnamed == unnamed
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}({})", self.name, self.about)
    }
}

/// Whether the thread is about to make a call, and not at the end of one.
fn is_before_call(thread: pid_t) -> bool {
    let mut info = std::mem::MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: it writes at most that much to there.
    unsafe {
        libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, info.as_mut_ptr());
        info.assume_init().op == libc::PTRACE_SYSCALL_INFO_ENTRY
    }
}

fn registers(thread: pid_t) -> Option<user_regs_struct> {
    let mut registers = std::mem::MaybeUninit::<user_regs_struct>::uninit();
    // SAFETY: it writes that much to there, or fails.
    let outcome = unsafe { libc::ptrace(libc::PTRACE_GETREGS, thread, 0, registers.as_mut_ptr()) };
    // SAFETY: it was written.
    (outcome == 0).then(|| unsafe { registers.assume_init() })
}

fn set_registers(thread: pid_t, registers: &user_regs_struct) {
    // SAFETY: it reads from there. It fails if the thread has been killed, which is no matter.
    unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread, 0, std::ptr::from_ref(registers)) };
}

/// On to the next call. It fails if the thread has been killed, which is no matter.
fn resume(thread: pid_t, signal: c_int) {
    // SAFETY: it takes numbers.
    unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0, signal) };
}
