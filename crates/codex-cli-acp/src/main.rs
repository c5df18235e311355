//! Codex CLI as an ACP agent: editors start it, it runs Codex behind it, and Codex edits the editor's buffers.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod acp;
mod auth_methods;
mod bridge;
mod cli;
mod codex;
mod commands;
mod editor;
mod events;
mod leftovers;
mod link;
mod login;
mod modes;
mod open_session;
mod prompts;
mod servers;
mod session;
mod sessions;
mod translate;
mod workplace;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bridge::Bridge;
use server::LoopbackServer;
use server::signal::Signals;

fn main() -> ExitCode {
    if let Some(code) = leftovers::keep() {
        return code;
    }
    server::idle_memory::share_one_heap();
    leftovers::adopt();
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
    // One thread for everything that waits; files are worked on by others.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(Duration::from_secs(1))
        .build()?;
    let outcome = runtime.block_on(async {
        let (messages, heard) = codex::queue();
        let bridge = Bridge::new(cli, LoopbackServer::open()?, messages);
        tokio::spawn(Arc::clone(&bridge).listen(heard));
        tokio::spawn(server::idle_memory::let_go_of_what_started());
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

/// Nothing here panics while it holds a lock; if it did, what is behind it would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
