//! How a server shows itself to the others.

/// A server as it shows itself to the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// A name for people.
    pub name: String,
    /// Servers of one class make equal plans of equal requests.
    pub class: String,
    /// What it does for the others; empty for a server that says nothing of it.
    pub role: String,
}
