#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| tallygate_macros::trial::attribute(text));
