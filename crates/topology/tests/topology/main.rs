//! Networks from outside: samples and approved texts, and what holds for all of them.

mod golden;
mod properties;
mod samples;
