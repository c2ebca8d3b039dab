use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    server: ServerFlags,
}

fn flags(arguments: &[&str]) -> ServerFlags {
    Arguments::try_parse_from([&["canopyd"], arguments].concat()).unwrap().server
}

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("canopyd.toml");
    fs::write(&file, "listen = \"127.0.0.1:1\"\nqueue_length = 5\ndrain_timeout = \"3s\"\n").unwrap();
    let file = file.to_str().unwrap();
    let options = flags(&["--config", file, "--queue-length", "6"]).into_options().unwrap();
    assert_eq!(options.queue_length_max.get(), 6);
    assert_eq!(options.drain_timeout, Duration::from_secs(3));
    assert_eq!(options.listen, Some("127.0.0.1:1".parse().unwrap()));
    assert_eq!(options.admin_listen, Some("127.0.0.1:2".parse().unwrap()));
    assert_eq!(options.max_deadline, Duration::from_secs(3600));
}

/// They are printed as a file, by `--print-config` and where they are logged.
#[test]
fn a_number_that_no_file_can_state_is_refused() {
    let refused = |settings: Settings| settings.filled().unwrap_err().to_string();
    let stated = Settings::parse("workers = 18446744073709551615", "canopyd.toml").unwrap();
    assert_eq!(
        refused(stated),
        "`workers` is 18446744073709551615; set at most 9223372036854775807, the largest whole number of TOML"
    );
    let settings = Settings { data_dir: Some(PathBuf::from("/x")), ..Settings::default() };
    for number in [1 << 63, u64::MAX] {
        let said = refused(Settings { store_bytes: Some(number), ..settings.clone() });
        assert!(said.starts_with("`store_bytes` is "), "{said}");
    }
    let largest = Settings { store_bytes: Some(u64::MAX / 2), ..settings };
    let printed = crate::ops::config::print_effective(largest).unwrap();
    assert!(printed.contains("store_bytes = 9223372036854775807\n"), "{printed}");
}

#[test]
fn an_unknown_key_is_refused_with_its_name_its_line_and_the_known_ones() {
    let error = Settings::parse("listen = \"127.0.0.1:1\"\nqueue_lenght = 5\n", "c.toml").unwrap_err();
    let text = error.to_string();
    for part in ["c.toml, line 2", "queue_lenght", "`queue_length`", "`otlp_endpoint`"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn bad_values_are_refused_where_they_stand() {
    for (line, words) in [
        ("drain_timeout = \"soon\"", "is not a duration"),
        ("drain_timeout = 5", "string"),
        ("workers = 0", "nonzero"),
        ("workers = -1", "nonzero"),
        ("listen = \"somewhere\"", "socket address"),
        ("log_format = \"xml\"", "json"),
        ("workers = 1\nworkers = 2", "duplicate"),
        ("[server]", "unknown field"),
        ("= 1", ""),
    ] {
        let error = Settings::parse(line, "c.toml").unwrap_err().to_string();
        assert!(error.contains("c.toml, line ") && error.contains(words), "{line}: {error}");
    }
}

#[test]
fn a_switch_needs_no_value_and_takes_one() {
    for (arguments, expected) in [(&[] as &[&str], false), (&["--dev"], true), (&["--dev=false"], false)] {
        let options = flags(arguments).into_options().unwrap();
        assert_eq!(options.access.development, expected, "{arguments:?}");
        // Without a way to keep strangers out there is no port.
        assert_eq!((options.listen.is_some(), options.admin_listen.is_some()), (expected, expected));
    }
}

#[test]
fn a_certificate_and_its_key_belong_together() {
    let files = ["--tls-certificate", "c", "--tls-key", "k", "--tls-client-ca", "a"];
    let options = flags(&files).into_options().unwrap();
    assert!(options.listen.is_some() && options.admin_listen.is_some() && options.tls.is_some());
    for left in [&files[..2], &files[2..4], &files[4..]] {
        let error = flags(left).into_options().unwrap_err();
        assert!(error.to_string().contains("state both or neither"), "{error}");
    }
}

#[test]
fn where_the_system_chooses_one_port_it_chooses_both() {
    let options = flags(&["--listen", "127.0.0.1:0"]).into_options().unwrap();
    assert_eq!(options.admin_listen, Some("127.0.0.1:0".parse().unwrap()));
    assert_eq!(flags(&["--admin-listen", "off"]).into_options().unwrap().admin_listen, None);
}

#[test]
fn the_database_of_servers_is_stated_without_secrets() {
    let refused = |arguments: &[&str]| {
        let options = flags(arguments).into_options();
        options.and_then(|options| options.validate()).unwrap_err().to_string()
    };
    let said = refused(&["--database", "postgres://canopy:secret@db/canopy"]);
    assert!(said.contains("`database_password_file`") && !said.contains("secret"), "{said}");
    assert!(refused(&["--database", "postgres://db/canopy"]).contains("names no user"));
    assert!(refused(&["--database", "postgres://canopy@db/canopy?sslmode=prefer"]).contains("sslmode=prefer"));
    assert!(refused(&["--role", "worker"]).contains("`database`"));
    let database = ["--database", "postgres://canopy@/canopy?host=/run/postgresql"];
    assert!(
        refused(&[&database[..], &["--dev", "--role", "worker", "--listen", "127.0.0.1:1"]].concat())
            .contains("`worker`")
    );
    let worker = flags(&[&database[..], &["--role", "worker", "--dev"]].concat()).into_options().unwrap();
    worker.validate().unwrap();
    // It serves no calls, and can be watched.
    assert_eq!((worker.listen, worker.admin_listen), (None, Some("127.0.0.1:7424".parse().unwrap())));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "secret\n").unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let stated = [&database[..], &["--database-password-file", file.to_str().unwrap()]].concat();
    let address = flags(&stated).into_options().unwrap().database.unwrap();
    assert!(address.has_password() && !format!("{address:?} {address}").contains("secret"));
    // Others could read it.
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    assert!(refused(&stated).contains("`database_password_file`"));
}
