//! `--calibration`: networks as they were measured, for every command.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use canopy_calibrate::Overlay;
use canopy_topology::Latency;

static OVERLAY: OnceLock<Overlay> = OnceLock::new();

/// What was measured; an option of every command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CalibrationArgs {
    /// Take networks as they were measured: a file that `canopy tools calibrate` wrote
    #[arg(long, value_name = "FILE", global = true, env = "CANOPY_CALIBRATION", help_heading = "Networks")]
    calibration: Option<PathBuf>,
}

impl CalibrationArgs {
    /// The file, if one is named.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.calibration.as_deref().filter(|path| !path.as_os_str().is_empty())
    }
}

/// Puts measurements over every network that is read from now on.
pub(crate) fn put_over(overlay: Overlay) {
    OVERLAY.get_or_init(|| overlay);
}

/// The measurements that are put over every network.
pub(crate) fn overlay() -> Option<&'static Overlay> {
    OVERLAY.get()
}

/// What each message takes by them, in nanoseconds.
pub(crate) fn message_ns() -> Option<u64> {
    overlay().and_then(Overlay::message).map(Latency::nanos)
}
