//! Tells the service manager how the process is: systemd's `sd_notify` protocol, one datagram per message.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;
use std::{env, io, process};

/// The way to the service manager, if one listens.
#[derive(Debug)]
pub(crate) struct Notifier {
    manager: Option<(UnixDatagram, SocketAddr)>,
    watchdog_period: Option<Duration>,
}

impl Notifier {
    /// As the service manager says in the environment.
    pub(crate) fn from_environment() -> Self {
        let meant_for_us = env::var("WATCHDOG_PID").map_or(true, |pid| pid == process::id().to_string());
        let watchdog = env::var("WATCHDOG_USEC").ok().filter(|_| meant_for_us);
        Self::new(env::var_os("NOTIFY_SOCKET").as_deref(), watchdog.as_deref())
    }

    fn new(socket: Option<&OsStr>, watchdog_usec: Option<&str>) -> Self {
        let manager = socket.filter(|path| !path.is_empty()).and_then(|path| match connect(path) {
            Ok(manager) => Some(manager),
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used; the service manager gets no notifications");
                None
            }
        });
        let period = watchdog_usec.and_then(|text| text.parse().ok()).filter(|&usec| usec > 0);
        // Twice per period, as systemd recommends.
        let watchdog_period = period.map(|usec: u64| Duration::from_micros(usec) / 2).filter(|_| manager.is_some());
        Self { manager, watchdog_period }
    }

    /// How often the service manager wants a sign of life, if at all.
    pub(crate) const fn watchdog_period(&self) -> Option<Duration> {
        self.watchdog_period
    }

    /// Requests are served from here on.
    pub(crate) fn ready(&self) {
        self.send("READY=1\nSTATUS=serving\n");
    }

    /// The end has begun.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=draining\n");
    }

    /// A sign of life.
    pub(crate) fn alive(&self) {
        self.send("WATCHDOG=1\n");
    }

    fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.manager
            && let Err(error) = socket.send_to_addr(message.as_bytes(), address)
        {
            tracing::warn!(%error, "the service manager could not be notified");
        }
    }
}

/// A path, or on Linux a name without a file, which starts with `@`.
fn connect(path: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match path.as_bytes().strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        Some(name) => <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(path)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not hold us up.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(listener: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let length = listener.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn the_manager_hears_of_start_life_and_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier::new(Some(path.as_os_str()), Some("2000000"));
        assert_eq!(notifier.watchdog_period(), Some(Duration::from_secs(1)));
        notifier.ready();
        notifier.alive();
        notifier.stopping();
        let heard: Vec<String> = (0..3).map(|_| received(&listener)).collect();
        assert!(
            heard[0].starts_with("READY=1\n") && heard[1] == "WATCHDOG=1\n" && heard[2].starts_with("STOPPING=1\n")
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_without_a_file_works() {
        let name = format!("canopy-notify-test-{}", process::id());
        let address = <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name).unwrap();
        let listener = UnixDatagram::bind_addr(&address).unwrap();
        Notifier::new(Some(OsStr::new(&format!("@{name}"))), None).ready();
        assert!(received(&listener).starts_with("READY=1"));
    }

    #[test]
    fn without_a_manager_nothing_happens() {
        for (socket, watchdog) in [(None, Some("1000")), (Some("/nowhere/at/all"), Some("soon")), (Some(""), None)] {
            let notifier = Notifier::new(socket.map(OsStr::new), watchdog);
            notifier.ready();
            assert!(socket == Some("/nowhere/at/all") || notifier.watchdog_period().is_none());
        }
    }
}
