//! Decisions by what is stored, where other servers decide at the same time.

use super::StoreError;

/// How often something is decided anew before its caller is told to try again.
const ATTEMPTS_MAX: usize = 20;

/// An error that may say that another server was first.
pub trait MayBeOvertaken {
    /// Whether it says that: nothing was changed, and the same may succeed now.
    fn is_overtaken(&self) -> bool;
}

impl MayBeOvertaken for StoreError {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Overtaken)
    }
}

/// Does something that is decided by what is stored, and again whenever another server was first. Each time it learns first
/// what that server has changed, see [`Store::catch_up`](super::Store::catch_up).
///
/// # Errors
/// Those of `decide`.
pub fn deciding<T, E: MayBeOvertaken>(mut decide: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let mut done = decide();
    for _ in 1..ATTEMPTS_MAX {
        if !done.as_ref().is_err_and(MayBeOvertaken::is_overtaken) {
            break;
        }
        done = decide();
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_overtaken_decides_again_but_not_for_ever() {
        let after = |failures: usize| {
            let mut count = 0;
            let done = deciding(|| {
                count += 1;
                if count > failures { Ok(()) } else { Err(StoreError::Overtaken) }
            });
            (done.is_ok(), count)
        };
        assert_eq!((after(0), after(3), after(100)), ((true, 1), (true, 4), (false, ATTEMPTS_MAX)));
        let mut count = 0;
        let failed: Result<(), _> = deciding(|| {
            count += 1;
            Err(StoreError::Unkept)
        });
        assert_eq!((failed.is_err(), count), (true, 1));
    }
}
