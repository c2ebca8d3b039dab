//! What a server reads about its callers: rules, tokens, keys, and the lines of its audit log.

use std::sync::LazyLock;

use canopy_access::audit::{Chain, Entry};
use canopy_access::{Certificate, Keys, NameKind, Policy, Roles, Tokens};
use canopy_server::ArchiveTrust;

use crate::{refused, seen, text};

/// A key of an issuer, whose private half is not here.
const KEYS: &str =
    r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
/// Rules about callers of one issuer.
const RULES: &str = r#"
[issuers.site]
issuer = "https://site"
keys = "keys.json"
audiences = ["canopy"]
[[grant]]
issuer = "site"
subject = "*"
roles = ["admin"]
"#;
/// The same for an issuer whose name stands in its discovery document.
const DISCOVERED: &str = r#"
[issuers.site]
discovery = "discovery.json"
keys = "keys.json"
audiences = ["canopy"]
"#;
const NOW_MS: u64 = 1_800_000_000_000;

/// Rules. Whoever they let in may call only methods that exist.
pub(crate) fn rules(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let policy = match Policy::read(text, |_| Ok(KEYS.to_owned())) {
        Ok(policy) => policy,
        Err(error) => return refused(&error),
    };
    for tenant in ["", "red"] {
        assert!(policy.quotas().of_tenant(tenant).weight() > 0, "a tenant would never have a turn");
    }
    seen(policy.quotas().of_identity("cn:agent"));
    let shown = Certificate::new([(NameKind::CommonName, "agent"), (NameKind::Dns, "agent")], u64::MAX);
    for identity in [policy.certificate(&shown), policy.user(1000, 1000)].into_iter().flatten() {
        seen(identity.admit("canopy.v1.Planner/Plan", None, NOW_MS));
        assert!(identity.admit("canopy.v1.Planner/Nothing", None, NOW_MS).is_err(), "a method that does not exist");
    }
}

/// Bearer tokens. None is valid: no token was issued, and the private key is not here.
pub(crate) fn bearer_token(input: &[u8]) {
    static POLICY: LazyLock<Policy> =
        LazyLock::new(|| Policy::read(RULES, |_| Ok(KEYS.to_owned())).expect("the rules can be read"));
    let Some(text) = text(input) else { return };
    match POLICY.bearer(text, &Tokens::default(), NOW_MS) {
        Ok(identity) => panic!("a forged token is taken: {identity:?}"),
        Err(error) => refused(&error),
    }
}

/// The file of tokens, which is written and read again. Nobody is let in by a guess.
pub(crate) fn stored_tokens(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let roles = Roles::default();
    let tokens = match Tokens::read(text, &roles) {
        Ok(tokens) => tokens,
        Err(error) => return refused(&error),
    };
    assert_eq!(Tokens::read(&tokens.write(), &roles).as_ref(), Ok(&tokens));
    for token in tokens.iter() {
        let guess = format!("canopy_{}_{}", token.id, "0".repeat(64));
        assert!(tokens.identify(&guess, &roles, NOW_MS).is_err(), "a guess is taken");
    }
}

/// Key sets and discovery documents of issuers.
pub(crate) fn issuer_documents(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match Keys::read(text) {
        Ok(keys) => seen(keys),
        Err(error) => refused(&error),
    }
    let discovered =
        Policy::read(DISCOVERED, |file| Ok(if file.path == "keys.json" { KEYS.to_owned() } else { text.to_owned() }));
    match discovered {
        Ok(policy) => seen(policy),
        Err(error) => refused(&error),
    }
}

/// A line of an audit log: as it is, and with the hash that it should have. What was read is the same when written.
pub(crate) fn audit_line(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let hashed = format!("{text},\"hash\":\"{}\"}}", blake3::hash(input).to_hex());
    for line in [text, &hashed] {
        match Chain::after(line) {
            Ok((_, entry)) => written(&entry),
            Err(error) => refused(&error),
        }
        if let Err(error) = Chain::default().follow(line) {
            refused(&error);
        }
    }
}

fn written(entry: &Entry) {
    let line = Chain::default().next_line(entry.clone());
    assert_eq!(Chain::default().follow(&line).as_ref(), Ok(entry), "{line}");
}

/// Lists of servers whose archives are taken.
pub(crate) fn archive_signers(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match ArchiveTrust::read(text) {
        Ok(ArchiveTrust::Keys { keys, .. }) => assert!(keys.len() <= text.lines().count()),
        Ok(trust @ ArchiveTrust::Everything) => panic!("{trust:?}"),
        Err(error) => refused(&error),
    }
}
