//! Finds the MPI library in the running process.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// Where the symbols of the MPI library are looked up.
#[derive(Debug)]
pub(crate) struct Symbols {
    /// What `dlsym` takes: everything that all of the process sees, or one library.
    scope: *mut c_void,
}

impl Symbols {
    /// The first place that has a symbol: what all of the process sees, then loaded libraries of some names. Python loads
    /// MPI for its module alone, and there the symbols are seen by no one else.
    pub(crate) fn with(symbol: &CStr, libraries: &[&CStr]) -> Option<Self> {
        let everything = Self { scope: libc::RTLD_DEFAULT };
        if everything.find(symbol).is_some() {
            return Some(everything);
        }
        libraries.iter().find_map(|name| {
            // SAFETY: the name ends in zero, and a library that is not loaded yet is not loaded by this.
            let scope = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
            let own = Self { scope };
            (!scope.is_null() && own.find(symbol).is_some()).then_some(own)
        })
    }

    /// The address of a symbol.
    pub(crate) fn find(&self, symbol: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the scope is a constant of the system or a library that stays open, and the name ends in zero.
        NonNull::new(unsafe { libc::dlsym(self.scope, symbol.as_ptr()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_the_process_are_found_and_others_are_not() {
        let symbols = Symbols::with(c"malloc", &[]).unwrap();
        assert!(symbols.find(c"free").is_some());
        assert!(symbols.find(c"no_library_has_this_symbol").is_none());
        assert!(Symbols::with(c"PMPI_Allreduce", &[c"libnobody.so.0"]).is_none());
    }
}
