//! Rates and times come out exact or not at all.

use super::*;

#[track_caller]
fn check_rate(text: &str, bytes_per_sec: u64) {
    assert_eq!(text.parse::<Capacity>().map(Capacity::bytes_per_sec), Ok(bytes_per_sec), "{text}");
}

#[test]
fn rates_are_read_in_every_unit() {
    for (text, bytes_per_sec) in [
        ("1B/s", 1),
        ("25 GB/s", 25_000_000_000),
        (" 25GB/s ", 25_000_000_000),
        ("3kB/s", 3_000),
        ("3MB/s", 3_000_000),
        ("1.5TB/s", 1_500_000_000_000),
        ("2KiB/s", 2_048),
        ("0.5MiB/s", 524_288),
        ("2GiB/s", 2_147_483_648),
        ("8bps", 1),
        ("8kbps", 1_000),
        ("10Mbps", 1_250_000),
        ("200Gbps", 25_000_000_000),
        ("200Gb/s", 25_000_000_000),
        ("200 Gbit/s", 25_000_000_000),
        ("25GBps", 25_000_000_000),
        ("25Gbyte/s", 25_000_000_000),
        ("3KB/s", 3_000),
        ("1.6Tbps", 200_000_000_000),
        ("12.5GB/s", 12_500_000_000),
        ("20.600GB/s", 20_600_000_000),
        ("007GB/s", 7_000_000_000),
        ("18446744073709551615B/s", u64::MAX),
        ("18446744073.709551615GB/s", u64::MAX),
    ] {
        check_rate(text, bytes_per_sec);
    }
}

#[test]
fn times_are_read_in_every_unit() {
    for (text, nanos) in [
        ("0", 0),
        ("0.0", 0),
        ("0s", 0),
        ("700ns", 700),
        ("1.5us", 1_500),
        ("1.5\u{b5}s", 1_500),
        ("2ms", 2_000_000),
        ("0.25s", 250_000_000),
    ] {
        assert_eq!(text.parse(), Ok(Latency::from_nanos(nanos)), "{text}");
    }
}

#[test]
fn a_number_without_a_unit_is_refused_with_what_to_write() {
    for (text, to_write) in [
        ("25", "`25GB/s`"),
        (" 25 ", "`25GB/s`"),
        ("0.5", "`0.5GB/s`"),
        ("18446744073709551615", "GB/s`"),
        ("18446744073709551616", "GB/s`"),
    ] {
        let error = text.parse::<Capacity>().unwrap_err();
        assert!(matches!(error, QuantityError::NoUnit { .. }), "{text}: {error}");
        let message = error.to_string();
        assert!(message.contains("has no unit") && message.contains(to_write) && message.contains("Gb/s"), "{message}");
    }
    for (text, to_write) in [("3", "`3ns` or `3us`"), ("0.5", "`0.5us`")] {
        let error = text.parse::<Latency>().unwrap_err();
        assert!(
            matches!(error, QuantityError::NoUnit { .. }) && error.to_string().contains(to_write),
            "{text}: {error}"
        );
    }
}

#[test]
fn what_is_no_number_is_refused_with_an_example() {
    for text in
        ["", "GB/s", ".5GB/s", "5.GB/s", "1.2.3GB/s", "-5GB/s", "+5GB/s", "1e9", "1E+9GB/s", "NaN", "inf", "٣GB/s"]
    {
        let error = text.parse::<Capacity>().unwrap_err();
        assert!(matches!(error, QuantityError::NotANumber { .. }), "{text}: {error}");
        assert!(error.to_string().contains("25GB/s"), "{error}");
    }
    let long = format!("{}GB/s", "1".repeat(1_000));
    assert!(matches!(long.parse::<Capacity>(), Err(QuantityError::NotANumber { .. })));
}

#[test]
fn what_is_not_whole_positive_or_within_64_bits_is_refused() {
    let refusal = |text: &str| text.parse::<Capacity>().unwrap_err();
    for text in ["0.5B/s", "1bps", "12.5B/s", "0.1KiB/s", "0.0000000000000000000001GB/s"] {
        assert!(matches!(refusal(text), QuantityError::NotWhole { .. }), "{text}");
    }
    for text in ["0", "0GB/s", "0.000"] {
        assert!(matches!(refusal(text), QuantityError::Zero { .. }), "{text}");
    }
    for text in ["18446744073709551616B/s", "99999999999TB/s", "9999999999999999999999999999999999999999999GB/s"] {
        assert!(matches!(refusal(text), QuantityError::TooLarge { .. }), "{text}");
    }
    for text in ["5furlongs", "5GB", "5GB/s/s", "0x10", "5/s", "5ps", "5iB/s"] {
        let error = refusal(text);
        assert!(matches!(error, QuantityError::Unit { .. }), "{text}: {error}");
        assert!(error.to_string().contains("Gbps"), "{error}");
    }
    for text in ["5gb/s", "5G", "5gbps", "5g"] {
        let error = refusal(text).to_string();
        assert!(error.contains("`5Gb/s` for bits or `5GB/s` for bytes"), "{text}: {error}");
    }
    assert!(matches!("1.5ns".parse::<Latency>(), Err(QuantityError::NotWhole { .. })));
    assert!(matches!("5m".parse::<Latency>(), Err(QuantityError::Unit { .. })));
}

#[test]
fn the_written_form_is_short_and_reads_back() {
    for (bytes_per_sec, text) in [
        (1, "1B/s"),
        (999, "999B/s"),
        (1_000, "1kB/s"),
        (1_234, "1.234kB/s"),
        (12_345, "12.345kB/s"),
        (1_234_567, "1234567B/s"),
        (25_000_000_000, "25GB/s"),
        (12_500_000_000, "12.5GB/s"),
        (25_000_000_001, "25000000001B/s"),
        (1_500_000_000_000, "1500GB/s"),
        (u64::MAX, "18446744073709551615B/s"),
    ] {
        let capacity = Capacity::from_bytes_per_sec(bytes_per_sec).unwrap();
        assert_eq!(capacity.to_string(), text);
        check_rate(text, bytes_per_sec);
    }
    for (nanos, text) in [(0, "0ns"), (700, "700ns"), (1_500, "1500ns"), (5_000, "5us"), (2_000_000_000, "2s")] {
        assert_eq!(Latency::from_nanos(nanos).to_string(), text);
    }
}
