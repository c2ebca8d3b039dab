//! Tells the server what it was built from: the revision of the source and the compiler.

#[path = "build/revision.rs"]
mod revision;

fn main() {
    revision::tell_cargo("..");
}
