//! `manifest.json` of a bundle: which files it has, and their digests.

use std::fs;
use std::path::{Component, Path};

use serde_json::Value;

use super::FolderError;

/// Most bytes of a manifest.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// A file that is to be read.
pub(super) struct Listed {
    /// Path within the folder.
    pub(super) name: String,
    /// What its bytes must hash to, where that is known.
    pub(super) sha256: Option<[u8; 32]>,
}

/// The files of a bundle, in the order of its items.
pub(super) fn files(path: &Path) -> Result<Vec<Listed>, FolderError> {
    let wrong = |problem: String| FolderError::Manifest { path: path.to_owned(), problem };
    let size = fs::metadata(path).map_err(super::unreadable(path))?.len();
    if size > MANIFEST_BYTES_MAX {
        return Err(wrong(format!("has {size} bytes, over the limit of {MANIFEST_BYTES_MAX}")));
    }
    let text = fs::read_to_string(path).map_err(super::unreadable(path))?;
    let manifest: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("is not JSON: {error}")))?;
    if manifest.get("kind").and_then(Value::as_str) != Some("plan-bundle") {
        return Err(wrong("is not the manifest of a bundle".to_owned()));
    }
    let format = manifest.get("format").and_then(Value::as_str).unwrap_or_default();
    if format != "oneccl-xml" {
        return Err(wrong(format!("the bundle has files of format `{format}`, but MPI needs oneccl-xml")));
    }
    let items = manifest.get("items").and_then(Value::as_array).ok_or_else(|| wrong("has no `items`".to_owned()))?;
    let mut found: Vec<Listed> = Vec::new();
    for file in items.iter().flat_map(|item| item.get("files").and_then(Value::as_array)).flatten() {
        let text_of = |key: &str| file.get(key).and_then(Value::as_str);
        let name = text_of("path").ok_or_else(|| wrong("a file has no `path`".to_owned()))?;
        if name.is_empty() || Path::new(name).components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(wrong(format!("`{name}` is not a path within the folder")));
        }
        let sha256 = text_of("sha256").and_then(digest);
        let sha256 = sha256.ok_or_else(|| wrong(format!("`{name}` has no digest of 64 digits")))?;
        if !found.iter().any(|other| other.name == name) {
            found.push(Listed { name: name.to_owned(), sha256: Some(sha256) });
        }
        if found.len() > super::FILES_MAX {
            break;
        }
    }
    Ok(found)
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}
