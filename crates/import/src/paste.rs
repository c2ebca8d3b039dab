//! What people paste, without what terminals, launchers, chats and web pages put around it.
//!
//! A file that reads as it is never comes here: [`crate::read`] reads what it is given first, and only what cannot be read is
//! cleaned and read again. So nothing here has to ask whether a text means what it says. Lines keep their numbers: one that
//! goes is left empty.
//!
//! [`markup`] is what web pages and chats add, [`tags`] what launchers put before each line, [`prompts`] what a terminal
//! shows besides the output, and [`body`] where the file itself begins and ends.

mod body;
mod markup;
mod prompts;
mod tags;

use std::borrow::Cow;

use crate::error::ImportError;
pub(crate) use body::trimmed;
pub(crate) use markup::visible;

/// Largest text that is taken for one with something around it.
pub(crate) const BYTES_MAX: usize = 16 << 20;

/// A text without what was around it.
pub(crate) struct Cleaned {
    pub(crate) text: String,
    /// What it may lack, as a person should know.
    pub(crate) doubts: Vec<String>,
}

/// Lines of a text, those that go empty.
pub(crate) type Lines<'a> = Vec<Cow<'a, str>>;

/// The text without what was around it; `None` if nothing was. `is_known` tells whether a text is a file of some kind.
///
/// # Errors
/// The outputs of several machines, which differ.
///
/// O(bytes), and that of `is_known` for each part of the text once.
pub(crate) fn clean(text: &str, is_known: &dyn Fn(&str) -> bool) -> Result<Option<Cleaned>, ImportError> {
    let plain = markup::plain(text);
    let mut lines: Lines<'_> = plain.split('\n').map(Cow::Borrowed).collect();
    tags::untag(&mut lines, is_known)?;
    markup::unwrap(&mut lines);
    // A quoted terminal has its launcher behind the quotes.
    tags::untag(&mut lines, is_known)?;
    let doubts = prompts::pass_over(&mut lines);
    markup::unfence(&mut lines, is_known);
    markup::dedent(&mut lines);
    let cleaned = lines.join("\n");
    Ok((cleaned != text).then_some(Cleaned { text: cleaned, doubts }))
}

/// A text without what terminals, launchers, chats and web pages put around it, for readers of other files than those of
/// networks; `None` if nothing was around it. `is_known` tells whether a text, or a part of it, is such a file.
///
/// O(bytes), and that of `is_known` for each part of the text once.
pub fn unwrapped(text: &str, is_known: &dyn Fn(&str) -> bool) -> Option<String> {
    let cleaned = if text.len() > BYTES_MAX { None } else { clean(text, is_known).ok().flatten() };
    cleaned.map(|cleaned| cleaned.text)
}

/// Whether a line says nothing.
fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

#[cfg(test)]
mod tests;
