//! Runs Codex CLI as an ACP agent: an editor starts this program, the program runs Codex, and Codex edits the editor's
//! buffers.
//!
//! One `codex app-server` process and one loopback HTTP port serve all sessions. Each session has a bearer token, which
//! Codex gets in the configuration of the session's thread and nowhere else: not on a command line, in a variable or on
//! disk. A request with the token reaches the tools of that session, and sub-agents inherit it. The tools are those of
//! `file-editor`, with another store (`editor`) and with an observer of calls (`session`).
//!
//! Codex announces a tool call by an event, and the call itself arrives over HTTP, in either order. Both carry the same
//! id: the session reports the start of a call at whichever comes first, and its end with the call's true outcome. A
//! prompt is answered when Codex has ended the turn and no call is running, or `session::RUNNING_CALLS_TIMEOUT` later,
//! so that nothing is reported after the answer. From the end of the turn on no call gets permission to write.
//!
//! Codex ends when its stdin closes, and then ends the processes it started. So it is given seconds to do that before
//! it is killed, and if this program is killed, the same pipe closes. On Linux a supervisor (`process_cleanup`) ends the
//! processes that Codex could not end, because it was killed itself or did not know of them yet. The supervisor is a second
//! process of this program, between the first and Codex: a child subreaper that waits for the end of Codex and then
//! kills every process left below it.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod acp;
mod auth_methods;
mod bridge;
mod cli;
mod codex;
mod commands;
mod connection;
mod editor;
mod login;
mod mcp_servers;
mod modes;
mod open_session;
mod process_cleanup;
mod prompts;
mod session;
mod session_options;
mod session_requests;
mod session_tools;
mod tool_call_updates;
mod translate;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bridge::Bridge;
use server::LoopbackServer;
use server::signal::Signals;

fn main() -> ExitCode {
    if let Some(code) = process_cleanup::supervise_if_asked() {
        return code;
    }
    server::idle_memory::share_one_heap();
    process_cleanup::become_subreaper();
    let cli = match cli::Cli::read() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            server::terminal::write_message(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: cli::Cli) -> Result<(), Box<dyn std::error::Error>> {
    // One thread runs all async tasks; file work is done on blocking threads.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(Duration::from_secs(1))
        .build()?;
    let outcome = runtime.block_on(async {
        let (messages, heard) = codex::queue();
        let bridge = Bridge::new(cli, LoopbackServer::open()?, messages);
        tokio::spawn(Arc::clone(&bridge).listen(heard));
        tokio::spawn(server::idle_memory::drop_startup_pages());
        let mut signals = Signals::catch()?;
        let outcome = tokio::select! {
            outcome = acp::serve(Arc::clone(&bridge)) => outcome,
            () = signals.stop() => Ok(()),
        };
        bridge.close().await;
        Ok(outcome?)
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

/// Locks a mutex, poisoned or not. No code panics while it holds a lock; if it did, the data would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
