//! The server's binary: reads the command line, opens the folder, serves.

mod call;
mod cli;
mod doctor;
mod setup;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cli::{SecondWall, Task, Transport};
use files::{Callee, DiskOptions, DiskStore, KnownBy, Sandbox};
use model::Host;
use server::signal::Signals;
use server::{Calls, Log, Options};
use tools::Limits;

fn main() -> ExitCode {
    let started = Instant::now();
    server::memory::share_one_heap();
    match cli::read() {
        Task::Serve(config) => match serve(*config, started) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
        Task::Call(arguments) => call::run(&arguments),
        Task::Setup(arguments) => setup::run(&arguments),
        Task::Doctor(arguments) => doctor::run(&arguments),
    }
}

/// How the model is reached.
fn callee(model: &model::Settings) -> Callee {
    let known_by = match model.host() {
        Host::Name(_) => KnownBy::Name,
        Host::Address(_) => KnownBy::Address,
    };
    Callee { port: model.port(), known_by }
}

fn serve(config: cli::Config, started: Instant) -> io::Result<()> {
    let root = Arc::new(config.root);
    let options = DiskOptions { max_size: config.max_size, durability: config.durability };
    let store = DiskStore::open(Arc::clone(&root), options);
    // A server that only reads clears up as well, so the wall comes after.
    store.sweep_root();
    // The port is bound, and there is no other thread yet: all that are made from here on are behind the wall too.
    let sandbox = match config.second_wall {
        SecondWall::Wanted => {
            Sandbox::enter_to_call(&root, config.access, config.model.as_ref().map(callee))
        }
        SecondWall::Unwanted => Sandbox::Off,
    };
    let options = Options {
        tools: config.tools,
        methods: tools::PLAIN.iter().collect(),
        access: config.access,
        tool_errors: config.tool_errors,
        structured: config.structured,
        confirm: config.confirm,
        witness: None,
        model: config.model.map(Arc::new),
        instructions: None,
    };
    let limits = Limits::new(config.max_size, config.timeout);
    let calls = Calls::new(root, Box::new(store), limits, options, Log::new(config.log));

    calls.log_panics();

    // One thread for the protocol; files are worked on by others, which are gone when there is nothing to do.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(64)
        .thread_keep_alive(Duration::from_secs(1))
        // Only addresses, until they are used; and the C library keeps fewer large stacks of threads that are gone.
        .thread_stack_size(8 << 20)
        .build()?;
    let outcome = runtime.block_on(async {
        let signals = Signals::catch()?;
        match config.transport {
            Transport::Stdio => {
                calls.announce("stdio", &sandbox, started);
                server::stdio::serve(Arc::clone(&calls), signals).await
            }
            Transport::Http(options) => {
                server::http::raise_descriptor_limit();
                calls.announce("http", &sandbox, started);
                server::http::serve(Arc::clone(&calls), options, signals).await
            }
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(50));
    calls.log.close(Duration::from_millis(50));
    outcome
}
