//! How wide texts are, roughly, and how they are broken into lines and cut short: no font is asked.

/// Width of a text in this font size: an upper estimate for sans-serif faces.
pub(crate) fn width_of(text: &str, size: u32) -> f64 {
    let count = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    f64::from(count) * f64::from(size) * 0.58
}

/// The text in at most so many characters, the last of them `…` where some are left out.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    match text.chars().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Lines of at most this width, broken between words; a longer word stands alone, cut short. At most `lines_max`, the last
/// of them ending with `…` where words are left out.
pub(crate) fn wrapped(text: &str, size: u32, width: f64, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let fits = |line: &str| width_of(line, size) <= width;
    for word in text.split_whitespace() {
        let is_last = lines.len() == lines_max;
        let joined = lines.last().map(|line| format!("{line} {word}")).filter(|line| fits(line));
        match (joined, lines.last_mut()) {
            (Some(joined), Some(line)) => *line = joined,
            (None, Some(line)) if is_last => {
                line.push_str(" …");
                return lines;
            }
            _ => lines.push(cut(word, size, width)),
        }
    }
    lines
}

fn cut(word: &str, size: u32, width: f64) -> String {
    let mut word = word.to_owned();
    while width_of(&word, size) > width && word.chars().count() > 1 {
        word = shortened(&word, word.chars().count() - 1);
    }
    word
}

/// `1 rank`, `2 ranks`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_wider_than_asked_and_lose_nothing_silently() {
        assert_eq!(wrapped("aa bb cc", 10, width_of("aa bb", 10), 9), ["aa bb", "cc"]);
        assert_eq!(wrapped("aa bb cc dd", 10, width_of("aa bb", 10), 1), ["aa bb …"]);
        assert_eq!(wrapped("abcdefgh", 10, width_of("abcd", 10), 9), ["abc…"]);
        assert!(wrapped("", 10, 10.0, 3).is_empty());
        assert_eq!((shortened("µµµ", 3), shortened("µµµµ", 3)), ("µµµ".to_owned(), "µµ…".to_owned()));
    }
}
