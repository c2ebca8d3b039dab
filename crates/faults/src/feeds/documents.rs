//! JSON documents out of a stream of lines: each on a line of its own, or spread over many, with words between them.

use crate::feeds::{FeedError, MESSAGE_BYTES_MAX};

/// Collects lines until braces close.
///
/// Lines between documents that do not begin with a brace are greetings and rules of clients; they are handed back. What is inside
/// a document is indented, as all its writers do: a line that begins with a brace begins a document, so that one that breaks
/// off takes no other with it.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    collected: String,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The rest of a document that was too long is passed over.
    is_too_long: bool,
}

/// What a line ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A document is complete.
    Document(String),
    /// A document has begun and goes on.
    Open,
    /// The line is between documents and says something else; empty where it says nothing.
    Words(String),
}

impl Documents {
    /// Takes the next line, without its end, after [`Documents::break_off`].
    ///
    /// # Errors
    /// The document is longer than [`MESSAGE_BYTES_MAX`], once; the rest of it is passed over.
    pub fn push(&mut self, line: &str) -> Result<Line, FeedError> {
        let line = line.trim();
        if self.depth == 0 && !line.starts_with('{') {
            return Ok(Line::Words(line.to_owned()));
        }
        for byte in line.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' if !self.in_string => self.depth += 1,
                b'}' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        // A string does not go on in the next line.
        (self.in_string, self.is_escaped) = (false, false);
        let is_closed = self.depth == 0;
        if self.is_too_long {
            self.is_too_long = !is_closed;
            return Ok(Line::Open);
        }
        if self.collected.len() + line.len() > MESSAGE_BYTES_MAX {
            self.collected = String::new();
            self.is_too_long = !is_closed;
            return Err(FeedError::TooLong { limit: MESSAGE_BYTES_MAX });
        }
        self.collected.push_str(line);
        self.collected.push('\n');
        Ok(if is_closed { Line::Document(std::mem::take(&mut self.collected)) } else { Line::Open })
    }

    /// Gives up a document that is not complete when the next line begins another one, or when there is none; says so, unless it
    /// was too long anyhow.
    pub fn break_off(&mut self, next: Option<&str>) -> Option<FeedError> {
        let goes_on = next.is_some_and(|line| !line.starts_with('{'));
        if self.depth == 0 || goes_on {
            return None;
        }
        let given_up = std::mem::take(self);
        (!given_up.is_too_long).then_some(FeedError::Unfinished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_may_span_lines_and_have_words_between() {
        let mut documents = Documents::default();
        let mut push = |line| documents.push(line).unwrap();
        assert_eq!(push("RAS Monitor Mode - watching"), Line::Words("RAS Monitor Mode - watching".to_owned()));
        assert_eq!(push(r#"{"a": "}{\"", "b": {}}"#), Line::Document("{\"a\": \"}{\\\"\", \"b\": {}}\n".to_owned()));
        assert_eq!((push("{"), push("  \"a\": {"), push("  }")), (Line::Open, Line::Open, Line::Open));
        assert_eq!(push("}"), Line::Document("{\n\"a\": {\n}\n}\n".to_owned()));
        assert_eq!(push(""), Line::Words(String::new()));
    }

    #[test]
    fn what_is_too_long_is_passed_over_to_its_end() {
        let mut documents = Documents::default();
        documents.push("{").unwrap();
        let long = "x".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(documents.push(&long), Err(FeedError::TooLong { limit: MESSAGE_BYTES_MAX }));
        assert_eq!((documents.push("more"), documents.break_off(Some("}"))), (Ok(Line::Open), None));
        assert_eq!(documents.push("}"), Ok(Line::Open));
        assert_eq!(documents.push("{}"), Ok(Line::Document("{}\n".to_owned())));
    }

    #[test]
    fn a_document_that_breaks_off_takes_no_other_with_it() {
        let mut documents = Documents::default();
        let mut lines = |lines: &[&str]| -> Vec<String> {
            let mut told = Vec::new();
            for line in lines {
                told.extend(documents.break_off(Some(line)).map(|error| error.to_string()));
                if let Ok(Line::Document(document)) = documents.push(line) {
                    told.push(document.replace('\n', ""));
                }
            }
            told.extend(documents.break_off(None).map(|error| error.to_string()));
            told
        };
        let broken = FeedError::Unfinished.to_string();
        assert_eq!(
            lines(&["{", "  \"a\": [", "    {", "{", "  \"b\": {", "  }", "}", "{\"c\": [1", "{\"d\": 1}"]),
            [broken.clone(), "{\"b\": {}}".to_owned(), broken.clone(), "{\"d\": 1}".to_owned()]
        );
        assert_eq!((lines(&["{", "words"]), lines(&["{}"])), (vec![broken], vec!["{}".to_owned()]));
    }
}
