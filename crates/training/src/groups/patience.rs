//! How long somebody waits for an answer, and how much memory there is for it.

use canopy_optimize::{Never, Stop};

use crate::groups::problem::GroupsError;

/// How long somebody waits, and the memory that there is.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// Whether the best so far is enough.
    pub enough: &'a dyn Stop,
    /// Whether there is no use in any answer.
    pub stop: &'a dyn Stop,
    /// The memory that searches may take.
    pub room: &'a dyn Room,
}

impl Patience<'static> {
    /// As long as it takes, with all the memory that it needs.
    pub const ENDLESS: Self = Self { enough: &Never, stop: &Never, room: &Boundless };
}

impl Patience<'_> {
    /// Whether the search ends, with the best so far or without any answer.
    pub(crate) fn is_over(&self) -> bool {
        self.enough.is_requested() || self.stop.is_requested()
    }
}

/// Memory that several searches share.
pub trait Room: Sync {
    /// Takes this number of bytes before they are allocated; false if there is no room for them.
    fn take(&self, bytes: u64) -> bool;
    /// Gives back bytes that were taken.
    fn give_back(&self, bytes: u64);
}

/// Memory without a limit.
struct Boundless;

impl Room for Boundless {
    fn take(&self, _: u64) -> bool {
        true
    }

    fn give_back(&self, _: u64) {}
}

/// Bytes that were taken of a room; dropping this gives them back.
pub(crate) struct Taken<'a> {
    room: &'a dyn Room,
    bytes: u64,
}

impl<'a> Taken<'a> {
    /// Takes bytes of a room.
    ///
    /// # Errors
    /// [`GroupsError::NoRoom`].
    pub(crate) fn of(room: &'a dyn Room, bytes: u64) -> Result<Self, GroupsError> {
        let mut taken = Self { room, bytes: 0 };
        taken.grow(bytes)?;
        Ok(taken)
    }

    /// Takes more.
    ///
    /// # Errors
    /// [`GroupsError::NoRoom`].
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), GroupsError> {
        let needed = self.bytes.saturating_add(bytes);
        if !self.room.take(bytes) {
            return Err(GroupsError::NoRoom { needed });
        }
        self.bytes = needed;
        Ok(())
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.room.give_back(self.bytes);
    }
}

/// Asks a stop now and then, in loops whose steps are short.
pub(crate) struct Asking<'a> {
    stop: &'a dyn Stop,
    /// Work since it was asked last.
    work: u64,
}

/// Work between two questions: some milliseconds.
const WORK_BETWEEN: u64 = 1 << 20;

impl<'a> Asking<'a> {
    pub(crate) fn of(stop: &'a dyn Stop) -> Self {
        Self { stop, work: WORK_BETWEEN }
    }

    /// Counts some work that is about to be done.
    ///
    /// # Errors
    /// [`GroupsError::Stopped`].
    pub(crate) fn before(&mut self, work: usize) -> Result<(), GroupsError> {
        self.work = self.work.saturating_add(work as u64 + 1);
        if self.work < WORK_BETWEEN {
            return Ok(());
        }
        self.work = 0;
        if self.stop.is_requested() { Err(GroupsError::Stopped) } else { Ok(()) }
    }
}
