//! The signer of an archive: a server's signature behind the digest, and the servers that are trusted.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use zeroize::Zeroizing;

use super::ArchiveError;
use crate::access::{Secrecy, read_guarded};
use crate::store::Durability;
use crate::store::disk::Disk;

/// The file of a server's own key in its data directory: 64 hexadecimal digits.
const FILE: &str = "archive.key";
/// What a signature begins with.
const MAGIC: [u8; 8] = *b"CNPYSIG1";
const KEY_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;
/// Bytes behind the digest of a signed archive: magic, public key, signature.
pub(super) const TRAILER_BYTES: usize = MAGIC.len() + KEY_BYTES + SIGNATURE_BYTES;
/// What stands before the digest in what is signed, so that the key signs nothing else by mistake.
const CONTEXT: &[u8] = b"canopy archive 1\0";
/// What the name of a key begins with.
const PREFIX: &str = "ed25519:";
/// The line that trusts archives without a signature.
const UNSIGNED: &str = "unsigned";
/// Most bytes of a file of keys.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A public key.
pub(crate) type PublicKey = [u8; KEY_BYTES];

/// The key with which a server signs its archives.
pub struct ArchiveKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

impl ArchiveKey {
    /// The key of a data directory; a new one if it has none.
    ///
    /// # Errors
    /// Its file cannot be read or written, holds something else, or others may read it.
    pub fn of(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(FILE);
        let refused = |problem: String| io::Error::other(format!("{}: {problem}", path.display()));
        if !path.exists() {
            let mut seed = Zeroizing::new([0_u8; KEY_BYTES]);
            SystemRandom::new().fill(&mut *seed).map_err(|_| refused("the system gives no chance".to_owned()))?;
            let text = Zeroizing::new(format!("{}\n", hex(&*seed)));
            // New files are for their owner alone.
            Disk::default().replace(&path, &[text.as_bytes()], Durability::Synced)?;
        }
        let text = Zeroizing::new(read_guarded(&path, Secrecy::Secret, FILE_BYTES_MAX).map_err(refused)?);
        let seed =
            Zeroizing::new(from_hex(text.trim()).ok_or_else(|| refused("it is not a key; remove it".to_owned()))?);
        let pair = Ed25519KeyPair::from_seed_unchecked(&*seed).map_err(|error| refused(error.to_string()))?;
        let mut public = [0; KEY_BYTES];
        public.copy_from_slice(pair.public_key().as_ref());
        Ok(Self { pair, public })
    }

    /// The name of its public half, `ed25519:HEX`.
    pub fn name(&self) -> String {
        name_of(&self.public)
    }

    /// What stands behind the digest of an archive.
    pub(super) fn sign(&self, digest: &blake3::Hash) -> Vec<u8> {
        let signature = self.pair.sign(&signed(digest));
        [&MAGIC[..], &self.public, signature.as_ref()].concat()
    }
}

/// The signer of a digest, by what stands behind it; `None` if that does not sign this digest.
pub(super) fn signer(trailer: &[u8], digest: &blake3::Hash) -> Option<PublicKey> {
    let (key, signature) = trailer.strip_prefix(&MAGIC)?.split_at_checked(KEY_BYTES)?;
    UnparsedPublicKey::new(&ED25519, key).verify(&signed(digest), signature).ok()?;
    key.try_into().ok()
}

/// Whose archives a server takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveTrust {
    /// Everybody's.
    Everything,
    /// Its own and these.
    Keys {
        /// Public keys.
        keys: BTreeSet<[u8; 32]>,
        /// Whether archives without a signature are taken as well.
        unsigned: bool,
    },
}

impl ArchiveTrust {
    /// A server's own archives alone.
    pub const fn own() -> Self {
        Self::Keys { keys: BTreeSet::new(), unsigned: false }
    }

    /// Reads a list: a key in each line, with anything behind it, or `unsigned`; `#` begins a comment.
    ///
    /// # Errors
    /// What is wrong with which line.
    pub fn read(text: &str) -> Result<Self, String> {
        let (mut keys, mut unsigned) = (BTreeSet::new(), false);
        for (number, line) in text.lines().enumerate() {
            let Some(word) = line.split('#').next().and_then(|line| line.split_whitespace().next()) else { continue };
            match word.strip_prefix(PREFIX).map(from_hex) {
                None if word == UNSIGNED => unsigned = true,
                Some(Some(key)) => _ = keys.insert(key),
                Some(None) | None => {
                    return Err(format!(
                        "line {}: `{}` is not a key; write {PREFIX} and 64 hexadecimal digits, as `canopy server stats` of the other server shows it, or `{UNSIGNED}`",
                        number + 1,
                        word.chars().take(100).collect::<String>(),
                    ));
                }
            }
        }
        Ok(Self::Keys { keys, unsigned })
    }

    /// Whether an archive with this signer is taken by the server of this key.
    ///
    /// # Errors
    /// It is signed by somebody else, or not at all.
    pub(crate) fn judge(&self, own: &ArchiveKey, signer: Option<PublicKey>) -> Result<(), ArchiveError> {
        let Self::Keys { keys, unsigned } = self else { return Ok(()) };
        match signer {
            Some(signer) if signer == own.public || keys.contains(&signer) => Ok(()),
            None if *unsigned => Ok(()),
            Some(signer) => Err(ArchiveError::Signer { name: name_of(&signer) }),
            None => Err(ArchiveError::Unsigned),
        }
    }
}

fn signed(digest: &blake3::Hash) -> Vec<u8> {
    [CONTEXT, digest.as_bytes()].concat()
}

fn name_of(key: &PublicKey) -> String {
    format!("{PREFIX}{}", hex(key))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(text).ok().map(|hash| *hash.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_directory_keeps_its_key_and_nobody_else_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let key = ArchiveKey::of(folder.path()).unwrap();
        assert_eq!(ArchiveKey::of(folder.path()).unwrap().name(), key.name());
        let path = folder.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(ArchiveKey::of(folder.path()).err().unwrap().to_string().contains("chmod 600"));
        fs::remove_file(&path).unwrap();
        assert_ne!(ArchiveKey::of(folder.path()).unwrap().name(), key.name());
    }

    #[test]
    fn a_signature_is_of_one_digest_by_one_key() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [key, other] = folders.each_ref().map(|folder| ArchiveKey::of(folder.path()).unwrap());
        let digest = blake3::hash(b"archive");
        let trailer = key.sign(&digest);
        assert!(trailer.len() == TRAILER_BYTES && signer(&trailer, &digest) == Some(key.public));
        assert_eq!(signer(&trailer, &blake3::hash(b"another")), None);
        for at in 0..TRAILER_BYTES {
            let mut bent = trailer.clone();
            bent[at] ^= 1;
            assert_eq!(signer(&bent, &digest), None, "byte {at}");
        }
        let foreign = [&MAGIC[..], &other.public, &trailer[MAGIC.len() + KEY_BYTES..]].concat();
        assert_eq!(signer(&foreign, &digest), None);
    }

    #[test]
    fn lists_of_keys_are_read_with_their_remarks() {
        let key = format!("ed25519:{}", "0f".repeat(32));
        let read = ArchiveTrust::read(&format!("# servers\n\n{key} planner-2\nunsigned # for old backups\n")).unwrap();
        assert_eq!(read, ArchiveTrust::Keys { keys: BTreeSet::from([[15; 32]]), unsigned: true });
        assert_eq!(ArchiveTrust::read(""), Ok(ArchiveTrust::own()));
        for wrong in ["ed25519:0f", "rsa:00", "all"] {
            let problem = ArchiveTrust::read(&format!("\n{wrong}\n")).unwrap_err();
            assert!(problem.contains("line 2") && problem.contains(wrong), "{problem}");
        }
    }
}
