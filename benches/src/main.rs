//! The command line of the benches; they are in the library.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    benches::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the benches are for Linux");
    std::process::exit(1);
}
