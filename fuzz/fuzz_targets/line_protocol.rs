#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trials::line_protocol(bytes));
