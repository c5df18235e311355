//! The command line of the experiments; they are in the library.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> std::process::ExitCode {
    faults::main()
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {
    eprintln!("the experiments are for Linux on x86-64");
    std::process::exit(1);
}
