//! Why there is no time.

/// Why there is no time.
#[derive(Debug)]
pub(super) enum NotTimed {
    Late,
    Wrong(String),
}

impl std::fmt::Display for NotTimed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Late => "the deadline came first",
            Self::Wrong(what) => what,
        })
    }
}

impl std::error::Error for NotTimed {}
