//! What a person should know about how a file was read.

/// Most lines of each kind; a file with more has one thing many times.
const LINES_MAX: usize = 32;

/// Sentences about a file, in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What it says.
    pub understood: Vec<String>,
    /// What it does not say, and what was taken for it.
    pub assumed: Vec<String>,
    /// What it says and the network does not have.
    pub left_out: Vec<String>,
}

impl Report {
    /// All that is not as the file says, which is what people are warned of.
    pub fn warnings(&self) -> impl Iterator<Item = &String> {
        self.assumed.iter().chain(&self.left_out)
    }

    /// Adds the sentences of another.
    pub fn append(&mut self, other: Self) {
        self.understood.extend(other.understood);
        self.assumed.extend(other.assumed);
        self.left_out.extend(other.left_out);
    }

    /// The report with at most so many sentences of each kind as a person reads.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        for lines in [&mut self.understood, &mut self.assumed, &mut self.left_out] {
            if lines.len() > LINES_MAX {
                let more = lines.len() - LINES_MAX;
                lines.truncate(LINES_MAX);
                lines.push(format!("and {more} more of the kind"));
            }
        }
        self
    }
}
