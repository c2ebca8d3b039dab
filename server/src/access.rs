//! Callers of this server: the rules and tokens on its disk, read again when they change.

mod files;

use std::path::PathBuf;
use std::sync::Arc;

use canopy_access::{Certificate, Identity, Policy, Quotas, Refused, Source, TokenError, Tokens};
use tokio::sync::watch;
use tonic::codegen::http::HeaderMap;
use tonic::codegen::http::header::AUTHORIZATION;

use crate::clock;

pub(crate) use self::files::{Current, Secrecy, Stamps, read_guarded};

/// Most bytes of the file of rules, of that of tokens, and of a file that the rules name.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Where the rules are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessOptions {
    /// The file of rules; without one, only the owner of the server's process has access, through the Unix socket.
    pub rules: Option<PathBuf>,
    /// The file of tokens, which need not exist.
    pub tokens: PathBuf,
    /// Whether everybody may do everything where there are no rules: for one person on one machine.
    pub development: bool,
}

/// What a connection shows of its other end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nothing.
    #[default]
    Nothing,
    /// The user and group of a process on this machine.
    User(u32, u32),
    /// A client certificate, verified.
    Certificate(Arc<Certificate>),
}

/// Why a caller is not let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stranger {
    #[error("the call shows no identity; send a token (`--token-file`) or a client certificate (`--cert`, `--key`)")]
    Nothing,
    #[error("`authorization` is not `Bearer` and a token; send one such line, or none")]
    Header,
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Why rules cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}, the file of `{setting}`: {problem}")]
pub struct AccessError {
    pub(crate) setting: &'static str,
    pub(crate) path: String,
    pub(crate) problem: String,
}

/// What was read.
#[derive(Debug)]
struct Loaded {
    policy: Policy,
    tokens: Tokens,
}

/// Rules as they were at some time.
pub(crate) struct Rules(Arc<Loaded>);

impl Rules {
    pub(crate) fn quotas(&self) -> &Quotas {
        self.0.policy.quotas()
    }
}

#[derive(Debug)]
struct Inner {
    options: AccessOptions,
    /// The user of this process.
    owner: u32,
    loaded: Current<Loaded>,
}

/// The rules of a server; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Access(Arc<Inner>);

impl Access {
    /// Reads the rules.
    ///
    /// # Errors
    /// They cannot be read, or others may change them.
    pub(crate) fn read(options: AccessOptions) -> Result<Self, AccessError> {
        let loaded = Current::new(load(&options)?);
        let owner = rustix::process::geteuid().as_raw();
        Ok(Self(Arc::new(Inner { options, owner, loaded })))
    }

    /// Whether callers are told apart.
    pub(crate) fn is_guarded(&self) -> bool {
        !self.0.options.development || self.0.options.rules.is_some()
    }

    /// The rules in effect.
    pub(crate) fn rules(&self) -> Rules {
        Rules(self.0.loaded.get())
    }

    /// Tells of every change of the rules from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.loaded.changes()
    }

    /// Reads the rules again, as [`Current::reload`].
    pub(crate) fn reload(&self, always: bool) -> Result<bool, AccessError> {
        self.0.loaded.reload(always, || load(&self.0.options))
    }

    /// The caller of a call with these headers, over a connection that shows this.
    pub(crate) fn identify(&self, shown: &Shown, headers: &HeaderMap) -> Result<Identity, Stranger> {
        let Inner { owner, options, loaded } = &*self.0;
        if options.development && options.rules.is_none() {
            return Ok(Identity::all_powerful("anybody".to_owned(), Source::Development));
        }
        if let Some(token) = bearer(headers)? {
            return self.bearer(token);
        }
        let loaded = loaded.get();
        match shown {
            Shown::Certificate(certificate) => Ok(loaded.policy.certificate(certificate)?),
            // These users could change the rules as well.
            Shown::User(user, _) if user == owner || *user == 0 => {
                Ok(Identity::all_powerful(format!("uid:{user}"), Source::User))
            }
            Shown::User(user, group) => Ok(loaded.policy.user(*user, *group)?),
            Shown::Nothing => Err(Stranger::Nothing),
        }
    }
}

impl Access {
    /// The caller that shows this token. One that is not known may have been made a moment ago: files that have changed
    /// are read before it is refused.
    fn bearer(&self, token: &str) -> Result<Identity, Stranger> {
        let identify = || {
            let loaded = self.0.loaded.get();
            loaded.policy.bearer(token, &loaded.tokens, clock::unix_ms())
        };
        match identify() {
            Err(Refused::Token(TokenError::Unknown)) => {
                self.0.loaded.catch_up(|| load(&self.0.options));
                Ok(identify()?)
            }
            outcome => Ok(outcome?),
        }
    }
}

/// The bearer token among these headers. The scheme's name is written in any case (RFC 9110, section 11.1).
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Stranger> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    let text = line.to_str().map_err(|_| Stranger::Header)?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && lines.next().is_none() => {
            Ok(Some(token.trim()))
        }
        _ => Err(Stranger::Header),
    }
}

fn load(options: &AccessOptions) -> Result<(Loaded, Stamps), AccessError> {
    let mut stamps = Stamps::default();
    let refused = |setting, path: &PathBuf| {
        let path = path.display().to_string();
        move |problem: String| AccessError { setting, path, problem }
    };
    let policy = match &options.rules {
        None => Policy::read("", |_| Err("nothing is named".to_owned())).map_err(|error| error.to_string()),
        Some(path) => {
            stamps.note(path);
            let folder = path.parent().map(PathBuf::from).unwrap_or_default();
            read_guarded(path, Secrecy::Public, FILE_BYTES_MAX).and_then(|text| {
                let read = |named: &canopy_access::IssuerFiles| {
                    let path = folder.join(&named.path);
                    stamps.note(&path);
                    read_guarded(&path, Secrecy::Public, FILE_BYTES_MAX)
                };
                Policy::read(&text, read).map_err(|error| error.to_string())
            })
        }
    };
    let none = PathBuf::new();
    let policy = policy.map_err(refused("access", options.rules.as_ref().unwrap_or(&none)))?;
    stamps.note(&options.tokens);
    let tokens = if options.tokens.exists() {
        read_guarded(&options.tokens, Secrecy::Secret, FILE_BYTES_MAX)
            .and_then(|text| Tokens::read(&text, policy.roles()).map_err(|error| error.to_string()))
            .map_err(refused("tokens", &options.tokens))?
    } else {
        Tokens::default()
    };
    Ok((Loaded { policy, tokens }, stamps))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn options(folder: &std::path::Path, rules: &str) -> AccessOptions {
        let path = folder.join("access.toml");
        fs::write(&path, rules).unwrap();
        AccessOptions { rules: Some(path), tokens: folder.join("tokens.json"), development: false }
    }

    #[test]
    fn rules_are_read_again_when_they_change_and_wrong_ones_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), "[[grant]]\nuser = 7\nroles = [\"viewer\"]\n");
        let access = Access::read(options.clone()).unwrap();
        let knows = |user| access.identify(&Shown::User(user, user), &HeaderMap::new()).is_ok();
        assert!(knows(7) && !knows(8) && access.is_guarded());
        assert_eq!(access.reload(false), Ok(false));
        fs::write(options.rules.as_ref().unwrap(), "[[grant]]\nuser = 88\nroles = [\"viewer\"]\n").unwrap();
        assert_eq!(access.reload(false), Ok(true));
        assert!(!knows(7) && knows(88));
        fs::write(options.rules.as_ref().unwrap(), "[[grant]]\nuser = 8\nroles = [\"boss\"]\n").unwrap();
        assert!(access.reload(false).unwrap_err().to_string().contains("`boss` is not a role"));
        assert!(knows(88) && access.reload(false) == Ok(false));
        assert!(access.reload(true).is_err());
    }

    #[test]
    fn files_that_others_may_change_or_read_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), "");
        let rules = options.rules.clone().unwrap();
        fs::set_permissions(&rules, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(Access::read(options.clone()).unwrap_err().to_string().contains("chmod 644"));
        fs::set_permissions(&rules, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&options.tokens, "{\"tokens\": []}").unwrap();
        fs::set_permissions(&options.tokens, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Access::read(options.clone()).unwrap_err().to_string().contains("chmod 600"));
        fs::set_permissions(&options.tokens, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Access::read(options).is_ok());
    }

    #[test]
    fn a_token_counts_as_soon_as_it_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), "");
        let access = Access::read(options.clone()).unwrap();
        let mut tokens = Tokens::default();
        for number in 0..3_u8 {
            let name = format!("t{number}");
            let (roles, expires_ms) = (["viewer".to_owned()], u64::MAX);
            let purpose = canopy_access::Purpose { name: &name, roles: &roles, tenants: &[], expires_ms };
            let chance = [number; size_of::<canopy_access::TokenChance>()];
            let made = tokens.create(&purpose, &canopy_access::Roles::default(), 0, &chance).unwrap();
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, format!("Bearer {}", *made.text).parse().unwrap());
            assert!(access.identify(&Shown::Nothing, &headers).is_err());
            fs::write(&options.tokens, tokens.write()).unwrap();
            fs::set_permissions(&options.tokens, fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(access.identify(&Shown::Nothing, &headers).map(|identity| identity.name), Ok(name));
        }
        // What cannot be used changes nothing, and is reported by the next look.
        fs::write(&options.tokens, "no tokens").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, "Bearer canopy_1_2".parse().unwrap());
        assert!(access.identify(&Shown::Nothing, &headers).is_err());
        assert!(access.reload(false).is_err());
    }

    #[test]
    fn whoever_runs_the_server_may_do_everything_and_a_token_goes_before_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let access = Access::read(options(folder.path(), "")).unwrap();
        let owner = Shown::User(rustix::process::geteuid().as_raw(), 0);
        assert!(access.identify(&owner, &HeaderMap::new()).is_ok());
        assert_eq!(access.identify(&Shown::Nothing, &HeaderMap::new()), Err(Stranger::Nothing));
        for (value, is_header) in [("Bearer x", false), ("bearer canopy_1_2", false), ("Basic x", true), ("x", true)] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            let refused = access.identify(&owner, &headers).unwrap_err();
            assert_eq!(refused == Stranger::Header, is_header, "{value}");
        }
    }
}
