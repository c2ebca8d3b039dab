//! The documents: links lead somewhere, commands do what the pages say, words are plain.

mod links;
mod page;
mod run;
mod words;
