//! Assembles the files of a plan from the pieces of a stream, and checks every piece.

use canopy_proto::v1::{Artifact, ContentPiece};
use sha2::{Digest, Sha256};

/// Pieces that do not match the announced files: the server or the route to it is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ContentError {
    #[error("a piece belongs to file {found}, but the next missing byte is in file {expected}")]
    WrongFile { expected: usize, found: u32 },
    #[error("a piece of file {file} starts at byte {found}, but the next missing byte is {expected}")]
    WrongOffset { file: usize, expected: u64, found: u64 },
    #[error("file {file} exceeds its announced size of {size_bytes} bytes")]
    TooLong { file: usize, size_bytes: u64 },
    #[error("the piece of file {file} at byte {offset} does not match its SHA-256")]
    DamagedPiece { file: usize, offset: u64 },
    #[error("file {file} is complete but does not match its announced SHA-256")]
    DamagedFile { file: usize },
    #[error("the content ended in file {file} at byte {found} of {size_bytes}")]
    Incomplete { file: usize, found: u64, size_bytes: u64 },
}

/// The state of the files. Holds no content: the caller writes each accepted piece.
#[derive(Debug)]
pub(crate) struct Assembly {
    announced: Vec<(u64, String)>,
    file: usize,
    offset: u64,
    digest: Sha256,
}

impl Assembly {
    /// Expects the announced files, in order.
    pub(crate) fn new(artifacts: &[Artifact]) -> Self {
        let announced = artifacts.iter().map(|artifact| (artifact.size_bytes, artifact.sha256.clone())).collect();
        Self { announced, file: 0, offset: 0, digest: Sha256::new() }
    }

    /// Expects the rest of a file of which `offset` bytes have arrived, with the state of their digest.
    ///
    /// # Errors
    /// The file is complete but does not match its announcement.
    pub(crate) fn resumed(artifact: &Artifact, offset: u64, digest: Sha256) -> Result<Self, ContentError> {
        let mut assembly = Self { offset, digest, ..Self::new(std::slice::from_ref(artifact)) };
        // An empty file is completed when it ends, as any other.
        if offset > 0 && offset == artifact.size_bytes {
            assembly.complete_file()?;
        }
        Ok(assembly)
    }

    /// Checks that a piece is the next one and undamaged. O(bytes of the piece).
    pub(crate) fn accept(&mut self, piece: &ContentPiece) -> Result<(), ContentError> {
        // An empty file may come without a piece.
        if usize::try_from(piece.artifact).is_ok_and(|found| found > self.file) {
            self.complete_empty_files()?;
        }
        let file = self.file;
        let wrong_file = ContentError::WrongFile { expected: file, found: piece.artifact };
        if usize::try_from(piece.artifact).ok() != Some(file) {
            return Err(wrong_file);
        }
        let size_bytes = self.announced.get(file).ok_or(wrong_file)?.0;
        if piece.offset != self.offset {
            return Err(ContentError::WrongOffset { file, expected: self.offset, found: piece.offset });
        }
        let length = piece.data.len() as u64;
        let end = self.offset.checked_add(length).filter(|&end| end <= size_bytes);
        let end = end.ok_or(ContentError::TooLong { file, size_bytes })?;
        if !is_digest(&Sha256::digest(&piece.data), &piece.sha256) {
            return Err(ContentError::DamagedPiece { file, offset: piece.offset });
        }
        self.digest.update(&piece.data);
        self.offset = end;
        if end == size_bytes { self.complete_file() } else { Ok(()) }
    }

    /// The offset of the next missing byte in the current file; `None` when all files are complete.
    pub(crate) fn offset(&self) -> Option<u64> {
        (self.file < self.announced.len()).then_some(self.offset)
    }

    /// Checks that every file is complete.
    pub(crate) fn finish(mut self) -> Result<(), ContentError> {
        self.complete_empty_files()?;
        match self.announced.get(self.file) {
            Some((size_bytes, _)) => {
                Err(ContentError::Incomplete { file: self.file, found: self.offset, size_bytes: *size_bytes })
            }
            None => Ok(()),
        }
    }

    fn complete_empty_files(&mut self) -> Result<(), ContentError> {
        while self.announced.get(self.file).is_some_and(|(size_bytes, _)| *size_bytes == 0) {
            self.complete_file()?;
        }
        Ok(())
    }

    fn complete_file(&mut self) -> Result<(), ContentError> {
        let digest = std::mem::take(&mut self.digest).finalize();
        let file = self.file;
        self.file += 1;
        self.offset = 0;
        match self.announced.get(file) {
            Some((_, announced)) if is_digest(&digest, announced) => Ok(()),
            _ => Err(ContentError::DamagedFile { file }),
        }
    }
}

/// Whether `text` is this digest in hexadecimal.
pub(crate) fn is_digest(digest: &[u8], text: &str) -> bool {
    hex(digest).eq_ignore_ascii_case(text)
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha256(data: &[u8]) -> String {
        hex(&Sha256::digest(data))
    }

    fn file(content: &[u8]) -> Artifact {
        Artifact { size_bytes: content.len() as u64, sha256: sha256(content), ..Artifact::default() }
    }

    fn piece(artifact: u32, offset: u64, data: &'static [u8]) -> ContentPiece {
        ContentPiece { artifact, offset, data: data.into(), sha256: sha256(data) }
    }

    #[track_caller]
    fn check(files: &[Artifact], pieces: &[ContentPiece], expected: Result<(), ContentError>) {
        let mut assembly = Assembly::new(files);
        let outcome = pieces.iter().try_for_each(|piece| assembly.accept(piece)).and_then(|()| assembly.finish());
        assert_eq!(outcome, expected);
    }

    #[test]
    fn files_come_together_in_order() {
        let files = [file(b"abcde"), file(b""), file(b"xyz"), file(b"")];
        check(&files, &[piece(0, 0, b"ab"), piece(0, 2, b"cde"), piece(2, 0, b"xyz")], Ok(()));
        check(&files, &[piece(0, 0, b"abcde"), piece(1, 0, b""), piece(2, 0, b"xyz"), piece(3, 0, b"")], Ok(()));
        check(&[], &[], Ok(()));
    }

    #[test]
    fn a_file_goes_on_where_it_was_left() {
        let resumed =
            |held: &'static [u8]| Assembly::resumed(&file(b"abcde"), held.len() as u64, Sha256::new_with_prefix(held));
        let mut half = resumed(b"ab").unwrap();
        assert_eq!(half.accept(&piece(0, 0, b"ab")), Err(ContentError::WrongOffset { file: 0, expected: 2, found: 0 }));
        assert_eq!(half.accept(&piece(0, 2, b"cde")).and_then(|()| half.finish()), Ok(()));
        let mut other = resumed(b"xy").unwrap();
        assert_eq!(other.accept(&piece(0, 2, b"cde")), Err(ContentError::DamagedFile { file: 0 }));
        assert_eq!(resumed(b"abcde").unwrap().finish(), Ok(()));
        assert_eq!(resumed(b"abcdX").unwrap_err(), ContentError::DamagedFile { file: 0 });
        assert!(resumed(b"").unwrap().finish().is_err());
    }

    #[test]
    fn every_kind_of_damage_is_noticed() {
        let files = [file(b"abcde"), file(b"xyz")];
        check(&files, &[piece(1, 0, b"xyz")], Err(ContentError::WrongFile { expected: 0, found: 1 }));
        check(&files, &[piece(0, 1, b"b")], Err(ContentError::WrongOffset { file: 0, expected: 0, found: 1 }));
        check(
            &files,
            &[piece(0, 0, b"ab"), piece(0, 0, b"ab")],
            Err(ContentError::WrongOffset { file: 0, expected: 2, found: 0 }),
        );
        check(&files, &[piece(0, 0, b"abcdef")], Err(ContentError::TooLong { file: 0, size_bytes: 5 }));
        check(&files, &[piece(0, 0, b"abcdX")], Err(ContentError::DamagedFile { file: 0 }));
        let lying = ContentPiece { sha256: sha256(b"other"), ..piece(0, 0, b"ab") };
        check(&files, &[lying], Err(ContentError::DamagedPiece { file: 0, offset: 0 }));
        check(&files, &[piece(0, 0, b"abcde")], Err(ContentError::Incomplete { file: 1, found: 0, size_bytes: 3 }));
        check(&files, &[], Err(ContentError::Incomplete { file: 0, found: 0, size_bytes: 5 }));
        let past = [piece(0, 0, b"abcde"), piece(1, 0, b"xyz"), piece(2, 0, b"")];
        check(&files, &past, Err(ContentError::WrongFile { expected: 2, found: 2 }));
    }
}
