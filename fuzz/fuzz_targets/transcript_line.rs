#![no_main]
#[path = "../src/transcript.rs"]
#[allow(dead_code, reason = "each target runs one of them")]
mod transcript;
libfuzzer_sys::fuzz_target!(|data: &[u8]| transcript::transcript_line(data));
