#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| canopy_fuzzed::import_amd_smi(input));
