//! One process at a time searches for a plan: others that want the same one wait for it, and find it in the folder.
//!
//! Each plan that is searched for has a file in the folder `making`, locked by the process that searches. The system
//! unlocks it when that process ends, however it ends; the file itself may stay behind, and the next search removes it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use canopy_planner::PlanKey;
use canopy_synth::Stop;

/// Folder of the locked files in a data folder.
const MAKING: &str = "making";
/// Pause between two attempts at what another process holds.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// The right to search for a plan, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    path: PathBuf,
    _locked: File,
    /// Whether another process had it before.
    pub(crate) has_waited: bool,
}

impl Turn {
    /// Waits until no other process searches for the plan. `None`: the caller was told to stop meanwhile.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    pub(crate) fn take(data_folder: &Path, key: &PlanKey, stop: &dyn Stop) -> io::Result<Option<Self>> {
        let folder = data_folder.join(MAKING);
        fs::create_dir_all(&folder)?;
        let path = folder.join(key.to_string());
        let mut has_waited = false;
        loop {
            let file = File::options().create(true).truncate(false).write(true).open(&path)?;
            match file.try_lock() {
                Ok(()) => {
                    remove_leftovers(&folder, &path);
                    return Ok(Some(Self { path, _locked: file, has_waited }));
                }
                Err(TryLockError::WouldBlock) if stop.is_requested() => return Ok(None),
                Err(TryLockError::WouldBlock) => {
                    has_waited = true;
                    thread::sleep(PAUSE);
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Whoever has opened it meanwhile locks a file without a name: at worst, two make the same plan.
        let _removed = fs::remove_file(&self.path);
    }
}

/// Removes files whose processes have ended early.
fn remove_leftovers(folder: &Path, own: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path != own && File::options().write(true).open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _removed = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use canopy_synth::Never;

    use super::*;

    fn key(byte: u8) -> PlanKey {
        PlanKey::from_bytes([byte; 32])
    }

    #[test]
    fn a_plan_is_searched_for_once_and_others_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let turn = Turn::take(folder.path(), &key(1), &Never).unwrap().unwrap();
        assert!(!turn.has_waited);
        assert!(Turn::take(folder.path(), &key(1), &|| true).unwrap().is_none(), "told to stop while it waits");
        assert!(Turn::take(folder.path(), &key(2), &Never).unwrap().is_some());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| Turn::take(folder.path(), &key(1), &Never).unwrap().unwrap().has_waited);
            thread::sleep(3 * PAUSE);
            drop(turn);
            assert!(waiting.join().unwrap());
        });
        assert_eq!(fs::read_dir(folder.path().join(MAKING)).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn a_file_whose_process_has_ended_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let making = folder.path().join(MAKING);
        fs::create_dir(&making).unwrap();
        fs::write(making.join("left"), b"").unwrap();
        let _turn = Turn::take(folder.path(), &key(1), &Never).unwrap().unwrap();
        assert_eq!(fs::read_dir(making).unwrap().count(), 1);
    }
}
