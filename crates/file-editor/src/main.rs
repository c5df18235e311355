//! The server binary: reads the command line, opens the folder, serves.

mod call;
mod cli;
mod completions;
mod doctor;
mod flags;
mod folder;
mod man_page;
mod runtime;
mod setup;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cli::{Task, Transport};
use server::signal::Signals;
use server::{Log, Options, terminal};

fn main() -> ExitCode {
    let started = Instant::now();
    server::idle_memory::share_one_heap();
    match cli::read() {
        Task::Serve(config) => match serve(*config, started) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                terminal::write_message(&format!("error: {error}"));
                ExitCode::FAILURE
            }
        },
        Task::Call(arguments) => call::run(&arguments, cli::definition),
        Task::Setup(arguments) => setup::run(&arguments),
        Task::Doctor(arguments) => doctor::run(&arguments),
        Task::Completions(arguments) => completions::print_script(&arguments),
        Task::Man => call::write_stdout(&man_page::render(&cli::definition())),
        Task::Complete(request) => completions::print_candidates(&cli::definition(), &request),
    }
}

fn serve(config: cli::Config, started: Instant) -> io::Result<()> {
    let folder = config.folder;
    let options = Options {
        tools: config.tools,
        access: folder.access,
        tool_errors: config.tool_errors,
        structured: config.structured,
        confirm: config.confirm,
        observer: None,
        model: folder.model.clone(),
        instructions: None,
    };
    // The port is bound already: the sandbox would refuse it.
    let (calls, sandbox) = folder.open(options, Log::new(config.log));

    calls.log_panics();

    let runtime = runtime::build()?;
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
