//! Names of resources: what none can have is malformed, anything else is unknown.

use crate::failure::CallFailure;

/// A kind of resources.
struct Kind {
    folder: &'static str,
    /// Hexadecimal digits after the folder.
    digits: usize,
    /// Whether a number follows them.
    is_numbered: bool,
    one: &'static str,
    all: &'static str,
    such_as: &'static str,
}

const PLAN: Kind = Kind {
    folder: "plans/",
    digits: 32,
    is_numbered: false,
    one: "a plan",
    all: "plans",
    such_as: "plans/0123456789abcdef0123456789abcdef",
};
const TOPOLOGY: Kind = Kind {
    folder: "topologies/",
    digits: 32,
    is_numbered: false,
    one: "a topology",
    all: "topologies",
    such_as: "topologies/0123456789abcdef0123456789abcdef",
};
const LEASE: Kind = Kind {
    folder: "leases/",
    digits: 16,
    is_numbered: false,
    one: "a lease",
    all: "leases",
    such_as: "leases/0123456789abcdef",
};
const OPERATION: Kind = Kind {
    folder: "operations/",
    digits: 16,
    is_numbered: true,
    one: "an operation",
    all: "operations",
    such_as: "operations/0123456789abcdef-1",
};

/// As much of a caller's text as is given back.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

impl Kind {
    fn may_have(&self, name: &str) -> bool {
        let Some((digits, rest)) = name.strip_prefix(self.folder).and_then(|name| name.split_at_checked(self.digits))
        else {
            return false;
        };
        let is_end = match rest.strip_prefix('-') {
            Some(number) => self.is_numbered && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()),
            None => !self.is_numbered && rest.is_empty(),
        };
        is_end && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    fn unknown(&self, field: &'static str, name: &str, unknown: impl FnOnce(String) -> CallFailure) -> CallFailure {
        let name_shown = shown(name);
        if self.may_have(name) {
            return unknown(name_shown);
        }
        let Self { one, all, such_as, .. } = *self;
        CallFailure::NameMalformed { field, name: name_shown, one, all, such_as }
    }
}

impl CallFailure {
    /// There is no plan of this name.
    pub(crate) fn no_plan(name: &str) -> Self {
        PLAN.unknown("name", name, |name| Self::PlanUnknown { name })
    }

    /// There is no topology of this name, which `field` of the request states.
    pub(crate) fn no_topology(field: &'static str, name: &str) -> Self {
        TOPOLOGY.unknown(field, name, |name| Self::TopologyUnknown { name })
    }

    /// There is no lease of this name; `is_shared`: other servers may have it.
    pub(crate) fn no_lease(name: &str, is_shared: bool) -> Self {
        LEASE.unknown("name", name, |name| Self::LeaseUnknown { name, is_shared })
    }

    /// There is no operation of this name; `is_shared`: other servers may have it.
    pub(crate) fn no_operation(name: &str, is_shared: bool) -> Self {
        OPERATION.unknown("name", name, |name| Self::OperationUnknown { name, is_shared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_names_and_everything_near_them_is_not() {
        for kind in [PLAN, TOPOLOGY, LEASE, OPERATION] {
            assert!(kind.may_have(kind.such_as));
            for length in 0..kind.such_as.len() {
                assert!(!kind.may_have(&kind.such_as[..length]), "{} to {length}", kind.such_as);
            }
            for wrong in [
                format!("{}g", kind.such_as),
                format!("{}-", kind.such_as),
                format!(" {}", kind.such_as),
                kind.such_as.to_uppercase(),
                kind.such_as.replace("0123", "012é"),
            ] {
                assert!(!kind.may_have(&wrong), "{wrong}");
            }
        }
    }
}
