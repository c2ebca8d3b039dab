//! The Unix sockets: that in the data directory, which is its owner's alone, and one for all users of the machine.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use canopy_service::SocketPath;
use tokio::net::UnixListener;

/// Listens on the socket of a data directory that this process has locked; a socket that is there is a leftover.
pub(crate) fn bind(socket: &SocketPath) -> io::Result<UnixListener> {
    match fs::remove_file(socket.path()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket.path())?;
    // The directory is its owner's alone already; this holds when somebody opens it up.
    fs::set_permissions(socket.path(), PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

/// Listens on a socket to which every user of this machine may connect.
///
/// # Errors
/// Something else is there, or somebody listens there already, or the system refuses it.
pub(crate) fn bind_for_users(path: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            let problem = "something else has this name; move it away, or change `users_socket`";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
        }
        Ok(_) => match UnixStream::connect(path) {
            // Whoever listened there has ended.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            Err(error) => return Err(error),
            Ok(_) => {
                let problem = "another process listens there; end it, or change `users_socket`";
                return Err(io::Error::new(io::ErrorKind::AddrInUse, problem));
            }
        },
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, PermissionsExt::from_mode(0o666))?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_or_odd_path_still_leads_to_the_socket() {
        use std::os::unix::ffi::OsStrExt as _;
        let base = tempfile::tempdir().unwrap();
        for name in [&b"d".repeat(120)[..], b"\xFF\xFE"] {
            let data_dir = base.path().join(std::ffi::OsStr::from_bytes(name));
            fs::create_dir(&data_dir).unwrap();
            let socket = SocketPath::of(&data_dir).unwrap();
            assert!(socket.path().to_str().is_some_and(|path| path.len() <= 100));
            let listener = bind(&socket).unwrap();
            assert!(canopy_service::socket_path(&data_dir).exists());
            let other = SocketPath::of(&data_dir).unwrap();
            let (connected, accepted) = tokio::join!(tokio::net::UnixStream::connect(other.path()), listener.accept());
            assert!(connected.is_ok() && accepted.is_ok());
        }
    }

    #[tokio::test]
    async fn a_socket_for_users_replaces_nothing_but_a_leftover() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("canopy.sock");
        let listener = bind_for_users(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
        assert!(bind_for_users(&path).unwrap_err().to_string().contains("another process listens there"));
        drop(listener);
        drop(bind_for_users(&path).unwrap());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        assert!(bind_for_users(&path).unwrap_err().to_string().contains("something else has this name"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "a file");
    }

    #[tokio::test]
    async fn a_leftover_socket_is_replaced_and_only_its_owner_may_use_the_new_one() {
        let base = tempfile::tempdir().unwrap();
        let socket = SocketPath::of(base.path()).unwrap();
        drop(bind(&socket).unwrap());
        assert!(socket.path().exists(), "a dropped listener leaves its file behind");
        let _listener = bind(&socket).unwrap();
        assert_eq!(fs::metadata(socket.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
