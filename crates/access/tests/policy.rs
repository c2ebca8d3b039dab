//! Rules, and callers that show certificates, users and signed tokens.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_access::{Certificate, Denied, JwtError, NameKind, Policy, Refused, Tokens};
use data_encoding::BASE64URL_NOPAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

const NOW_MS: u64 = 1_700_000_000_000;
const PLAN: &str = "canopy.v1.Planner/Plan";
const DRAIN: &str = "canopy.v1.Server/Drain";
const REPORT: &str = "canopy.v1.Faults/ReportFaults";

const RULES: &str = r#"
[roles.reporting-planner]
includes = ["planner", "fault-reporter"]

[issuers.kubernetes]
issuer = "https://kubernetes.default.svc"
keys = "keys.json"
audiences = ["canopy"]

[[grant]]
certificate = "spiffe://prod/ns/*/sa/slurm"
roles = ["reporting-planner"]
tenants = ["red", "blue"]

[[grant]]
user = 0
roles = ["admin"]
tenants = ["*"]

[[grant]]
group = 500
roles = ["viewer"]

[[grant]]
issuer = "kubernetes"
subject = "system:serviceaccount:kueue:*"
roles = ["planner"]
tenants = ["kueue"]

[[grant]]
issuer = "kubernetes"
subject = "*"
claims = { groups = "ops", "realm.team" = "net*" }
roles = ["operator"]
tenants = ["*"]
"#;

/// An issuer with one key of each kind.
struct Signer {
    ed: Ed25519KeyPair,
    ec: EcdsaKeyPair,
}

impl Signer {
    fn new(seed: u8) -> Self {
        let chance = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &chance).unwrap();
        let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &chance).unwrap();
        Self { ed: Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap(), ec }
    }

    fn keys(&self) -> String {
        let point = self.ec.public_key().as_ref();
        json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "use": "sig", "x": BASE64.encode(self.ed.public_key().as_ref())},
            {"kty": "EC", "crv": "P-256", "kid": "ec", "x": BASE64.encode(&point[1..33]), "y": BASE64.encode(&point[33..])},
            {"kty": "oct", "kid": "oct", "k": BASE64.encode(b"a secret that everybody knows")},
        ]})
        .to_string()
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| BASE64.encode(value.to_string().as_bytes());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = match header["alg"].as_str() {
            Some("EdDSA") => self.ed.sign(message.as_bytes()).as_ref().to_vec(),
            Some("ES256") => self.ec.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec(),
            _ => Vec::new(),
        };
        format!("{message}.{}", BASE64.encode(&signature))
    }
}

fn policy(signer: &Signer) -> Policy {
    let keys = signer.keys();
    Policy::read(RULES, |file| if file.path == "keys.json" { Ok(keys.clone()) } else { Err("not there".into()) })
        .unwrap()
}

/// Claims of a token that is good, with some changed; null takes one out.
fn claims(changes: &Value) -> Value {
    let now = NOW_MS / 1000;
    let mut all = json!({
        "iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:kueue:controller",
        "aud": ["other", "canopy"], "exp": now + 600, "nbf": now - 600, "iat": now - 600,
    });
    for (claim, value) in changes.as_object().unwrap() {
        all[claim] = value.clone();
        if value.is_null() {
            all.as_object_mut().unwrap().remove(claim);
        }
    }
    all
}

fn bearer(policy: &Policy, token: &str) -> Result<canopy_access::Identity, Refused> {
    policy.bearer(token, &Tokens::default(), NOW_MS)
}

#[test]
fn good_tokens_of_each_algorithm_are_taken() {
    let signer = Signer::new(1);
    let policy = policy(&signer);
    for header in [json!({"alg": "EdDSA", "kid": "ed"}), json!({"alg": "ES256", "kid": "ec"}), json!({"alg": "ES256"})]
    {
        let caller = bearer(&policy, &signer.sign(&header, &claims(&json!({})))).unwrap();
        assert_eq!(caller.name, "system:serviceaccount:kueue:controller");
        assert_eq!(caller.admit(PLAN, None, NOW_MS).unwrap().unwrap().as_str(), "kueue");
        assert!(matches!(caller.admit(DRAIN, None, NOW_MS), Err(Denied::Method { .. })));
        // The token is held to its end, and a minute for clocks that differ.
        assert!(caller.admit(PLAN, None, NOW_MS + 659_000).is_ok());
        assert!(matches!(caller.admit(PLAN, None, NOW_MS + 660_000), Err(Denied::Expired { .. })));
    }
}

#[test]
fn claims_decide_what_a_subject_may() {
    let signer = Signer::new(1);
    let policy = policy(&signer);
    let caller = |changes: Value| bearer(&policy, &signer.sign(&json!({"alg": "EdDSA"}), &claims(&changes)));
    let groups = json!({"sub": "ann", "groups": ["dev", "ops"], "realm": {"team": "network"}});
    assert!(caller(groups.clone()).unwrap().admit(REPORT, None, NOW_MS).is_ok());
    for (claim, value) in [("groups", json!(["dev"])), ("realm", json!({"team": "other"})), ("realm", json!(null))] {
        let mut changed = groups.clone();
        changed[claim] = value;
        assert!(matches!(caller(changed), Err(Refused::Unknown { .. })), "{claim}");
    }
}

#[test]
fn every_wrong_token_is_refused_for_its_reason() {
    let signer = Signer::new(1);
    let policy = policy(&signer);
    let now = NOW_MS / 1000;
    let good = json!({"alg": "EdDSA", "kid": "ed"});
    let issuer = || "https://kubernetes.default.svc".to_owned();
    let signature = || JwtError::Signature { issuer: issuer() };
    let audience = || JwtError::Audience { audiences: "canopy".into() };
    for (changes, expected) in [
        (json!({"exp": now - 61}), JwtError::Expired),
        (json!({"exp": null}), JwtError::Claim { claim: "exp" }),
        (json!({"exp": (now + 600).to_string()}), JwtError::Claim { claim: "exp" }),
        (json!({"exp": -1}), JwtError::Claim { claim: "exp" }),
        (json!({"nbf": now + 61}), JwtError::NotYet),
        (json!({"nbf": "0"}), JwtError::Claim { claim: "nbf" }),
        (json!({"aud": "other"}), audience()),
        (json!({"aud": []}), audience()),
        (json!({"aud": null}), audience()),
        (json!({"iss": "https://elsewhere"}), JwtError::Issuer { issuer: "https://elsewhere".into() }),
        (json!({"iss": null}), JwtError::Claim { claim: "iss" }),
        (json!({"sub": null}), JwtError::Claim { claim: "sub" }),
        (json!({"sub": ""}), JwtError::Claim { claim: "sub" }),
    ] {
        let refused = bearer(&policy, &signer.sign(&good, &claims(&changes))).unwrap_err();
        assert_eq!(refused, Refused::Jwt(expected), "{changes}");
    }
    let token = signer.sign(&good, &claims(&json!({})));
    let (message, _) = token.rsplit_once('.').unwrap();
    let (header, rest) = token.split_once('.').unwrap();
    let other = Signer::new(2).sign(&good, &claims(&json!({})));
    let unsigned = |algorithm: &str| signer.sign(&json!({"alg": algorithm}), &claims(&json!({})));
    let critical = |crit: &Value| {
        signer.sign(&json!({"alg": "EdDSA", "kid": "ed", "b64": true, "crit": crit}), &claims(&json!({})))
    };
    for (wrong, expected) in [
        (other, signature()),
        (format!("{message}."), signature()),
        (unsigned("HS256"), signature()),
        (unsigned("ES384"), signature()),
        (unsigned("none"), JwtError::Malformed),
        (critical(&json!(["exp"])), JwtError::Critical),
        (critical(&json!(["b64"])), JwtError::Critical),
        (critical(&json!([])), JwtError::Critical),
        (critical(&json!("exp")), JwtError::Malformed),
        (signer.sign(&json!({"alg": "EdDSA", "kid": "ec"}), &claims(&json!({}))), signature()),
        (signer.sign(&json!({"alg": "EdDSA", "kid": "away"}), &claims(&json!({}))), signature()),
        (format!("{header}.{rest}.x"), JwtError::Malformed),
        (rest.to_owned(), JwtError::Malformed),
        ("x".repeat(9 << 10), JwtError::Malformed),
        (String::new(), JwtError::Malformed),
    ] {
        let refused = bearer(&policy, &wrong).unwrap_err();
        assert_eq!(refused, Refused::Jwt(expected), "{wrong}");
    }
}

/// A secret in the key set is public to whoever reads the set: nothing that it signs counts.
#[test]
fn shared_secrets_sign_nothing() {
    let signer = Signer::new(1);
    let policy = policy(&signer);
    let part = |value: &Value| BASE64.encode(value.to_string().as_bytes());
    let message = format!("{}.{}", part(&json!({"alg": "HS256", "kid": "oct"})), part(&claims(&json!({}))));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"a secret that everybody knows");
    let token = format!("{message}.{}", BASE64.encode(ring::hmac::sign(&key, message.as_bytes()).as_ref()));
    assert!(matches!(bearer(&policy, &token), Err(Refused::Jwt(JwtError::Signature { .. }))));
}

#[test]
fn certificates_and_users_have_what_is_granted_to_them() {
    let policy = policy(&Signer::new(1));
    let certificate = |names: &[(NameKind, &'static str)]| Certificate::new(names.iter().copied(), NOW_MS + 1);
    let (common, uri) = (|name| (NameKind::CommonName, name), |name| (NameKind::Uri, name));
    let slurm = policy.certificate(&certificate(&[common("x"), uri("spiffe://prod/ns/a/sa/slurm")])).unwrap();
    assert_eq!(slurm.admit(REPORT, Some(&"blue".parse().unwrap()), NOW_MS).unwrap().unwrap().as_str(), "blue");
    assert!(matches!(slurm.admit(PLAN, Some(&"green".parse().unwrap()), NOW_MS), Err(Denied::Tenant { .. })));
    assert!(matches!(slurm.admit(PLAN, None, NOW_MS + 1), Err(Denied::Expired { .. })));
    for names in [&[uri("spiffe://prod/ns/a/b/sa/slurm")][..], &[common("spiffe://prod/ns/a/sa/slurm")], &[]] {
        assert!(matches!(policy.certificate(&certificate(names)), Err(Refused::Unknown { .. })), "{names:?}");
    }
    assert!(policy.user(0, 0).unwrap().admit(DRAIN, None, NOW_MS).is_ok());
    assert!(policy.user(7, 500).unwrap().admit(DRAIN, None, NOW_MS).is_err());
    assert!(matches!(policy.user(500, 7), Err(Refused::Unknown { .. })));
}

/// A workload that chooses one kind of name for itself gets nothing that is granted to another kind.
#[test]
fn a_name_of_one_kind_never_passes_for_a_name_of_another() {
    let kinds = [NameKind::Uri, NameKind::Dns, NameKind::Email, NameKind::CommonName];
    let granted = [
        (NameKind::Uri, "spiffe://prod/root", "spiffe://prod/root"),
        (NameKind::Uri, "https://root.example", "https://root*"),
        (NameKind::Dns, "root.example", "dns:root.example"),
        (NameKind::Dns, "root.example", "dns:*"),
        (NameKind::Email, "root@example", "email:root@example"),
        (NameKind::CommonName, "root", "cn:root"),
        (NameKind::CommonName, "root", "cn:r*t"),
    ];
    for (kind, name, rule) in granted {
        let rules = format!("[[grant]]\ncertificate = \"{rule}\"\nroles = [\"admin\"]");
        let policy = Policy::read(&rules, |_| Err(String::new())).unwrap();
        let is_known = |kind, name: &str| policy.certificate(&Certificate::new([(kind, name)], NOW_MS + 1)).is_ok();
        assert!(is_known(kind, name), "{rule}");
        let texts = ["", "cn:", "CN:", "dns:", "email:", "uri:", "uid:"].map(|prefix| format!("{prefix}{name}"));
        for (other, text) in kinds.into_iter().flat_map(|kind| texts.iter().map(move |text| (kind, text))) {
            // A star may stand for any text of its own kind.
            let may_match = other == kind && (text == name || rule.contains('*'));
            assert!(may_match || !is_known(other, text), "{other:?} {text} by {rule}");
        }
    }
}

#[test]
fn a_rule_for_certificates_states_the_kind_of_name() {
    for (rule, is_taken) in [
        ("*", true),
        ("cn:*", true),
        ("spiffe://*", true),
        ("dns:*.example", true),
        ("*.example", false),
        ("root", false),
        ("c*:root", false),
        ("", false),
    ] {
        let rules = format!("[[grant]]\ncertificate = \"{rule}\"\nroles = [\"viewer\"]");
        let read = Policy::read(&rules, |_| Err(String::new()));
        assert_eq!(read.is_ok(), is_taken, "{rule}");
        assert!(is_taken || read.unwrap_err().to_string().contains("states no kind of name"), "{rule}");
    }
}

#[test]
fn rules_that_cannot_hold_are_refused_with_the_place() {
    let keys = Signer::new(1).keys();
    for (rules, words) in [
        ("[[grant]]\nroles = [\"viewer\"]", "grant 1 must name one of"),
        ("[[grant]]\nuser = 1\ngroup = 1\nroles = []", "it names user, group"),
        ("[[grant]]\nuser = 1\nclaims = { a = \"b\" }\nroles = []", "it names user, claims"),
        ("[[grant]]\nuser = 1\nroles = [\"boss\"]", "grant 1: `boss` is not a role"),
        ("[[grant]]\nuser = 1\nroles = [\"viewer\"]\ntenants = [\"a b\"]", "`a b` is not a tenant name"),
        ("[[grant]]\nuser = -1\nroles = []", "line 2"),
        ("[[grant]]\nuser = 1\nrole = \"viewer\"", "line 3: unknown field `role`"),
        ("[[grant]]\nissuer = \"x\"\nsubject = \"*\"\nroles = []", "`issuer` `x` is not one of the `[issuers]`"),
        ("[issuers.x]\nissuer = \"x\"\nkeys = \"keys.json\"\naudiences = []", "`audiences` is empty"),
        ("[issuers.x]\nkeys = \"keys.json\"\naudiences = [\"a\"]", "state `issuer`, or `discovery`"),
        ("[issuers.x]\nissuer = \"x\"\nkeys = \"away\"\naudiences = [\"a\"]", "away: not there"),
        ("[issuers.x]\nissuer = \"x\"\nkeys = \"bad\"\naudiences = [\"a\"]", "not a JSON Web Key Set"),
        ("[issuers.x]\ndiscovery = \"keys.json\"\nkeys = \"keys.json\"\naudiences = [\"a\"]", "it has no `issuer`"),
        ("[issuers.x]\nissuer = \"x\"\nkeys = \"keys.json\"\naudiences = [\"a\"]\nleeway_seconds = 601", "exceeds 600"),
    ] {
        let read = |path: &str| match path {
            "keys.json" => Ok(keys.clone()),
            "bad" => Ok("{".to_owned()),
            _ => Err("not there".to_owned()),
        };
        let error = Policy::read(rules, |file| read(&file.path)).unwrap_err().to_string();
        assert!(error.contains(words), "{rules}: {error}");
    }
}
